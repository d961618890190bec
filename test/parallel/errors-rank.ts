import * as fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import type { Communicator } from '../../src/comm/communicator.ts';
import { type AttributeValue, type CreateOptions, File } from '../../src/index.ts';
import { memoryStorage } from '../../src/storage/memory.ts';
import { type Outcome, outcomeOf } from './outcome.ts';

export interface Told {
  readonly name: string;
  readonly outcome: Outcome;
}

/** Calls that fail when a file is made or opened, on all ranks because of one. */
export function beginnings(comm: Communicator, folder: string): Told[] {
  const told: Told[] = [];
  const note = (name: string, work: () => File): void => {
    told.push({ name, outcome: outcomeOf(() => work().closeSync()) });
  };
  const at = (name: string): string => `${folder}/${name}`;
  const create = (name: string, options: CreateOptions): void =>
    note(`create ${JSON.stringify(options)}`, () => File.createSync(at(name), { ...options, comm }));
  note('exists', () => File.createSync(at('there.h5'), { comm, exclusive: true }));
  note('not found', () => File.openSync(at('nowhere.h5'), { comm }));
  note('not found r+', () => File.openSync(at('nowhere.h5'), { comm, mode: 'r+' }));
  note('no folder', () => File.createSync(at('no/folder.h5'), { comm }));
  note('no folder, subfiles', () => File.createSync(at('no/folder.h5'), { comm, subfiles: 2 }));
  note('locked', () => File.openSync(at('locked.h5'), { comm, mode: 'r+' }));
  note('locked create', () => File.createSync(at('locked.h5'), { comm }));
  note('regular r+', () => File.openSync(at('regular.h5'), { comm, mode: 'r+' }));
  note('regular', () => File.openSync(at('regular.h5'), { comm }));
  for (const value of ['two', '1.5']) {
    note(`H5VL_LOG_NSUBFILES=${value}`, () => {
      process.env['H5VL_LOG_NSUBFILES'] = value;
      try {
        return File.createSync(at('new.h5'), { comm });
      } finally {
        delete process.env['H5VL_LOG_NSUBFILES'];
      }
    });
  }
  note('truncated', () => File.openSync(at('truncated.h5'), { comm }));
  note('truncated r+', () => File.openSync(at('truncated.h5'), { comm, mode: 'r+' }));
  note('not HDF5', () => File.openSync(at('text.h5'), { comm }));
  note('a storage', () => File.createSync(memoryStorage(), { comm }));
  note('a storage r+', () => File.openSync(memoryStorage(), { comm, mode: 'r+' }));
  note('unknown commit', () => File.openSync(at('there.h5'), { comm, asOf: 77 }));
  note('asOf r+', () => File.openSync(at('there.h5'), { comm, asOf: 0, mode: 'r+' }));
  create('new.h5', { onBufferFull: 'flush' });
  create('new.h5', { commitOnSignal: true });
  create('new.h5', { storage: 'mpi-io' });
  create('new.h5', { timeout: -1 });
  create('new.h5', { timeout: 0 });
  create('new.h5', { subfiles: -1 });
  create('new.h5', { subfiles: 1.5 });
  create('new.h5', { subfiles: 'some' as 'node' });
  create('new.h5', { durability: 'none' as 'power' });
  create('new.h5', { table: { compress: 'much' as unknown as number } });
  note('folder of subfiles is a file', () => File.createSync(at('blocked.h5'), { comm, subfiles: 2 }));
  // What was left alone works.
  note('fine', () => File.openSync(at('there.h5'), { comm, mode: 'r+' }));
  note('fine new', () => File.createSync(at('new.h5'), { comm, subfiles: 2 }));
  return told;
}

type Named = 'openSync' | 'writevSync' | 'writeSync' | 'ftruncateSync' | 'readSync' | 'renameSync' | 'fdatasyncSync';

/** Makes calls of node:fs in this thread fail from the `after`-th on, until the function that is returned is called. */
function breakCalls(names: readonly Named[], after = 0): () => void {
  const all = (fs as unknown as { default: Record<string, (...args: unknown[]) => unknown> }).default;
  const kept = names.map((name) => [name, all[name] as (...args: unknown[]) => unknown] as const);
  let calls = 0;
  for (const [name, real] of kept) {
    all[name] = (...args) => {
      if (calls++ >= after) throw Object.assign(new Error(`ENOSPC: no space left, ${name}`), { code: 'ENOSPC' });
      return real(...args);
    };
  }
  syncBuiltinESMExports();
  return () => {
    for (const [name, real] of kept) all[name] = real;
    syncBuiltinESMExports();
  };
}

