// The code that writes. In a page most files are only read: its bundles have that code in a chunk of their own, and scripts/build.ts puts
// a module in the place of this one that loads it. Everywhere else it is there from the beginning.

/** Loads the code that writes, unless it is there. */
export async function loadWriting(): Promise<void> {}

/** Throws if the code that writes is not there. */
export function mustHaveWriting(): void {}
