import { positionIn } from './box.ts';

type Numbers = ArrayLike<number>;

/** A step of a loop takes 1.5 ns, `set(subarray)` 55 ns (bench/copy.ts): rows of more steps than this are long. */
const LONG_ROW = 36;
/** Indices below this are 32-bit integers, nearly twice as fast in the loops as doubles. */
const MAX_INDEX = 2 ** 31;
/** Making 4-byte views costs as much as moving about this many bytes singly. */
const WORTH_VIEWS = 512;

// Scratch for one call. Copying never calls back, so one set serves all.
const rows = new Float64Array(32);
const sourceSteps = new Float64Array(32);
const targetSteps = new Float64Array(32);
const counter = new Float64Array(32);

/**
 * Copies a box of `count` elements between two row-major arrays: from `sourceStart` in an array of `sourceShape` whose
 * first byte is `sourceAt`, to `targetStart` in one of `targetShape` at `targetAt`. Nothing is checked here.
 */
export function copyBox(
  source: Uint8Array,
  sourceAt: number,
  sourceShape: Numbers,
  sourceStart: Numbers,
  target: Uint8Array,
  targetAt: number,
  targetShape: Numbers,
  targetStart: Numbers,
  count: Numbers,
  elementSize: number,
): void {
  move(
    source,
    sourceAt,
    sourceShape,
    sourceStart,
    0,
    target,
    targetAt,
    targetShape,
    targetStart,
    0,
    count,
    0,
    sourceShape.length,
    elementSize,
  );
}

/**
 * Packs the box (start, count) of an array into `out` from byte `outAt` on; returns the byte after it.
 * `at` is the index of the box's first number in `start` and `count`, for boxes in flat lists.
 */
export function gather(
  source: Uint8Array,
  sourceAt: number,
  sourceShape: Numbers,
  start: Numbers,
  count: Numbers,
  elementSize: number,
  out: Uint8Array,
  outAt: number,
  at = 0,
): number {
  const rank = sourceShape.length;
  return (
    outAt + move(source, sourceAt, sourceShape, start, at, out, outAt, null, null, 0, count, at, rank, elementSize)
  );
}

/** The other way round: spreads packed elements from byte `sourceAt` on over a box; returns the byte after them. */
export function scatter(
  source: Uint8Array,
  sourceAt: number,
  target: Uint8Array,
  targetAt: number,
  targetShape: Numbers,
  start: Numbers,
  count: Numbers,
  elementSize: number,
  at = 0,
): number {
  const rank = targetShape.length;
  return (
    sourceAt +
    move(source, sourceAt, null, null, 0, target, targetAt, targetShape, start, at, count, at, rank, elementSize)
  );
}

/** Without a shape a side is packed: its shape is the box itself. Returns the number of bytes moved. */
function move(
  source: Uint8Array,
  sourceAt: number,
  sourceShape: Numbers | null,
  sourceStart: Numbers | null,
  sourceFrom: number,
  target: Uint8Array,
  targetAt: number,
  targetShape: Numbers | null,
  targetStart: Numbers | null,
  targetFrom: number,
  count: Numbers,
  countFrom: number,
  rank: number,
  elementSize: number,
): number {
  // From the last dimension on: as long as both sides take whole rows, the box is one longer run.
  let run = elementSize;
  let whole = true;
  let outer = 0;
  let total = elementSize;
  let sourceStep = elementSize;
  let targetStep = elementSize;
  for (let d = rank - 1; d >= 0; d--) {
    const n = count[countFrom + d] as number;
    if (n === 0) return 0;
    const sourceSize = sourceShape ? (sourceShape[d] as number) : n;
    const targetSize = targetShape ? (targetShape[d] as number) : n;
    if (sourceStart) sourceAt += (sourceStart[sourceFrom + d] as number) * sourceStep;
    if (targetStart) targetAt += (targetStart[targetFrom + d] as number) * targetStep;
    if (whole) run *= n;
    else if (n > 1) {
      rows[outer] = n;
      sourceSteps[outer] = sourceStep;
      targetSteps[outer] = targetStep;
      outer++;
    }
    if (n !== sourceSize || n !== targetSize) whole = false;
    total *= n;
    sourceStep *= sourceSize;
    targetStep *= targetSize;
  }
  if (outer === 0) moveRun(source, sourceAt, target, targetAt, run);
  else moveRows(source, sourceAt, target, targetAt, run, outer, total);
  return total;
}