/** Creating fails on one rank, in the middle; then it works. */
export function creations(comm: Communicator, path: string, odd: number): Told[] {
  const told: Told[] = [];
  const cases: readonly [string, Named[], number][] = [
    ['open', ['openSync'], 0],
    ['truncate', ['ftruncateSync'], 0],
    ['write', ['writevSync', 'writeSync'], 0],
    ['second write', ['writevSync', 'writeSync'], 1],
    ['rename', ['renameSync'], 0],
  ];
  for (const [name, calls, after] of cases) {
    const mend = comm.rank === odd ? breakCalls(calls, after) : () => {};
    const outcome = outcomeOf(() => File.createSync(path, { comm, subfiles: 2 }).closeSync());
    mend();
    told.push({ name, outcome });
    comm.barrier();
    const left = fs.readdirSync(`${path}.subfiles`).join();
    const reader = File.openSync(path, { comm });
    told.push({ name: `${name}, left: ${left} with ${[...reader.keys()].join()}`, outcome });
    reader.closeSync();
    comm.barrier();
  }
  return told;
}

export interface Failed extends Told {
  readonly sequence: number;
  readonly requests: number;
  readonly committed: number;
}

/** Flushes that fail because of one rank; after each the next one succeeds. */
export function flushes(
  comm: Communicator,
  { path, odd, subfiles }: { path: string; odd: number; subfiles: number },
): Failed[] {
  const told: Failed[] = [];
  const file = File.createSync(path, { comm, subfiles });
  const t = file.createDataset('/t', { dtype: 'int32', shape: [comm.size, 64] });
  file.flushSync();
  let round = 0;
  const post = (copy = true): Int32Array => {
    const data = new Int32Array(64).fill(++round * 10 + comm.rank);
    t.write(data, { start: [comm.rank, 0], count: [1, 64] }, { copy });
    return data;
  };
  const note = (name: string, spoil: () => () => void): void => {
    const { sequence } = file;
    const mend = comm.rank === odd ? spoil() : () => {};
    const outcome = outcomeOf(() => file.flushSync());
    mend();
    const failed = { name, outcome, sequence: file.sequence - sequence, requests: file.pending.requests };
    // A reader of its own: what is in the file, whatever this rank believes.
    comm.barrier();
    const reader = File.openSync(path);
    const committed = (reader.dataset('/t').readSync() as Int32Array)[comm.rank * 64] as number;
    reader.closeSync();
    told.push({ ...failed, committed });
    comm.barrier();
  };
  const again = (): void => {
    file.flushSync();
    const seen = t.readSync() as Int32Array;
    const wrong = Array.from({ length: comm.size }, (_, r) => seen[r * 64]).filter((v, r) => v !== round * 10 + r);
    if (wrong.length > 0) throw new Error(`round ${round}: ${wrong}`);
  };
  for (const [name, calls, after] of [
    ['writing', ['writevSync', 'writeSync'], 0],
    ['second write', ['writevSync', 'writeSync'], 1],
    ['third write', ['writevSync', 'writeSync'], 2],
    ['looking at the size', ['readSync'], 0],
  ] as const) {
    post();
    note(name, () => breakCalls(calls, after));
    again();
  }
  const lent = post(false);
  note('detached', () => {
    const { buffer } = lent;
    structuredClone(buffer, { transfer: [buffer as ArrayBuffer] });
    return () => {};
  });
  // Data that is gone cannot be flushed any more, so the file cannot be closed either.
  const outcome = outcomeOf(() => file.closeSync());
  told.push({ name: 'close', outcome, sequence: 0, requests: file.pending.requests, committed: 0 });
  file.discard();
  return told;
}

