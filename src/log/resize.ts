import type { Boxes } from '../space/boxes.ts';
import { gather } from '../space/copy.ts';
import { clip, subtractMany } from '../space/cut.ts';
import type { Io } from '../storage/drive.ts';
import { readReach, resizeAnchor, writeReach } from './anchor.ts';
import type { BlockIndex } from './block-index.ts';
import type { LogDataset } from './log-dataset.ts';
import { DatasetStage, type Stage } from './stage.ts';
import { visible } from './visible.ts';

/**
 * Changes the shape of a dataset. Shrinking clips what is pending; what is committed stays in the log, out of sight. Growing
 * again over such blocks posts fill over them, so that every reader, the original included, sees fill.
 */
export function* resizeDataset(dataset: LogDataset, shape: readonly number[]): Io<void> {
  const { log, node } = dataset;
  const old = dataset.shape;
  if (shape.every((size, d) => size === old[d])) return;
  const reach = yield* readReach(log.structure, node);
  const shrinks = shape.some((size, d) => size < (old[d] as number));
  if (shrinks) {
    clipPending(dataset, shape);
    writeReach(
      log.structure,
      node,
      old.map((size, d) => Math.max(size, reach?.[d] ?? 0)),
    );
  }
  resizeAnchor(log.structure, node, shape);
  dataset.shape = shape;
  if (!reach || !shape.some((size, d) => size > (old[d] as number))) return;
  // What comes back into view: inside the new shape and where the dataset once reached, outside of what was visible.
  const seen = Float64Array.from(old, (size, d) => Math.min(size, shape[d] as number));
  const view = Float64Array.from(shape, (size, d) => Math.min(size, Math.max(reach[d] as number, seen[d] as number)));
  const origin = new Float64Array(shape.length);
  const parts = subtractMany(origin, view, { rank: shape.length, length: 1, starts: origin, counts: seen });
  for (let i = 0; i < parts.length; i++) {
    const from = i * parts.rank;
    yield* coverWithFill(
      dataset,
      parts.starts.slice(from, from + parts.rank),
      parts.counts.slice(from, from + parts.rank),
    );
  }
}

/**
 * Posts fill over what committed blocks, and those under way, cover of a box: over each element once, however many blocks lie
 * there, or every shrinking and growing again would double the posts of the next.
 */
function* coverWithFill(dataset: LogDataset, start: Float64Array, count: Float64Array): Io<void> {
  const rank = start.length;
  const high = start.map((s, d) => s + (count[d] as number));
  const { log } = dataset;
  const { items } = log.tables;
  const whole = dataset.index ?? (yield* log.tables.whole(dataset, items));
  const lists: Boxes[] = [
    seenIn(whole ?? (yield* log.tables.index(dataset, { low: start, high }, items)), start, count),
  ];
  for (const stage of log.underWay) {
    const part = stage.of(dataset);
    for (const { shared, from, to } of part?.runs ?? []) {
      const { starts, counts } = shared ?? (part as DatasetStage);
      lists.push({
        rank,
        length: to - from,
        starts: starts.subarray(from * rank),
        counts: counts.subarray(from * rank),
      });
    }
  }
  // What is left of the box without its gaps.
  const parts = subtractMany(start, count, subtractMany(start, count, joined(rank, lists)));
  for (let k = 0; k < parts.length * rank; k += rank) {
    dataset.postFill({
      start: [...parts.starts.subarray(k, k + rank)],
      count: [...parts.counts.subarray(k, k + rank)],
    });
  }
}

/** More elements than this are not ticked off one by one. */
const MOST_TICKS = 4 * 2 ** 20;

/** The blocks of which something can be seen in a box. */
function seenIn(index: BlockIndex, start: Float64Array, count: Float64Array): Boxes {
  const { rank } = index;
  const candidates = index.query(
    start,
    start.map((s, d) => s + (count[d] as number)),
  );
  const size = count.reduce((product, n) => product * n, 1);
  const blocks = size > MOST_TICKS ? candidates : visible(index, candidates, start, count).blocks;
  const [starts, counts] = [new Float64Array(blocks.length * rank), new Float64Array(blocks.length * rank)];
  blocks.forEach((block, i) => {
    starts.set(index.starts.subarray(block * rank, (block + 1) * rank), i * rank);
    counts.set(index.counts.subarray(block * rank, (block + 1) * rank), i * rank);
  });
  return { rank, length: blocks.length, starts, counts };
}

function joined(rank: number, lists: readonly Boxes[]): Boxes {
  const length = lists.reduce((sum, list) => sum + list.length, 0);
  const [starts, counts] = [new Float64Array(length * rank), new Float64Array(length * rank)];
  let at = 0;
  for (const list of lists) {
    starts.set(list.starts.subarray(0, list.length * rank), at);
    counts.set(list.counts.subarray(0, list.length * rank), at);
    at += list.length * rank;
  }
  return { rank, length, starts, counts };
}

/** Cuts everything that is pending for a dataset to a smaller shape. */
function clipPending(dataset: LogDataset, shape: readonly number[]): void {
  const { log } = dataset;
  for (const stage of [...log.waiting, log.current]) {
    const part = stage.of(dataset);
    if (!part) continue;
    stage.set(clipped(part, stage, shape));
    dataset.forgetStage(part);
  }
}

/** Posts that come back from a failed flush are cut to what their datasets have become meanwhile. */
export function clipReturned(stage: Stage): void {
  for (const part of [...stage.datasets]) if (isOutside(part)) stage.set(clipped(part, stage, part.dataset.shape));
}

function isOutside(part: DatasetStage): boolean {
  const { shape } = part.dataset;
  return part.runs.some(({ shared, from, to }) => {
    const { starts, counts } = shared ?? part;
    for (let i = from; i < to; i++) {
      if (
        shape.some(
          (size, d) => (starts[i * shape.length + d] as number) + (counts[i * shape.length + d] as number) > size,
        )
      )
        return true;
    }
    return false;
  });
}

function clipped(part: DatasetStage, stage: Stage, shape: readonly number[]): DatasetStage {
  const { dataset } = part;
  const { log } = dataset;
  const rank = shape.length;
  const { size } = dataset.elements;
  const out = new DatasetStage(dataset, stage, log.pool);
  const inside = new Float64Array(rank);
  let at = 0;
  for (const run of part.runs) {
    const { starts, counts } = run.shared ?? part;
    for (let i = run.from; i < run.to; i++) {
      const start = starts.slice(i * rank, (i + 1) * rank);
      const count = counts.slice(i * rank, (i + 1) * rank);
      const bytes = count.reduce((product, n) => product * n, size);
      const kept = clip({ rank, length: 1, starts: start, counts: count }, shape);
      if (kept.length > 0) {
        const keptBytes = kept.size * size;
        out.arena.reserve(keptBytes);
        gather(part.arena.slice(at, bytes), 0, count, inside, kept.counts, size, out.arena.chunk, out.arena.used);
        out.arena.advance(keptBytes);
        out.reserve(1);
        out.starts.set(kept.starts.subarray(0, rank), out.length * rank);
        out.counts.set(kept.counts.subarray(0, rank), out.length * rank);
        out.accept(keptBytes);
      }
      at += bytes;
    }
  }
  out.requests = part.requests;
  log.exchange(part.arena.held, out.arena.held);
  part.arena.release();
  return out;
}
