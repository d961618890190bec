/** What is wrong with an argument of a collective, in words, or undefined. Callers may be plain JavaScript. */

export type Reduction = 'sum' | 'min' | 'max';

/** The reductions, in the order of the numbers that stand for them in headers. */
export const reductions: readonly Reduction[] = ['sum', 'min', 'max'];

export function problemOfRoot(root: unknown, size: number): string | undefined {
  if (Number.isInteger(root) && (root as number) >= 0 && (root as number) < size) return undefined;
  return `there is no root ${say(root)}, the ranks are 0 to ${size - 1}`;
}

export function problemOfBytes(bytes: unknown): string | undefined {
  return bytes instanceof Uint8Array ? undefined : `a Uint8Array is needed, not ${say(bytes)}`;
}

export function problemOfValues(values: unknown): string | undefined {
  return values instanceof Float64Array ? undefined : `a Float64Array is needed, not ${say(values)}`;
}

export function problemOfReduction(op: unknown): string | undefined {
  return reductions.includes(op as Reduction) ? undefined : `the operation is 'sum', 'min' or 'max', not ${say(op)}`;
}

/** The colours that MPI knows: whole numbers of 31 bits. */
export function problemOfColor(color: unknown): string | undefined {
  if (Number.isInteger(color) && (color as number) >= 0 && (color as number) < 2 ** 31) return undefined;
  return `a colour is a whole number from 0 to 2147483647, not ${say(color)}`;
}

export function problemOfTimeout(timeout: unknown): string | undefined {
  if (typeof timeout === 'number' && timeout > 0) return undefined;
  return `a timeout is a number of milliseconds above 0, or Infinity, not ${say(timeout)}`;
}

function say(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'object' && value !== null) return `a value of type ${value.constructor?.name ?? 'object'}`;
  if (typeof value === 'function') return 'a function';
  return String(value);
}
