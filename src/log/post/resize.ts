import { H5LogError } from '../../base/errors.ts';
import { type Boxes, clip, endOf } from '../../space/box.ts';
import { gather } from '../../space/copy.ts';
import { subtractMany } from '../../space/sets.ts';
import { checkMaxShape, describe, sizeOf } from '../../space/shape.ts';
import type { Io } from '../../storage/io.ts';
import { readReach } from '../format/anchor.ts';
import { writeReach } from '../format/new-anchor.ts';
import { covered } from '../read/visible.ts';
import type { LogDataset, PostedDataset, PostOptions } from './dataset.ts';
import { notData } from './elements.ts';
import { DatasetStage, type Stage } from './stage.ts';

/**
 * Prepares a resize: everything that can fail happens here, and the returned function makes the change. Shrinking clips pending
 * posts; committed blocks stay in the log, out of sight. Growing again over such blocks posts fill over them, so that every reader,
 * the original included, sees fill. Of several ranks one posts it; until its commit the others use `validExtent`.
 */
export function* planResize(dataset: LogDataset, shape: readonly number[], postsFill: boolean): Io<() => void> {
  const { log, node } = dataset;
  log.structure.announce();
  const old = dataset.shape;
  if (shape.every((size, d) => size === old[d])) return () => {};
  const reach = dataset.wasShrunk === false ? undefined : yield* reachOf(dataset);
  dataset.wasShrunk ??= reach !== undefined;
  const shrinks = shape.some((size, d) => size < (old[d] as number));
  const grows = shape.some((size, d) => size > (old[d] as number));
  const clippings = shrinks ? clippedPending(dataset, shape) : [];
  const returned = reach && grows ? comingBack(dataset, shape, reach) : [];
  const filled = postsFill ? yield* written(dataset, returned) : [];
  const isShared = !import.meta.page && log.main.comm.size > 1;
  return () => {
    // Posts before and after it are kept apart, so that it can be undone.
    if (isShared && clippings.length + filled.length > 0) log.setAside();
    for (const { stage, part, kept } of clippings) {
      stage.set(kept);
      dataset.forgetStage(part);
      if (isShared) log.clipped.push(part);
      log.exchange(isShared ? 0 : part.arena.held, kept.arena.held);
      if (!isShared) part.arena.release();
    }
    if (shrinks || (reach && dataset.hasForeignShape)) {
      dataset.wasShrunk = true;
      writeReach(
        log.structure,
        node,
        old.map((size, d) => Math.max(size, reach?.[d] ?? 0)),
      );
    }
    if (!postsFill && (shrinks || reach)) {
      dataset.validExtent = old.map((size, d) => Math.min(size, shape[d] as number, dataset.validExtent?.[d] ?? size));
      log.resized.add(dataset);
    }
    dataset.writeShape(shape);
    dataset.shape = shape;
    for (const box of filled) dataset.postFill(box);
    if (isShared && filled.length > 0) log.fills.push(log.setAside());
  };
}

/**
 * Grows dimension 0 by whole rows and posts them; returns the first of them. If they cannot be posted, the shape stays as it was.
 * The file gets the new shape with the next flush: nothing but the post itself is done for each call.
 */
export function appendRows(
  dataset: PostedDataset,
  data: unknown,
  options: PostOptions | undefined,
  now: <T>(io: Io<T>) => T,
): number {
  const { shape, elements, path } = dataset;
  if (data === undefined || data === null) throw notData(path, data);
  const values = elements.count(data);
  const grown = grownShape(path, shape, dataset.maxShape, values);
  const first = shape[0] as number;
  if (values === 0) return first;
  // Before the shape changes: this may flush, and a commit must not have rows that nobody has written yet.
  dataset.mustResize();
  const isLent = options?.copy === false && elements.canWait(data);
  if (!isLent) dataset.claimFor(data, values);
  const logged = 'log' in dataset ? (dataset as LogDataset) : null;
  if (logged) logged.wasShrunk ??= now(reachOf(logged)) !== undefined;
  const count = grown.slice();
  count[0] = (grown[0] as number) - first;
  const start = new Array<number>(grown.length).fill(0);
  start[0] = first;
  const where = { start, count };
  const shrunk = logged?.wasShrunk ? logged : null;
  if (shrunk) now(planResize(shrunk, grown, true))();
  else dataset.shape = grown;
  try {
    dataset.post(data, where, options);
  } catch (error) {
    if (shrunk) now(planResize(shrunk, shape, true))();
    else dataset.shape = shape;
    throw error;
  }
  if (logged && !shrunk) logged.log.grown.add(logged);
  return first;
}

/** The shape after `values` more values in whole rows. */
function grownShape(
  path: string,
  shape: readonly number[],
  maxShape: readonly (number | null)[],
  values: number,
): number[] {
  if (shape.length === 0) throw new H5LogError('SHAPE', `${path}: a scalar has no rows to append`, { object: path });
  let row = 1;
  for (let d = 1; d < shape.length; d++) row *= shape[d] as number;
  if (values > 0 && values % row !== 0) {
    const text = `${path}: ${values} values are no whole rows of ${row}; the shape is ${describe(shape)}`;
    throw new H5LogError('SHAPE', text, { object: path });
  }
  const grown = shape.slice();
  if (values > 0) grown[0] = (shape[0] as number) + values / row;
  const limit = maxShape[0];
  if (limit !== null && (grown[0] as number) > (limit as number)) checkMaxShape(maxShape, grown);
  return grown;
}

