import { boxSize, endOf, intersectInto, overlaps } from '../../space/box.ts';
import { copyBox, fillWith } from '../../space/copy.ts';
import { subtractMany } from '../../space/sets.ts';
import { sizeOf } from '../../space/shape.ts';
import type { PostedDataset } from '../post/dataset.ts';
import type { DatasetStage } from '../post/stage.ts';

/** A part of a read that is not in the file yet: its data as a block of its own, and where it goes. */
interface Patch {
  readonly data: Uint8Array;
  readonly shape: Float64Array;
  readonly inBlock: Float64Array;
  readonly inBox: Float64Array;
  readonly count: Float64Array;
}

/**
 * What was posted but not flushed and lies in the box (start, count), in the order of posting. The bytes are copied now, if the
 * read will take its time: what is posted later must not be seen.
 */
export function pendingIn(
  stages: readonly DatasetStage<PostedDataset>[],
  dataset: PostedDataset,
  start: Float64Array,
  count: Float64Array,
  copy: boolean,
): Patch[] {
  const patches: Patch[] = [];
  const rank = start.length;
  const { size } = dataset.elements;
  const end = endOf(start, count);
  for (const stage of stages) {
    let at = 0;
    for (const run of stage.runs) {
      const starts = run.shared ? run.shared.starts : stage.starts;
      const counts = run.shared ? run.shared.counts : stage.counts;
      for (let i = run.from; i < run.to; i++) {
        const bytes = boxSize(counts, i * rank, rank, size);
        if (overlaps(starts, counts, i * rank, rank, start, end)) {
          const data = stage.arena.slice(at, bytes);
          patches.push(cut(starts, counts, i * rank, start, count, copy ? data.slice() : data));
        }
        at += bytes;
      }
    }
  }
  return patches;
}

/** Fill for the parts of the box (start, count) that lie outside of `inside`, the extent up to which committed data counts. */
export function fillOutside(
  dataset: PostedDataset,
  inside: readonly number[],
  start: Float64Array,
  count: Float64Array,
): Patch[] {
  const rank = start.length;
  const { elements, fill } = dataset;
  const kept = { rank, length: 1, starts: new Float64Array(rank), counts: Float64Array.from(inside) };
  const parts = subtractMany(start, count, kept);
  const patches: Patch[] = [];
  for (let k = 0; k < parts.length * rank; k += rank) {
    const shape = parts.counts.slice(k, k + rank);
    const size = sizeOf(shape);
    const data = new Uint8Array(size * elements.size);
    fillWith(data, 0, size, elements.size, fill);
    const inBox = start.map((from, d) => (parts.starts[k + d] as number) - from);
    patches.push({ data, shape, inBlock: new Float64Array(rank), inBox, count: shape });
  }
  return patches;
}

function cut(
  starts: Float64Array,
  counts: Float64Array,
  k: number,
  start: Float64Array,
  count: Float64Array,
  data: Uint8Array,
): Patch {
  const rank = start.length;
  const shape = counts.slice(k, k + rank);
  const [inBlock, inBox, part] = [new Float64Array(rank), new Float64Array(rank), new Float64Array(rank)];
  intersectInto(starts, counts, k, start, count, inBlock, inBox, part);
  return { data, shape, inBlock, inBox, count: part };
}

/** Puts the patches over what was read; the box's first byte is at `at`. */
export function applyPatches(
  patches: readonly Patch[],
  out: Uint8Array,
  at: number,
  count: Float64Array,
  size: number,
): void {
  for (const patch of patches) {
    copyBox(patch.data, 0, patch.shape, patch.inBlock, out, at, count, patch.inBox, patch.count, size);
  }
}
