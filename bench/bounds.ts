import { report } from './report.ts';
import type { Comparison, Result } from './table.ts';

/** How much faster we want to write small blocks than libhdf5 does. */
const SMALL = 20;
/** Of the rate of plain writes. */
const STREAM = 0.85;
/** Seconds on so many ranks; the first time in a process may take twice as long. */
const E3SM: Readonly<Record<string, number>> = { 'e3sm/1': 0.08, 'e3sm/2': 0.1, 'e3sm/4': 0.15 };

/** Prints what we want to reach beside what we have. */
export function reportBounds(comparisons: readonly Comparison[], isRealCase: boolean): void {
  for (const comparison of comparisons) {
    if (/^small\/.*\/write$/.test(comparison.id)) smallBounds(comparison);
    if (isRealCase) e3smBounds(comparison);
  }
  const ours = (id: string): number | undefined => comparisons.find((one) => one.id === id)?.results[0].seconds;
  const [plain, lent] = [ours('stream/plain'), ours('stream/async-lent')];
  if (plain !== undefined && lent !== undefined)
    report('stream/async-lent: rate of the plain writes of the same run', plain / lent, 'x', { least: STREAM });
}

function smallBounds({ id, results: [ours, ...others] }: Comparison): void {
  for (const library of ['h5py', 'h5wasm']) {
    const seconds = others.filter(({ program }) => program.startsWith(library)).map((result) => result.seconds);
    if (seconds.length === 0) continue;
    report(`${id}: faster than ${library} (its best)`, Math.min(...seconds) / ours.seconds, 'x', { least: SMALL });
  }
}

function e3smBounds({ id, results }: Comparison): void {
  const limit = E3SM[id];
  if (limit === undefined) return;
  const own = (results as readonly Result[]).filter(({ program }) => program.startsWith('h5log'));
  for (const { program, seconds, cold } of own) {
    report(`${id}: ${program}, warm`, seconds, 's', { limit });
    if (cold !== undefined) report(`${id}: ${program}, cold`, cold, 's', { limit: 2 * limit });
  }
}