/** The largest shape the dataset ever had, if it was ever smaller afterwards; another program may have made it so. */
export function* reachOf({
  log,
  node,
  published,
  hasForeignShape,
  shape,
}: LogDataset): Io<readonly number[] | undefined> {
  const reach = yield* readReach(log.structure, node);
  const before = published?.view.shape;
  if (!before || !hasForeignShape || shape.every((size, d) => size >= (before[d] as number))) return reach;
  return before.map((size, d) => Math.max(size, reach?.[d] ?? 0));
}

interface Box {
  readonly start: readonly number[];
  readonly count: readonly number[];
}

/** What comes back into view: inside the new shape and where the dataset once reached, outside of what was visible. */
function comingBack(dataset: LogDataset, shape: readonly number[], reach: readonly number[]): Box[] {
  const seen = Float64Array.from(dataset.shape, (size, d) => Math.min(size, shape[d] as number));
  const view = Float64Array.from(shape, (size, d) => Math.min(size, Math.max(reach[d] as number, seen[d] as number)));
  const origin = new Float64Array(shape.length);
  return boxesOf(subtractMany(origin, view, { rank: shape.length, length: 1, starts: origin, counts: seen }));
}

/** The parts of boxes where there are earlier writes. */
function* written(dataset: LogDataset, boxes: readonly Box[]): Io<Box[]> {
  const found: Box[] = [];
  for (const { start, count } of boxes)
    found.push(...(yield* coveredBy(dataset, Float64Array.from(start), Float64Array.from(count))));
  return found;
}

function boxesOf({ rank, length, starts, counts }: Boxes): Box[] {
  const boxes: Box[] = [];
  for (let k = 0; k < length * rank; k += rank)
    boxes.push({ start: [...starts.subarray(k, k + rank)], count: [...counts.subarray(k, k + rank)] });
  return boxes;
}

/**
 * What committed blocks, and those under way, cover of a box: each element once, however many blocks lie there, or every
 * shrinking and growing again would double the posts of the next.
 */
function* coveredBy(dataset: LogDataset, start: Float64Array, count: Float64Array): Io<Box[]> {
  const rank = start.length;
  const high = endOf(start, count);
  const { log } = dataset;
  const { committed } = log.tables;
  // What the layout holds there does not count any more: see `View.cut`. The original reads unfiltered data from the log alone.
  const floor = dataset.filters.length === 0 ? undefined : dataset.base?.floor;
  const whole = yield* log.tables.whole(dataset, committed, floor);
  const lists: Boxes[] = [whole ?? (yield* log.tables.index(dataset, { low: start, high }, committed, floor))];
  for (const stage of log.flushing) {
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
  return boxesOf(covered(lists, start, high, false).toBoxes());
}

interface Clipping {
  readonly stage: Stage;
  readonly part: DatasetStage;
  readonly kept: DatasetStage;
}

/** Everything that is pending for a dataset, cut to a smaller shape. */
function clippedPending(dataset: LogDataset, shape: readonly number[]): Clipping[] {
  const { log } = dataset;
  const clippings: Clipping[] = [];
  for (const stage of [...log.returned, log.current]) {
    const part = stage.of(dataset);
    if (part) clippings.push({ stage, part, kept: clipped(part, stage, shape) });
  }
  return clippings;
}

/** Posts that come back from a failed flush are cut to what their datasets have become meanwhile. */
export function clipReturned(stage: Stage): void {
  for (const part of [...stage.datasets]) {
    if (!isOutside(part)) continue;
    const kept = clipped(part, stage, part.dataset.shape);
    part.dataset.log.exchange(part.arena.held, kept.arena.held);
    part.arena.release();
    stage.set(kept);
  }
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

/** What was posted to a dataset, as posts of another stage to the same dataset in another state. */
export function clippedTo(part: DatasetStage, stage: Stage, dataset: LogDataset): DatasetStage {
  return clipped(part, stage, dataset.shape, dataset);
}

/** Cuts what was posted to a dataset since the last flush to a smaller shape; gives the stage that takes the place of the old one. */
export function clipStage<D extends PostedDataset>(part: DatasetStage<D>, shape: readonly number[]): DatasetStage<D> {
  const kept = clipped(part, part.owner, shape);
  part.dataset.posts.exchange(part.arena.held, kept.arena.held);
  part.owner.set(kept);
  part.arena.release();
  part.dataset.forgetStage(part);
  return kept;
}

function clipped<D extends PostedDataset>(
  part: DatasetStage<D>,
  stage: Stage<D>,
  shape: readonly number[],
  dataset = part.dataset,
): DatasetStage<D> {
  const rank = shape.length;
  const { size } = dataset.elements;
  const out = new DatasetStage(dataset, stage, dataset.posts.pool);
  const inside = new Float64Array(rank);
  let at = 0;
  for (const run of part.runs) {
    const { starts, counts } = run.shared ?? part;
    for (let i = run.from; i < run.to; i++) {
      const start = starts.slice(i * rank, (i + 1) * rank);
      const count = counts.slice(i * rank, (i + 1) * rank);
      const bytes = size * sizeOf(count);
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
  return out;
}
