// A process that commits until it is killed; see kill.test.ts. What it says goes out at once: a line said is a promise made.
import { writeSync } from 'node:fs';
import { type CreateOptions, File } from '../../src/index.ts';
import { applyCommit } from './states.ts';

const [path, task, durability, seed, commits, rate, publish] = process.argv.slice(2) as [
  string,
  'create' | 'exclusive' | 'open',
  'process' | 'power',
  string,
  string,
  string,
  string | undefined,
];
const publishing =
  publish === undefined ? {} : { publish: JSON.parse(publish) as NonNullable<CreateOptions['publish']> };
/** Half of the files have logs or tables that the original does not know. */
const layout: Pick<CreateOptions, 'logs' | 'table'> =
  Number(seed) % 2 === 0
    ? {}
    : {
        logs: (['shared', 'group', 'dataset'] as const)[Math.floor(Number(seed) / 2) % 3] as 'group',
        ...(Math.floor(Number(seed) / 6) % 2 === 0 && { table: { format: 'classic' as const } }),
      };
const say = (line: string): void => void writeSync(1, `${line}\n`);

let state = Number(seed) | 0;
function below(end: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) | 0;
  return Math.floor(((state >>> 8) / 2 ** 24) * end);
}

async function start(): Promise<File> {
  const sync = below(2) === 0;
  say('start');
  if (task === 'open') {
    const options = { mode: 'r+', durability, ...publishing } as const;
    return sync ? File.openSync(path, options) : File.open(path, options);
  }
  const options = { durability, exclusive: task === 'exclusive', ...publishing, ...layout };
  return sync ? File.createSync(path, options) : File.create(path, options);
}

let n = 0;
/** Changes the file for the next commit, and says so before any of it can be in the file. */
function next(file: File): number {
  say(`begin ${++n}`);
  applyCommit(file, n);
  return n;
}
const done = (commit: number): void => say(`commit ${commit}`);

/** One or two commits, in one of the ways in which the calls can be mixed. */
async function step(file: File): Promise<void> {
  const way = below(4);
  const first = next(file);
  if (way === 0) {
    file.flushSync();
    return done(first);
  }
  const flush = file.flush().then(() => done(first));
  if (way === 1) return flush;
  const second = next(file);
  if (way === 2) {
    const behind = file.flush().then(() => done(second));
    await Promise.all([flush, behind]);
  } else {
    file.flushSync();
    done(second);
    await flush;
  }
}

const began = performance.now();
/** Waits until as many commits are due as were made. */
async function pace(): Promise<void> {
  const early = began + (n / Number(rate)) * 1000 - performance.now();
  if (early > 0) await new Promise((resolve) => setTimeout(resolve, early));
}

let file = await start();
n = Number(file.attributes.get('commit') ?? 0);
say('ready');
for (;;) {
  for (let i = 0; i < Number(commits); i++) {
    await step(file);
    if (Number(rate) > 0) await pace();
  }
  say('closing');
  if (below(2) === 0) file.closeSync();
  else await file.close();
  say('closed');
  file = await File.open(path, { mode: 'r+', durability });
  say('opened');
}
