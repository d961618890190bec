import type { Communicator } from '../../src/comm/communicator.ts';
import { File } from '../../src/index.ts';
import { random } from '../seed.ts';

/** A number of flushes by some of the ranks. */
export interface Session {
  readonly ranks: number;
  readonly flushes: number;
  /** Create with so many subfiles; without, the file is opened and appended to. */
  readonly subfiles?: number | 'node';
  readonly environment?: Readonly<Record<string, string>>;
}

export interface Program {
  readonly path: string;
  readonly seed: number;
  readonly sessions: readonly Session[];
}

/** By sequence, what the dataset holds then. */
export type States = Readonly<Record<number, readonly number[]>>;

export const LENGTH = 40;

interface Post {
  readonly start: number;
  readonly values: Int32Array;
}

/** What each rank posts before a flush: mostly overlapping one another, sometimes nothing at all. */
function postsOf(next: () => number, ranks: number, value: () => number): Post[][] {
  const quiet = next() < 0.3 ? Math.floor(next() * ranks) : ranks;
  return Array.from({ length: ranks }, (_, rank) => {
    const posts = Array.from({ length: Math.floor(next() * 4) }, () => {
      const start = Math.floor(next() * LENGTH);
      const values = new Int32Array(1 + Math.floor(next() * (LENGTH - start))).fill(value());
      return { start, values };
    });
    return rank >= quiet ? [] : posts;
  });
}

function mustEqual(what: string, seen: ArrayLike<number>, wanted: ArrayLike<number>): void {
  const same = seen.length === wanted.length && Array.from(seen).every((v, i) => v === wanted[i]);
  if (!same) throw new Error(`${what}: ${Array.from(seen)} instead of ${Array.from(wanted)}`);
}

/** Every rank knows what all of them post, and looks after each flush whether it sees just that. */
export function runSessions(world: Communicator, { path, seed, sessions }: Program): States {
  const states: Record<number, number[]> = {};
  const next = random(seed);
  const model = new Int32Array(LENGTH);
  let counter = 0;
  const value = (): number => ++counter;
  for (const { ranks, flushes, subfiles, environment } of sessions) {
    const takesPart = world.rank < ranks;
    const comm = world.split(takesPart ? 0 : 1);
    for (const [name, text] of Object.entries(environment ?? {})) process.env[name] = text;
    const isNew = subfiles !== undefined || environment !== undefined;
    let file: File | null = null;
    if (takesPart) {
      file = isNew
        ? File.createSync(path, { comm, ...(subfiles === undefined ? {} : { subfiles }) })
        : File.openSync(path, { comm, mode: 'r+' });
    }
    for (const name of Object.keys(environment ?? {})) delete process.env[name];
    if (isNew) {
      file?.createDataset('/t', { dtype: 'int32', shape: [LENGTH] });
      file?.flushSync();
      model.fill(0);
      for (const key of Object.keys(states)) delete states[Number(key)];
    }
    const t = file?.dataset('/t');
    if (t) mustEqual(`rank ${comm.rank} of ${ranks} opens`, t.readSync() as Int32Array, model);
    for (let k = 0; k < flushes; k++) {
      const posts = postsOf(next, ranks, value);
      if (file && t) {
        // Before the flush a rank sees its own posts over what is committed, and not those of the others.
        const own = model.slice();
        for (const { start, values } of posts[comm.rank] ?? []) {
          t.write(values, { start: [start], count: [values.length] });
          own.set(values, start);
        }
        if (k % 3 === 0) mustEqual(`rank ${comm.rank}, posted`, t.readSync() as Int32Array, own);
      }
      for (const list of posts) for (const { start, values } of list) model.set(values, start);
      if (!file || !t) continue;
      const { sequence } = file.flushSync();
      states[sequence] = Array.from(model);
      const who = k % ranks;
      // One rank reads now, the others at the end: reading is nobody else's business.
      if (comm.rank === who || k % 10 === 9)
        mustEqual(`rank ${comm.rank}, flush ${k}`, t.readSync() as Int32Array, model);
    }
    if (t) mustEqual(`rank ${comm.rank} at the end`, t.readSync() as Int32Array, model);
    file?.closeSync();
    if (t) mustEqual(`rank ${comm.rank}, closed`, t.readSync() as Int32Array, model);
    world.barrier();
  }
  return states;
}

export default (world: Communicator, programs: readonly Program[]): States[] =>
  programs.map((program) => runSessions(world, program));
