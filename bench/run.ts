import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { H5LogError, isH5LogError } from 'h5log';
import { workloads } from '../src/bench/workloads.ts';
import { reportBounds } from './bounds.ts';
import { builtWorkload } from './built.ts';
import { chart } from './chart.ts';
import { commits } from './commits.ts';
import { compare } from './compare.ts';
import { compareE3sm } from './e3sm.ts';
import { reportFiles } from './e3sm-files.ts';
import { reportRanks } from './e3sm-ranks.ts';
import { byLayout, isLayoutDrawn, reportLayouts } from './layouts.ts';
import { log } from './log.ts';
import { machine } from './machine.ts';
import { many } from './many.ts';
import { memory } from './memory.ts';
import { readOptions } from './options.ts';
import { ordinary } from './ordinary.ts';
import { parallel } from './parallel.ts';
import { findPeers } from './peers/all.ts';
import { external } from './peers/external.ts';
import type { Peer } from './peers/peer.ts';
import { publish } from './publish.ts';
import { replay } from './replay.ts';
import { figures, report } from './report.ts';
import { structure } from './structure.ts';
import { type Comparison, ratioOf, tableLines } from './table.ts';

/** How often everybody has a turn, but for those that take long. */
const ROUNDS = 3;
/** What resembles another bar too much to be in the picture. */
const NOT_DRAWN = ['small/ordered/read', 'small/ordered/random'];

const suites: Readonly<Record<string, () => void | Promise<void>>> = {
  structure,
  many,
  commits,
  log,
  memory,
  replay,
  publish,
  parallel,
  ordinary,
};
// A suite has more of the same than a workload of its name.
const shipped = workloads.filter(({ name }) => suites[name] === undefined);
const compared = [...shipped.map(({ name }) => name), 'e3sm'];

const onTurn = (program: string, round: number): void => {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${program}, turn ${round + 1}\r`);
};

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2), Object.keys(suites), compared);
  const comparisons: Comparison[] = [];
  const skipped: string[] = [];
  const skip = (line: string): void => {
    if (skipped.includes(line)) return;
    skipped.push(line);
    console.log(`skipped: ${line}`);
  };
  const peers: Peer[] = [];
  if (options.withPeers && options.names.some((name) => shipped.some((one) => one.name === name))) {
    for (const found of await findPeers()) {
      if ('missing' in found) skip(`${found.name}: ${found.missing}`);
      else peers.push(found);
    }
  }
  const folder = mkdtempSync(join(tmpdir(), 'h5log-bench-'));
  try {
    for (const name of options.names) {
      console.log(`\n${name}`);
      const workload = shipped.find((one) => one.name === name);
      if (workload) {
        const { external: command, scale, full } = options;
        const all = command === undefined ? peers : [...peers, external(command, name, workload.headline)];
        const outcome = await compare(builtWorkload(workload), all, { folder, scale, full, rounds: ROUNDS, onTurn });
        const shown = name === 'layouts' ? byLayout(outcome.comparisons) : outcome.comparisons;
        show(shown);
        for (const { id, what, value, unit } of outcome.figures) report(`${id}: ${what.trim()}`, value, unit);
        if (name === 'layouts') reportLayouts(shown);
        else reportBounds(shown, false);
        comparisons.push(...shown);
      } else if (name === 'e3sm') {
        const outcome = await compareE3sm(folder, options.withPeers, onTurn);
        outcome.skipped.forEach(skip);
        show(outcome.comparisons);
        reportBounds(outcome.comparisons, outcome.isReal);
        if (outcome.isReal) {
          await reportRanks(folder, outcome.args);
          await reportFiles(folder, outcome.args);
        }
        comparisons.push(...outcome.comparisons);
      } else {
        await suites[name]?.();
      }
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  if (options.chart !== undefined) writeFileSync(options.chart, drawn(comparisons));
  if (options.json) {
    const { scale, full } = options;
    const withRatios = comparisons.map((one) => ({
      ...one,
      results: one.results.map((result) => ({ ...result, ratio: ratioOf(one, result) })),
    }));
    console.log(JSON.stringify({ machine: machine(), scale, full, figures, comparisons: withRatios, skipped }));
  }
}

/** Times that only we have are one list. */
function show(comparisons: readonly Comparison[]): void {
  for (const { id, what, results } of comparisons)
    if (results.length === 1) report(`${id}: ${what}`, results[0].seconds, 's');
  for (const comparison of comparisons)
    if (comparison.results.length > 1) console.log(`\n${tableLines(comparison).join('\n')}`);
  console.log('');
}

function drawn(comparisons: readonly Comparison[]): string {
  const isDrawn = (id: string): boolean => (id.startsWith('layouts/') ? isLayoutDrawn(id) : !NOT_DRAWN.includes(id));
  const several = comparisons.filter(({ id, results }) => results.length > 1 && isDrawn(id));
  if (several.length === 0)
    throw new H5LogError('OPTION', 'there is nothing to draw: no workload was compared with a peer');
  const { cores, node, platform } = machine();
  const note = `Seconds on a logarithmic scale, shorter is faster. ${cores} cores, Node ${node}, ${platform}.`;
  const isOfLayouts = several.every(({ id }) => id.startsWith('layouts/'));
  const title = isOfLayouts ? 'Where logs live, and how tables are written' : 'h5log and others, in one run';
  return chart(several, { title, note });
}

try {
  await main();
} catch (error) {
  console.error(isH5LogError(error) ? error.message : error);
  process.exitCode = 1;
}
