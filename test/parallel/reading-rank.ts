import * as fs from 'node:fs';
import { readdirSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import type { Communicator } from '../../src/comm/communicator.ts';
import { solo } from '../../src/comm/solo.ts';
import { T } from '../../src/dtype/construct.ts';
import { File } from '../../src/index.ts';
import { type Outcome, outcomeOf, outcomeOfAsync } from './outcome.ts';

type Calls = Record<string, (...args: unknown[]) => unknown>;
const all = (fs as unknown as { default: Calls }).default;

/** Bytes that this thread reads by blocking calls while something is done. */
function readsOf(work: () => void): { calls: number; bytes: number } {
  const real = all['readSync'] as (...args: unknown[]) => unknown;
  let calls = 0;
  let bytes = 0;
  all['readSync'] = (...args) => {
    const count = real(...args) as number;
    calls++;
    bytes += count;
    return count;
  };
  syncBuiltinESMExports();
  try {
    work();
  } finally {
    all['readSync'] = real;
    syncBuiltinESMExports();
  }
  return { calls, bytes };
}

/** Calls `before` before the first blocking read from now on, or `after` behind it. */
function atNextRead(when: 'before' | 'after', work: () => void): void {
  const real = all['readSync'] as (...args: unknown[]) => unknown;
  const restore = (): void => {
    all['readSync'] = real;
    syncBuiltinESMExports();
  };
  all['readSync'] = (...args) => {
    restore();
    if (when === 'before') work();
    const count = real(...args);
    if (when === 'after') work();
    return count;
  };
  syncBuiltinESMExports();
}

const openFiles = (): number => readdirSync('/proc/self/fd').length;

/** One rank reads while the others do other things. */
async function independent(comm: Communicator, path: string, subfiles: number): Promise<Record<string, unknown>> {
  const file = File.createSync(path, { comm, subfiles });
  const t = file.createDataset('/t', { dtype: 'int32', shape: [comm.size, 4] });
  const row = (value: number): void => t.write(new Int32Array(4).fill(value), { start: [comm.rank, 0], count: [1, 4] });
  const seen: Record<string, unknown> = {};
  row(10 + comm.rank);
  file.flushSync();
  row(20 + comm.rank);
  // Each rank alone, in turn, while the others wait for it at a barrier of the user's.
  for (let rank = 0; rank < comm.size; rank++) {
    if (rank === comm.rank) {
      seen['sync'] = [...(t.readSync() as Int32Array)];
      seen['async'] = [...((await t.read()) as Int32Array)];
      seen['many'] = [...((await t.readMany([1, 0, 0, 2], [1, 2])) as Int32Array)];
      seen['manySync'] = [...(t.readManySync([1, 0, 0, 2], [1, 2]) as Int32Array)];
    }
    comm.barrier();
  }
  const promise = t.read();
  file.flushSync();
  // Asked for before the flush: it sees what was there then.
  seen['asked before'] = [...((await promise) as Int32Array)];
  seen['after'] = [...(t.readSync() as Int32Array)];
  file.closeSync();
  seen['closed'] = [...(t.readSync() as Int32Array)];
  seen['closed async'] = [...((await t.read()) as Int32Array)];
  return seen;
}

export interface Cost {
  readonly again: { calls: number; bytes: number };
  readonly next: number[];
}

/** What reading costs between flushes, and after each of many. */
function cost(comm: Communicator, path: string, subfiles: number): Cost {
  const file = File.createSync(path, { comm, subfiles });
  const t = file.createDataset('/t', { dtype: 'float64', shape: [comm.size * 4096] });
  const post = (k: number): void => {
    // Every second element of its own part: as many blocks as elements.
    const data = new Float64Array(2048).fill(k);
    const starts = Float64Array.from({ length: 2048 }, (_, i) => comm.rank * 4096 + 2 * i);
    t.writeMany(data, starts, [1]);
  };
  post(0);
  file.flushSync();
  const little = { start: [5], count: [3] };
  t.readSync(little);
  const again = readsOf(() => {
    for (let i = 0; i < 1000; i++) t.readSync(little);
  });
  const next: number[] = [];
  for (let k = 1; k <= 24; k++) {
    post(k);
    file.flushSync();
    next.push(readsOf(() => t.readSync(little)).bytes);
  }
  file.closeSync();
  return { again, next };
}

export interface Watched {
  readonly outcomes: readonly Outcome[];
  readonly seen: readonly unknown[];
}

/** Readers on several ranks, while rank 0 also has a writer of its own, which goes on in the middle of what they do together. */
async function following(comm: Communicator, path: string, subfiles: number): Promise<Watched> {
  const seen: unknown[] = [];
  const outcomes: Outcome[] = [];
  const writer = comm.rank === 0 ? File.createSync(path, { comm: solo(), subfiles }) : null;
  const w = writer?.createDataset('/t', { dtype: 'int32', shape: [1], maxShape: [null] });
  const commit = (value: number): void => {
    w?.write(Int32Array.of(value), { start: [0], count: [1] });
    writer?.flushSync();
  };
  commit(1);
  comm.barrier();
  // Rank 0 opens, then commits; the others look only then.
  if (comm.rank === 0) {
    atNextRead('after', () => {
      commit(2);
      comm.barrier();
    });
  } else atNextRead('before', () => comm.barrier());
  const file = File.openSync(path, { comm });
  const look = (): unknown => [file.sequence, (file.dataset('/t').readSync() as Int32Array)[0], file.commits().length];
  seen.push(['opened', look()]);
  // The state that some had seen already must not be missed.
  seen.push(['refreshed', file.refreshSync(), look()]);
  seen.push(['nothing new', file.refreshSync(), look()]);
  comm.barrier();
  commit(3);
  comm.barrier();
  const before = openFiles();
  seen.push(['third', await file.refresh(), look()]);
  for (let k = 4; k < 24; k++) {
    comm.barrier();
    commit(k);
    comm.barrier();
    if (!file.refreshSync()) seen.push(`${k} was missed`);
    look();
  }
  comm.barrier();
  seen.push(['more open files', comm.rank === 0 ? openFiles() > before + 3 : false]);
  comm.barrier();
  const past = File.openSync(path, { comm, asOf: 3 });
  seen.push(['past', past.sequence, (past.dataset('/t').readSync() as Int32Array)[0]]);
  past.closeSync();
  // One rank's file cannot be read any more: all of them are told.
  if (comm.rank === comm.size - 1) {
    atNextRead('before', () => {
      throw Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' });
    });
  }
  outcomes.push(outcomeOf(() => file.refreshSync()));
  seen.push(['after the error', file.refreshSync(), look()]);
  // Watching ends on all ranks when one of them wants it to.
  const abort = new AbortController();
  const commits: number[] = [];
  const watching = (async (): Promise<void> => {
    for await (const { sequence } of file.watch({ signal: abort.signal, interval: 5 })) {
      commits.push(sequence);
      if (comm.rank === 1 && commits.length === 3) abort.abort();
      if (comm.rank === 0 && commits.length < 3) commit(100 + commits.length);
    }
  })();
  commit(99);
  outcomes.push(await outcomeOfAsync(() => watching));
  seen.push(['watched', commits]);
  file.closeSync();
  writer?.closeSync();
  return { outcomes, seen };
}

/** What is not written yet looks the same on all ranks: shapes, attributes, links. */
function structure(comm: Communicator, path: string): unknown[] {
  const file = File.createSync(path, { comm });
  const t = file.createDataset('/g/t', { dtype: 'int32', shape: [4], maxShape: [null], fill: -1 });
  t.attributes.set('units', 'K');
  t.attributes.set('to', '/g/t', { dtype: T.reference });
  file.createHardLink('/h', '/g/t');
  const look = (): unknown => [
    [...file.keys()],
    t.attributes.get('units'),
    t.attributes.get('to'),
    file.dataset('/h').shape,
    [...(t.readSync() as Int32Array)],
  ];
  const seen: unknown[] = [look()];
  file.flushSync();
  seen.push(look());
  if (comm.rank === 0) t.write(Int32Array.of(1, 2, 3, 4));
  file.flushSync();
  seen.push(look());
  t.resize([2]);
  seen.push(look());
  t.resize([4]);
  // What was cut off is gone, on every rank, flushed or not.
  seen.push(look());
  file.flushSync();
  seen.push(look());
  file.move('/h', '/i');
  file.delete('/g/t');
  seen.push([[...file.keys()], [...(file.dataset('/i').readSync() as Int32Array)]]);
  file.closeSync();
  return seen;
}

export default (
  comm: Communicator,
  { work, path, subfiles }: { work: string; path: string; subfiles: number },
): unknown => {
  if (work === 'independent') return independent(comm, path, subfiles);
  if (work === 'cost') return cost(comm, path, subfiles);
  return work === 'following' ? following(comm, path, subfiles) : structure(comm, path);
};
