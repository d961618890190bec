export { median } from '../src/bench/workload.ts';

export const best = (rates: readonly number[]): number => Math.max(...rates);

interface Figure {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  readonly limit?: number;
  readonly least?: number;
}

export const figures: Figure[] = [];

/** Prints a figure beside the one it should not exceed, or should reach. */
export function report(
  what: string,
  value: number,
  unit: string,
  bound: { limit?: number; least?: number } = {},
): void {
  figures.push({ what, value, unit, ...bound });
  const { limit, least } = bound;
  const wanted = limit !== undefined ? `at most ${limit}` : least !== undefined ? `at least ${least}` : '';
  const missed = (limit !== undefined && value > limit) || (least !== undefined && value < least);
  const number = value >= 1000 ? value.toFixed(0) : value.toPrecision(3);
  console.log(
    `${what.padEnd(84)} ${number.padStart(9)} ${unit}${wanted === '' ? '' : missed ? `  MISSED: ${wanted}` : `  (${wanted})`}`,
  );
}
