export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] as number;
}

interface Figure {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  readonly limit?: number;
}

export const figures: Figure[] = [];

/** Prints a figure beside the one it should not exceed. */
export function report(what: string, value: number, unit: string, { limit }: { limit?: number } = {}): void {
  figures.push({ what, value, unit, ...(limit === undefined ? {} : { limit }) });
  const verdict = limit === undefined ? '' : value <= limit ? `  (at most ${limit})` : `  OVER THE LIMIT of ${limit}`;
  console.log(`${what.padEnd(84)} ${value.toPrecision(3).padStart(9)} ${unit}${verdict}`);
}
