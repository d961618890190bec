// Runs the random suites with new seeds until the time is over: npm run soak -- --minutes 30
import { randomInt } from 'node:crypto';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { listed } from '../test/counts.ts';
import { random } from '../test/seed.ts';
import { root } from './root.ts';
import { randomSuites, type Suite } from './soak/suites.ts';
import { Totals } from './soak/totals.ts';
import { runTurn, type Turn } from './soak/turn.ts';

const USAGE = `npm run soak -- [options]

  --minutes N   how long to go on; a suite that has begun is finished (default: 10)
  --suite NAME  a suite or a folder of suites, may be given several times (default: all)
  --seed N      the seed of the first turn; later turns draw theirs from it (default: a new one)
  --scale N     the part of the repetitions of test:full that a suite does in a turn (default: 0.1;
                with much less, tests that want to have seen every kind of case may fail)
  --jobs N      how many suites run side by side (default: 1)
  --list        names the suites and what they did in all runs so far
`;

const failures = join(root, 'soak-failures');
const overall = new Totals(join(root, 'soak-totals.json'));
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    suite: { type: 'string', multiple: true, default: [] },
    seed: { type: 'string' },
    scale: { type: 'string', default: '0.1' },
    jobs: { type: 'string', default: '1' },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) process.stdout.write(USAGE);
else if (values.list) for (const { name } of chosen()) process.stdout.write(`${overall.line(name)}\n`);
else process.exitCode = await soak();

/** Goes through the suites, turn after turn; gives the exit code. */
async function soak(): Promise<number> {
  const minutes = positive('minutes', values.minutes);
  const scale = positive('scale', values.scale);
  const suites = chosen();
  const turns = turnsOf(suites, values.seed === undefined ? randomInt(2 ** 31) : positive('seed', values.seed));
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  const end = performance.now() + minutes * 60_000;
  const sums = new Totals();
  let begun = 0;
  const work = async (): Promise<void> => {
    while (!stop.signal.aborted && (begun === 0 || performance.now() < end)) {
      begun++;
      const { suite, seed } = turns.next().value as Begun;
      const turn = await runTurn(suite, { seed, scale, failures, signal: stop.signal });
      if (turn.outcome === 'interrupted') return;
      sums.add(turn);
      overall.add(turn);
      report(turn);
    }
  };
  process.stdout.write(`${suites.length} suites, for ${minutes} minutes\n`);
  await Promise.all(Array.from({ length: positive('jobs', values.jobs) }, work));
  process.stdout.write(`\nThis run\n${[...sums.lines(), sums.sum()].join('\n')}\n`);
  process.stdout.write(`\nAll runs (soak-totals.json)\n${overall.sum()}\n`);
  return stop.signal.aborted ? 130 : sums.failures > 0 ? 1 : 0;
}

interface Begun {
  readonly suite: Suite;
  readonly seed: number;
}

/** The suites in turn, for ever, with another seed each time around. Those that had the fewest turns in earlier runs come first. */
function* turnsOf(suites: readonly Suite[], first: number): Generator<Begun, never> {
  const turns = new Map(suites.map(({ name }) => [name, overall.of(name).turns]));
  const order = [...suites].sort((a, b) => (turns.get(a.name) ?? 0) - (turns.get(b.name) ?? 0));
  const next = random(first);
  for (let seed = first; ; seed = Math.floor(next() * 2 ** 31)) for (const suite of order) yield { suite, seed };
}

function chosen(): Suite[] {
  const all = randomSuites();
  if (values.suite.length === 0) return all;
  const matches = (wanted: string, { name }: Suite): boolean => name === wanted || name.startsWith(`${wanted}/`);
  for (const wanted of values.suite) {
    if (!all.some((suite) => matches(wanted, suite))) fail(`there is no random suite ${wanted}; --list names them`);
  }
  return all.filter((suite) => values.suite.some((wanted) => matches(wanted, suite)));
}

function report({ suite, seed, outcome, seconds, counts, kept }: Turn): void {
  const done = [...counts].map(([name, figures]) => `; ${name}: ${listed(figures)}`).join('');
  const where = kept === undefined ? '' : `; kept in ${relative(root, kept)}`;
  process.stdout.write(`${suite}, seed ${seed}: ${outcome} in ${seconds.toFixed(1)} s${where}${done}\n`);
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0) || value === Infinity) fail(`--${name} is a number, not ${text}`);
  return value;
}

function fail(message: string): never {
  process.stderr.write(`${message}\n\n${USAGE}`);
  process.exit(2);
}
