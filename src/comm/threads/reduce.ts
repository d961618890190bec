import type { Reduction } from '../arguments.ts';

/** Combines `count` numbers, from `start` of `from`, into `into` from `at`. Called rank after rank, so that all ranks get the same bits. */
export function combine(
  into: Float64Array,
  at: number,
  from: Float64Array,
  start: number,
  count: number,
  op: Reduction,
): void {
  if (op === 'sum') {
    for (let i = 0; i < count; i++) into[at + i] = (into[at + i] as number) + (from[start + i] as number);
  } else if (op === 'min') {
    for (let i = 0; i < count; i++) into[at + i] = Math.min(into[at + i] as number, from[start + i] as number);
  } else {
    for (let i = 0; i < count; i++) into[at + i] = Math.max(into[at + i] as number, from[start + i] as number);
  }
}
