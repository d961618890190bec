import type { BoxList } from './boxes.ts';

/**
 * True if the data of the boxes, one after the other, is in row-major order and no element comes twice:
 * each box ends before the next begins, whole coordinates compared (format-original.md section 4, step 4).
 */
export function isRowMajor(list: BoxList): boolean {
  const { rank, lo, hi } = list;
  for (let i = 1; i < list.length; i++) {
    const before = (i - 1) * rank;
    const after = i * rank;
    let d = 0;
    while (d < rank && (hi[before + d] as number) - 1 === lo[after + d]) d++;
    if (d === rank || (hi[before + d] as number) - 1 > (lo[after + d] as number)) return false;
  }
  return true;
}

/**
 * Joins neighbours in a row-major list, in place: rows along the last dimension first, then planes of equal rows, and
 * so on. Dimensions before the joined one must have a single coordinate, or the joined data would change its order.
 */
export function joinNeighbours(list: BoxList): void {
  if (list.length < 2) return;
  const { rank, lo, hi } = list;
  for (let d = rank - 1; d >= 0; d--) {
    let last = 0;
    for (let i = 1; i < list.length; i++) {
      const from = i * rank;
      if (continues(lo, hi, last * rank, from, d, rank)) {
        hi[last * rank + d] = hi[from + d] as number;
        continue;
      }
      last++;
      if (last === i) continue;
      const to = last * rank;
      for (let k = 0; k < rank; k++) {
        lo[to + k] = lo[from + k] as number;
        hi[to + k] = hi[from + k] as number;
      }
    }
    list.length = last + 1;
  }
}

function continues(lo: Float64Array, hi: Float64Array, a: number, b: number, d: number, rank: number): boolean {
  if (hi[a + d] !== lo[b + d]) return false;
  for (let k = d + 1; k < rank; k++) if (lo[a + k] !== lo[b + k] || hi[a + k] !== hi[b + k]) return false;
  for (let k = 0; k < d; k++) {
    const only = lo[a + k] as number;
    // That a has no other coordinate here follows: it ends before b begins.
    if (only !== lo[b + k] || hi[b + k] !== only + 1) return false;
  }
  return true;
}