function moveRun(source: Uint8Array, sourceAt: number, target: Uint8Array, targetAt: number, run: number): void {
  if (run >= LONG_ROW || sourceAt + run > MAX_INDEX || targetAt + run > MAX_INDEX) {
    target.set(source.subarray(sourceAt, sourceAt + run), targetAt);
    return;
  }
  const from = sourceAt | 0;
  const to = targetAt | 0;
  const length = run | 0;
  for (let i = 0; i < length; i++) target[to + i] = source[from + i] as number;
}

/** Dimension 0 of the scratch is the innermost; it goes to a loop of its own, the others are counted through. */
function moveRows(
  source: Uint8Array,
  sourceAt: number,
  target: Uint8Array,
  targetAt: number,
  run: number,
  outer: number,
  total: number,
): void {
  const n = rows[0] as number;
  const sourceStep = sourceSteps[0] as number;
  const targetStep = targetSteps[0] as number;
  const near = source.length <= MAX_INDEX && target.length <= MAX_INDEX;
  const words =
    !import.meta.page &&
    near &&
    run < LONG_ROW * 4 &&
    total >= WORTH_VIEWS &&
    isAligned(source, sourceAt, target, targetAt, run, outer);
  const short = near && run < LONG_ROW;
  // Words of 4 bytes also for 8-byte elements: a float64 load and store need not keep the bits of a NaN, and an int64
  // may look like one.
  const sourceWords = words ? new Int32Array(source.buffer, source.byteOffset, source.byteLength >> 2) : null;
  const targetWords = words ? new Int32Array(target.buffer, target.byteOffset, target.byteLength >> 2) : null;
  for (let d = 1; d < outer; d++) counter[d] = 0;
  for (;;) {
    if (sourceWords && targetWords) {
      wordRows(sourceWords, sourceAt / 4, sourceStep / 4, targetWords, targetAt / 4, targetStep / 4, n, run / 4);
    } else if (short) byteRows(source, sourceAt, sourceStep, target, targetAt, targetStep, n, run);
    else longRows(source, sourceAt, sourceStep, target, targetAt, targetStep, n, run);
    let d = 1;
    for (; d < outer; d++) {
      sourceAt += sourceSteps[d] as number;
      targetAt += targetSteps[d] as number;
      const done = (counter[d] as number) + 1;
      counter[d] = done;
      if (done < (rows[d] as number)) break;
      counter[d] = 0;
      sourceAt -= done * (sourceSteps[d] as number);
      targetAt -= done * (targetSteps[d] as number);
    }
    if (d === outer) return;
  }
}

function isAligned(
  source: Uint8Array,
  sourceAt: number,
  target: Uint8Array,
  targetAt: number,
  run: number,
  outer: number,
): boolean {
  if ((source.byteOffset | target.byteOffset | run) & 3 || sourceAt % 4 || targetAt % 4) return false;
  for (let d = 0; d < outer; d++) if ((sourceSteps[d] as number) % 4 || (targetSteps[d] as number) % 4) return false;
  return true;
}

function wordRows(
  source: Int32Array,
  fromAt: number,
  fromStep: number,
  target: Int32Array,
  toAt: number,
  toStep: number,
  n: number,
  run: number,
): void {
  let from = fromAt | 0;
  let to = toAt | 0;
  const length = run | 0;
  const fromGap = (fromStep - run) | 0;
  const toGap = (toStep - run) | 0;
  for (let row = 0; row < n; row++) {
    for (const end = (to + length) | 0; to < end; ) target[to++] = source[from++] as number;
    from = (from + fromGap) | 0;
    to = (to + toGap) | 0;
  }
}

function byteRows(
  source: Uint8Array,
  fromAt: number,
  fromStep: number,
  target: Uint8Array,
  toAt: number,
  toStep: number,
  n: number,
  run: number,
): void {
  let from = fromAt | 0;
  let to = toAt | 0;
  const length = run | 0;
  const fromGap = (fromStep - run) | 0;
  const toGap = (toStep - run) | 0;
  for (let row = 0; row < n; row++) {
    for (const end = (to + length) | 0; to < end; ) target[to++] = source[from++] as number;
    from = (from + fromGap) | 0;
    to = (to + toGap) | 0;
  }
}

