/*
 * A box inside a larger one, both in row-major order: as few stretches of elements as there are.
 */

type Numbers = ArrayLike<number>;

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
