import { appendFileSync, existsSync, readFileSync } from 'node:fs';

/** What a suite did: programs, steps, files, images ... */
export type Figures = Readonly<Record<string, number>>;

/** One call of {@link count}: a line of JSON in the file that H5LOG_COUNTS names. */
interface Counted {
  readonly suite: string;
  readonly figures: Figures;
}

/**
 * Adds what a suite did to the counts that are printed after the run. Call it when the work is done. It also works in a child
 * process or a thread, which inherit H5LOG_COUNTS.
 *
 * @example count('log model', { programs: 1000, steps: 31_200 });
 */
export function count(suite: string, figures: Figures): void {
  const file = process.env.H5LOG_COUNTS;
  if (file) appendFileSync(file, `${JSON.stringify({ suite, figures } satisfies Counted)}\n`);
}

/** The sums of all calls of {@link count} that wrote to a file, by suite. */
export function readCounts(file: string): Map<string, Figures> {
  const sums = new Map<string, Figures>();
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
  for (const line of lines) {
    if (line === '') continue;
    const { suite, figures } = JSON.parse(line) as Counted;
    sums.set(suite, added(sums.get(suite) ?? {}, figures));
  }
  return sums;
}

/** The sum of two records, name by name. */
export function added(a: Figures, b: Figures): Figures {
  const sum: Record<string, number> = { ...a };
  for (const [what, n] of Object.entries(b)) sum[what] = (sum[what] ?? 0) + n;
  return sum;
}

/** @example listed({ programs: 1000, steps: 31_200 }) // '1,000 programs, 31,200 steps' */
export function listed(figures: Figures): string {
  return Object.entries(figures)
    .map(([what, n]) => `${n.toLocaleString('en')} ${what}`)
    .join(', ');
}