function longRows(
  source: Uint8Array,
  from: number,
  fromStep: number,
  target: Uint8Array,
  to: number,
  toStep: number,
  n: number,
  run: number,
): void {
  for (let row = 0; row < n; row++) {
    target.set(source.subarray(from, from + run), to);
    from += fromStep;
    to += toStep;
  }
}

/** Where the rows of a box begin in an array, in bytes, and the bytes of each. */
export interface RowPlaces {
  readonly places: Float64Array;
  readonly run: number;
}

/** Where the rows of a box begin in an array at byte `at`; they are as long as they can be. */
export function rowPlaces(
  at: number,
  shape: ArrayLike<number>,
  start: ArrayLike<number>,
  count: ArrayLike<number>,
  size: number,
): RowPlaces {
  const rank = shape.length;
  // The last dimensions that the box fills, and the one before them, are a row.
  let outer = Math.max(rank - 1, 0);
  while (outer > 0 && count[outer] === shape[outer]) outer--;
  let run = size;
  for (let k = outer; k < rank; k++) run *= count[k] as number;
  const steps = new Float64Array(outer);
  for (let k = rank - 1, step = size; k > 0; k--) {
    step *= shape[k] as number;
    if (k <= outer) steps[k - 1] = step;
  }
  let rows = 1;
  for (let k = 0; k < outer; k++) rows *= count[k] as number;
  const places = new Float64Array(rows);
  const done = new Float64Array(outer);
  for (let i = 0, place = at + positionIn(shape, start) * size; i < rows; i++) {
    places[i] = place;
    for (let k = outer - 1; k >= 0; k--) {
      place += steps[k] as number;
      done[k] = (done[k] as number) + 1;
      if ((done[k] as number) < (count[k] as number)) break;
      place -= (done[k] as number) * (steps[k] as number);
      done[k] = 0;
    }
  }
  return { places, run };
}

/**
 * Copies elements between places that are sums of one offset a dimension, in bytes: every combination of the offsets in `fromPlaces`
 * goes to the same combination of those in `toPlaces`. Rows, columns and lattices are such places.
 */
export function copyPlaces(
  from: Uint8Array,
  fromPlaces: readonly Float64Array[],
  to: Uint8Array,
  toPlaces: readonly Float64Array[],
  size: number,
): void {
  const outer = fromPlaces.length - 1;
  const inner = fromPlaces[outer] ?? ONE_PLACE;
  const innerTo = toPlaces[outer] ?? ONE_PLACE;
  const words = !import.meta.page && ((size | from.byteOffset | to.byteOffset) & 3) === 0;
  const source = words ? new Int32Array(from.buffer, from.byteOffset, from.byteLength >> 2) : from;
  const target = words ? new Int32Array(to.buffer, to.byteOffset, to.byteLength >> 2) : to;
  const unit = words ? 4 : 1;
  const run = size / unit;
  const at = new Uint32Array(Math.max(0, outer));
  for (;;) {
    let f = 0;
    let t = 0;
    for (let d = 0; d < outer; d++) {
      f += (fromPlaces[d] as Float64Array)[at[d] as number] as number;
      t += (toPlaces[d] as Float64Array)[at[d] as number] as number;
    }
    for (let i = 0; i < inner.length; i++) {
      const begin = (f + (inner[i] as number)) / unit;
      const end = (t + (innerTo[i] as number)) / unit;
      for (let k = 0; k < run; k++) target[end + k] = source[begin + k] as number;
    }
    let d = outer - 1;
    for (; d >= 0; d--) {
      at[d] = (at[d] as number) + 1;
      if ((at[d] as number) < (fromPlaces[d] as Float64Array).length) break;
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

const ONE_PLACE = new Float64Array(1);

/** Writes the fill value (null: zeros) into `count` elements. */
export function fillWith(out: Uint8Array, at: number, count: number, size: number, fill: Uint8Array | null): void {
  const end = at + count * size;
  if (!fill) {
    out.fill(0, at, end);
    return;
  }
  out.set(fill, at);
  // Doubling: each copy is twice as long as the one before.
  for (let done = at + size; done < end; ) {
    const length = Math.min(done - at, end - done);
    out.copyWithin(done, at, at + length);
    done += length;
  }
}
