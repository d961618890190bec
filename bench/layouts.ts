import { report } from './report.ts';
import type { Comparison, Result } from './table.ts';

/** How much faster a little of one of 500 datasets is read where it has a log of its own. */
const FASTER = 20;

/** How the seconds of each layout came about, by what was measured: every layout is one of the programs that did the same. */
export function byLayout(comparisons: readonly Comparison[]): Comparison[] {
  const found = new Map<string, { what: string; results: Result[] }>();
  for (const { id, what, results } of comparisons) {
    const [, name, threads, layout = '', metric = 'post'] = id.split('/');
    const to = `layouts/${name}/${threads}/${metric}`;
    // The title names the case and the layout; those of other metrics are their names alone.
    const words = metric === 'post' ? what.slice(0, what.lastIndexOf(`, ${layout.replace('-', ', ')}`)) : what;
    const before = found.get(`layouts/${name}/${threads}/post`)?.what;
    const known = found.get(to) ?? { what: metric === 'post' ? words : `${before}: ${words}`, results: [] };
    known.results.push({ ...results[0], program: layout.replace('-', ', ') });
    found.set(to, known);
  }
  return Array.from(found, ([id, { what, results }]) => ({
    id,
    what: id.endsWith('/post') ? `${what}: post` : what,
    results: results as [Result, ...Result[]],
  }));
}

/** Whether it is in the picture, which shows what differs most. */
export const isLayoutDrawn = (id: string): boolean =>
  /^layouts\/(many\/(1|4)|small\/1|e3sm\/4)\/(post|flush|open-first|read)$/.test(id);

/** Prints what we want to reach beside what we have. */
export function reportLayouts(comparisons: readonly Comparison[]): void {
  const [first] = comparisons.filter(({ id }) => id === 'layouts/many/1/open-first');
  const seconds = (program: string): number => first?.results.find((one) => one.program === program)?.seconds ?? NaN;
  const faster = seconds('shared') / seconds('dataset');
  report('500 datasets, opened and 100 elements of one read: faster with a log for each', faster, 'x', {
    least: FASTER,
  });
}
