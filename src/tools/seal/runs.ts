/*
 * A box inside a larger one, both in row-major order: as few stretches of elements as there are.
 */

type Numbers = ArrayLike<number>;

/** Whether a box is one stretch of the box of this shape that it lies in. */
export function straight(shape: Numbers, count: Numbers): boolean {
  let d = 0;
  while (d < shape.length && count[d] === 1) d++;
  for (d++; d < shape.length; d++) if (count[d] !== shape[d]) return false;
  return true;
}

/** The number of an element in row-major order. */
export function positionIn(shape: Numbers, at: Numbers): number {
  let position = 0;
  for (let d = 0; d < shape.length; d++) position = position * (shape[d] as number) + (at[d] as number);
  return position;
}

/** Stretches of `run` elements, `times` of them, one every `stride` elements. */
export interface Runs {
  readonly run: number;
  readonly times: number;
  readonly stride: number;
}

/** The stretches of a box, or null if they do not follow one another at equal distances. */
export function runsOf(shape: Numbers, count: Numbers): Runs | null {
  let run = 1;
  let [times, stride] = [1, 1];
  let step = 1;
  for (let d = shape.length - 1; d >= 0; d--) {
    const n = count[d] as number;
    if (n > 1) {
      if (times === 1 && step === run) run *= n;
      else if (times === 1) [times, stride] = [n, step];
      else if (times * stride === step) times *= n;
      else return null;
    }
    step *= shape[d] as number;
  }
  return { run, times, stride: times === 1 ? run : stride };
}

/** Cuts a box into boxes of at most `most` elements that follow one another in row-major order. */
export function* rowBoxes(
  shape: readonly number[],
  most: number,
): Generator<{ start: Float64Array; count: Float64Array }, void, undefined> {
  const rank = shape.length;
  if (shape.some((n) => n === 0)) return;
  // From dimension `cut + 1` on everything fits; dimension `cut` is taken in steps.
  let cut = rank - 1;
  let inner = 1;
  while (cut > 0 && inner * (shape[cut] as number) <= most) inner *= shape[cut--] as number;
  const step = Math.max(1, Math.floor(most / inner));
  const start = new Float64Array(rank);
  for (;;) {
    const count = Float64Array.from(shape, (n, d) => (d < cut ? 1 : n));
    if (rank > 0) count[cut] = Math.min(step, (shape[cut] as number) - (start[cut] as number));
    yield { start: start.slice(), count };
    let d = cut;
    for (; d >= 0; d--) {
      start[d] = (start[d] as number) + (d === cut ? step : 1);
      if ((start[d] as number) < (shape[d] as number)) break;
      start[d] = 0;
    }
    if (d < 0) return;
  }
}