/** Another program changes the file between two flushes. */
export function strangers(comm: Communicator, path: string, how: SharedArrayBuffer): Told[] {
  const state = new Int32Array(how);
  const told: Told[] = [];
  for (let round = 0; round < 2; round++) {
    const file = File.createSync(`${path}${round}`, { comm });
    const t = file.createDataset('/t', { dtype: 'int32', shape: [comm.size] });
    file.flushSync();
    // The test's thread does it now.
    comm.barrier();
    if (comm.rank === 0) {
      Atomics.store(state, 0, round * 2 + 1);
      Atomics.notify(state, 0);
      Atomics.wait(state, 0, round * 2 + 1);
    }
    comm.barrier();
    t.write(Int32Array.of(7), { start: [comm.rank], count: [1] });
    told.push({ name: `flush ${round}`, outcome: outcomeOf(() => file.flushSync()) });
    told.push({ name: `again ${round}`, outcome: outcomeOf(() => file.flushSync()) });
    file.discard();
  }
  return told;
}

/** Errors that all ranks make alike. */
export function alike(comm: Communicator, path: string): { told: Told[]; keys: string[] } {
  const file = File.createSync(path, { comm });
  file.createDataset('/t', { dtype: 'int8', shape: [2] });
  const told: Told[] = [];
  const note = (name: string, work: () => unknown): void => {
    told.push({ name, outcome: outcomeOf(work) });
  };
  note('SHAPE', () => file.createDataset('/a', { dtype: 'int8', shape: [-1] }));
  note('EXISTS', () => file.createDataset('/t', { dtype: 'int8', shape: [1] }));
  note('DTYPE', () => file.createDataset('/a', { dtype: 'int9' as 'int8', shape: [1] }));
  note('SHAPE', () => file.createDataset('/a', { dtype: 'int8', shape: [1], chunks: [1, 1] }));
  const described = (attributes: Readonly<Record<string, AttributeValue>>) => () =>
    file.createDataset('/a', { dtype: 'int8', shape: [1], attributes });
  note('OPTION', described({ '': 1 }));
  note('OPTION', described({ 'a\0b': 1 }));
  note('DTYPE', described({ fine: 1, a: 'a\0b' }));
  note('DTYPE', described({ a: '\ud800' }));
  note('DTYPE', described({ a: { b: 1 } }));
  note('UNSUPPORTED', described({ ['n'.repeat(70_000)]: 1 }));
  note('NOT_FOUND', () => file.delete('/none'));
  note('NOT_FOUND', () => file.createHardLink('/l', '/none'));
  note('OPTION', () => file.createSoftLink('/l', ''));
  note('NOT_FOUND', () => file.attributes.delete('none'));
  note('DTYPE', () => file.attributes.set('a', { b: 1 }));
  note('SHAPE', () => file.dataset('/t').resize([3]));
  file.closeSync();
  note('CLOSED', () => file.createGroup('/g'));
  return { told, keys: [...file.keys()] };
}

/** A disk that is full for one rank, again and again; gives the outcomes, and the size of the file when there is room. */
export function fullDisk(comm: Communicator, path: string, call: 'write' | 'sync'): { codes: unknown[]; size: number } {
  const file = File.createSync(path, { comm, durability: 'power', publish: 'never' });
  const length = 2 ** 18;
  const t = file.createDataset('/t', { dtype: 'uint8', shape: [comm.size, length] });
  file.flushSync();
  t.write(new Uint8Array(length).fill(comm.rank + 1), { start: [comm.rank, 0], count: [1, length] });
  const codes: unknown[] = [];
  for (let i = 0; i < 5; i++) {
    const calls: Named[] = call === 'write' ? ['writevSync', 'writeSync'] : ['fdatasyncSync'];
    const mend = comm.rank === 1 ? breakCalls(calls) : () => {};
    codes.push(outcomeOf(() => file.flushSync()).code);
    mend();
  }
  file.closeSync();
  comm.barrier();
  return { codes, size: fs.statSync(path).size };
}

export default (comm: Communicator, data: { work: string; path: string } & Record<string, unknown>): unknown => {
  const { work, path } = data;
  if (work === 'beginnings') return beginnings(comm, path);
  if (work === 'creations') return creations(comm, path, data['odd'] as number);
  if (work === 'flushes') return flushes(comm, data as never);
  if (work === 'full disk') return fullDisk(comm, path, data['call'] as 'write' | 'sync');
  if (work === 'strangers') return strangers(comm, path, data['how'] as SharedArrayBuffer);
  return alike(comm, path);
};
