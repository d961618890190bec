/**
 * What the contract names and nobody has written yet: a name, or `Class.member`. It only ever gets shorter; contract.test.ts
 * fails when something in it has been built.
 */
export const notBuilt: readonly string[] = [];

/** The same for parts of types: text of contract.d.ts that is left out. */
export const notBuiltParts: readonly string[] = [];
