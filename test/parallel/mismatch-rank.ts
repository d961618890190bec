import type { Communicator } from '../../src/comm/communicator.ts';
import { T } from '../../src/dtype/construct.ts';
import { type CreateOptions, File, type OpenOptions } from '../../src/index.ts';
import { type Outcome, outcomeOf } from './outcome.ts';

/** What rank `odd` does, and what all the others do. */
interface Case {
  readonly name: string;
  readonly others: (file: File) => unknown;
  readonly odd: (file: File) => unknown;
}

const plain = { dtype: 'float64', shape: [4, 6] } as const;
const make = (extra: object) => (file: File) => file.createDataset('/new', { ...plain, ...extra });
const pair = (name: string, others: object, odd: object): Case => ({
  name: `dataset ${name}`,
  others: make(others),
  odd: make(odd),
});
const value = (name: string, others: unknown, odd: unknown): Case => ({
  name: `attribute ${name}`,
  others: (file) => file.attributes.set('new', others as number),
  odd: (file) => file.attributes.set('new', odd as number),
});

const cases: readonly Case[] = [
  pair('shape', {}, { shape: [4, 7] }),
  pair('rank', {}, { shape: [4] }),
  pair('maxShape', { maxShape: [null, 6] }, { maxShape: [9, 6] }),
  pair('maxShape missing', { maxShape: [null, 6] }, {}),
  pair('dtype', {}, { dtype: 'float32' }),
  pair('byte order', { dtype: T.bigEndian('int32') }, { dtype: T.littleEndian('int32') }),
  pair('members of an enum', { dtype: T.enum('int8', { a: 1, b: 2 }) }, { dtype: T.enum('int8', { a: 1, b: 3 }) }),
  pair('enum of bigints', { dtype: T.enum('int64', { a: 1n }) }, { dtype: T.enum('int64', { a: 2n }) }),
  pair('fields', { dtype: T.compound({ x: 'int8', y: 'int8' }) }, { dtype: T.compound({ y: 'int8', x: 'int8' }) }),
  pair('string length', { dtype: T.string({ length: 4 }) }, { dtype: T.string({ length: 5 }) }),
  pair('string charset', { dtype: T.string({ length: 4 }) }, { dtype: T.string({ length: 4, charset: 'ascii' }) }),
  pair('fill', { fill: 1 }, { fill: 2 }),
  pair('fill NaN', { fill: 0 }, { fill: Number.NaN }),
  pair('fill -0', { fill: 0 }, { fill: -0 }),
  pair('fill missing', { fill: 0 }, {}),
  pair('fill bigint', { dtype: 'int64', fill: 2n ** 60n }, { dtype: 'int64', fill: 2n ** 60n + 1n }),
  pair('chunks', { chunks: [2, 2] }, { chunks: [2, 3] }),
  pair('filters', { chunks: [2, 2], filters: ['shuffle'] }, { chunks: [2, 2], filters: ['fletcher32'] }),
  pair('level', { chunks: [2, 2], filters: [{ deflate: 1 }] }, { chunks: [2, 2], filters: [{ deflate: 2 }] }),
  pair('attributes', { attributes: { a: 1, b: 'K' } }, { attributes: { a: 1, b: 'C' } }),
  pair('bad shape on one', {}, { shape: [-1] }),
  pair('no options on one', {}, { dtype: undefined }),
  { name: 'dataset name', others: (f) => f.createDataset('/new', plain), odd: (f) => f.createDataset('/nex', plain) },
  { name: 'bad name', others: (f) => f.createDataset('/new', plain), odd: (f) => f.createDataset('', plain) },
  { name: 'group name', others: (f) => f.createGroup('/g/h'), odd: (f) => f.createGroup('/g/i') },
  { name: 'group or dataset', others: (f) => f.createGroup('/new'), odd: (f) => f.createDataset('/new', plain) },
  value('number', 1, 2),
  value('type', 1, 1n),
  value('typed array', Float32Array.of(1, 2), Float32Array.of(1, 3)),
  value('type of the array', Float32Array.of(0), Int32Array.of(0)),
  value('text', 'K', 'C'),
  value('texts', ['a', 'b'], ['a', 'c']),
  value('text like a number', 'NaN', Number.NaN),
  value('text like a bigint', '1n', 1n),
  value('text like minus zero', '-0', -0),
  value('none', null, 0),
  value('a long text', `${'x'.repeat(5000)}a`, `${'x'.repeat(5000)}b`),
  { name: 'attribute name', others: (f) => f.attributes.set('a', 1), odd: (f) => f.attributes.set('b', 1) },
  {
    name: 'attribute owner',
    others: (f) => f.dataset('/t').attributes.set('a', 1),
    odd: (f) => f.dataset('/u').attributes.set('a', 1),
  },
  {
    name: 'attribute dtype',
    others: (f) => f.attributes.set('a', 1, { dtype: 'int8' }),
    odd: (f) => f.attributes.set('a', 1, { dtype: 'int16' }),
  },
  { name: 'attribute delete', others: (f) => f.attributes.delete('kept'), odd: (f) => f.attributes.delete('other') },
  { name: 'soft target', others: (f) => f.createSoftLink('/l', '/t'), odd: (f) => f.createSoftLink('/l', '/u') },
  { name: 'hard target', others: (f) => f.createHardLink('/l', '/t'), odd: (f) => f.createHardLink('/l', '/u') },
  {
    name: 'external file',
    others: (f) => f.createExternalLink('/l', 'a.h5', '/t'),
    odd: (f) => f.createExternalLink('/l', 'b.h5', '/t'),
  },
  { name: 'soft or hard', others: (f) => f.createSoftLink('/l', '/t'), odd: (f) => f.createHardLink('/l', '/t') },
  { name: 'move to', others: (f) => f.move('/t', '/v'), odd: (f) => f.move('/t', '/w') },
  { name: 'delete', others: (f) => f.delete('/t'), odd: (f) => f.delete('/u') },
  { name: 'resize', others: (f) => f.dataset('/t').resize([8]), odd: (f) => f.dataset('/t').resize([9]) },
  { name: 'resize which', others: (f) => f.dataset('/t').resize([8]), odd: (f) => f.dataset('/u').resize([8]) },
  { name: 'flush or create', others: (f) => f.flushSync(), odd: (f) => f.createDataset('/new', plain) },
  { name: 'create or flush', others: (f) => f.createDataset('/new', plain), odd: (f) => f.flushSync() },
  { name: 'close or flush', others: (f) => f.closeSync(), odd: (f) => f.flushSync() },
  { name: 'flush or close', others: (f) => f.flushSync(), odd: (f) => f.closeSync() },
  { name: 'resize or flush', others: (f) => f.dataset('/t').resize([8]), odd: (f) => f.flushSync() },
];

export interface Told {
  readonly name: string;
  readonly outcome: Outcome;
  /** What the file shows afterwards. */
  readonly after: string;
}

const looks = (file: File): string =>
  JSON.stringify([
    [...file.keys()],
    [...file.attributes.keys()],
    file.dataset('/t').shape,
    [...file.dataset('/t').attributes.keys()],
    file.pending,
    file.sequence,
    file.closed,
  ]);

/** All cases on one file, one after the other; then it is used and closed. */
export function differentCalls(comm: Communicator, path: string, odd: number): { before: string; told: Told[] } {
  const file = File.createSync(path, { comm, checkCalls: true });
  const t = file.createDataset('/t', { dtype: 'int32', shape: [6], maxShape: [null] });
  file.createDataset('/u', { dtype: 'int32', shape: [6], maxShape: [null] });
  file.attributes.set('kept', 1);
  file.attributes.set('other', 1);
  t.write(Int32Array.of(comm.rank), { start: [comm.rank], count: [1] });
  const before = looks(file);
  const told = cases.map(({ name, others, odd: different }) => {
    const outcome = outcomeOf(() => (comm.rank === odd ? different : others)(file));
    return { name, outcome, after: looks(file) };
  });
  file.createDataset('/last', { dtype: 'int8', shape: [1] });
  file.closeSync();
  return { before, told };
}

export interface Flushed extends Told {
  /** What came of the call itself, on this rank. */
  readonly call: string;
}

/** All cases without a comparison of every call: what differs is found at the next flush. */
export function differentFlushes(
  comm: Communicator,
  { path, odd, subfiles = 0 }: { path: string; odd: number; subfiles?: number },
): { before: string; told: Flushed[] } {
  const file = File.createSync(path, { comm, subfiles });
  const t = file.createDataset('/t', { dtype: 'int32', shape: [6], maxShape: [null] });
  file.createDataset('/u', { dtype: 'int32', shape: [6], maxShape: [null] });
  file.attributes.set('kept', 1);
  file.attributes.set('other', 1);
  file.flushSync();
  t.write(Int32Array.of(comm.rank + 1), { start: [comm.rank], count: [1] });
  const before = looks(file);
  const told = cases.map(({ name, others, odd: different }) => {
    const mine = comm.rank === odd ? different : others;
    let call = 'collective';
    const outcome = outcomeOf(() => {
      if (/\b(flush|close)Sync/.test(String(mine))) return mine(file);
      call = outcomeOf(() => mine(file)).code;
      return file.flushSync();
    });
    return { name, call, outcome, after: looks(file) };
  });
  file.createDataset('/last', { dtype: 'int8', shape: [1] });
  file.closeSync();
  return { before, told };
}

/** Programs in which rank `odd` differs; each ends with a flush that fails. */
export function lostPosts(
  comm: Communicator,
  { path, odd, subfiles = 0 }: { path: string; odd: number; subfiles?: number },
): { outcomes: Outcome[]; values: number[][]; pending: number[]; kept: unknown } {
  const isOdd = comm.rank === odd;
  const { rank, size } = comm;
  const file = File.createSync(path, { comm, subfiles });
  const t = file.createDataset('/t', { dtype: 'int32', shape: [8], maxShape: [null], fill: -1 });
  const links = file.createDataset('/links', { dtype: T.reference, shape: [size] });
  t.write(new Int32Array(8).fill(5));
  file.flushSync();
  const outcomes: Outcome[] = [];
  const values: number[][] = [];
  const pending: number[] = [];
  const fails = (end: () => unknown = () => file.flushSync()): void => {
    outcomes.push(outcomeOf(end));
    pending.push(file.pending.requests);
    values.push([...(t.readSync() as Int32Array)]);
  };
  const post = (value: number, at: number): void => t.write(Int32Array.of(value), { start: [at], count: [1] });

  // A call that one rank leaves out. What it posted stays pending.
  post(10 + rank, rank);
  if (!isOdd) file.createGroup('/left-out');
  fails();
  // The second of three calls, and posts to a dataset that is gone then.
  const fresh = file.createDataset('/fresh', { dtype: 'int32', shape: [4] });
  file.createGroup(isOdd ? '/b' : '/a');
  file.attributes.set('third', 1);
  fresh.write(new Int32Array(4));
  fails();
  const gone = outcomeOf(() => fresh.write(new Int32Array(4)));
  // Posts in what a resize has cut off or added.
  post(20 + rank, 4 + rank);
  t.resize([4]);
  t.resize([10]);
  post(30 + rank, 9);
  if (isOdd) file.createGroup('/c');
  fails();
  // A reference to an object that is gone then; and a close that fails.
  file.createGroup('/target');
  links.write(['/target'], { start: [rank], count: [1] });
  links.write([rank === 0 ? '/t' : '/links'], { start: [rank], count: [1] });
  if (isOdd) file.createGroup('/d');
  fails(() => file.closeSync());
  // An error of one rank alone, which it does not handle.
  const bad = {
    get shape(): number[] {
      if (isOdd) throw new RangeError('Array buffer allocation failed');
      return [1];
    },
  };
  outcomeOf(() => file.attributes.set('large', [1], bad));
  fails();
  // A call that one rank makes alone, and that fails.
  if (isOdd) outcomeOf(() => file.delete('/nothing'));
  fails();
  // The same list, used again: what is told is what the call was given.
  const shape = [8];
  shape[0] = isOdd ? 12 : 11;
  t.resize(shape);
  shape[0] = 0;
  fails();
  file.createGroup('/end');
  file.closeSync();
  const again = File.openSync(path);
  const kept = {
    keys: [...again.keys()],
    attributes: [...again.attributes.keys()],
    values: [...(again.dataset('/t').readSync() as Int32Array)],
    links: again.dataset('/links').readSync(),
    gone: gone.code,
    sequence: file.sequence,
  };
  again.closeSync();
  return { outcomes, values, pending, kept };
}

const creates: readonly [string, CreateOptions, CreateOptions][] = [
  ['exclusive', {}, { exclusive: true }],
  ['durability', { durability: 'power' }, { durability: 'process' }],
  ['checksum', { checksum: true }, { checksum: false }],
  ['subfiles', { subfiles: 2 }, { subfiles: 1 }],
  ['table', { table: { merge: true } }, { table: { merge: false } }],
  ['bufferLimit', { bufferLimit: 1 }, { bufferLimit: 2 }],
  ['timeout', { timeout: 30_000 }, { timeout: 40_000 }],
  ['bad timeout', { timeout: 30_000 }, { timeout: -1 }],
  ['no timeout', { timeout: 30_000 }, { timeout: Number.NaN }],
  ['bad option', {}, { durability: 'some' as 'power' }],
];
const opens: readonly [string, OpenOptions, OpenOptions][] = [
  ['mode', { mode: 'r' }, { mode: 'r+' }],
  ['asOf', {}, { asOf: 0 }],
  ['indexLimit', {}, { indexLimit: 0 }],
];

/** The same for the calls that begin; afterwards the file is as it was. */
export function differentBeginnings(comm: Communicator, path: string, odd: number): { told: Told[] } {
  const file = File.createSync(path, { comm });
  file.createDataset('/kept', { dtype: 'int8', shape: [1] });
  file.closeSync();
  const told: Told[] = [];
  const note = (name: string, work: () => File): void => {
    const outcome = outcomeOf(() => work().closeSync());
    const again = File.openSync(path, { comm });
    told.push({ name, outcome, after: [...again.keys()].join() });
    again.closeSync();
  };
  const own = <T>(pair: readonly [string, T, T]): T => (comm.rank === odd ? pair[2] : pair[1]);
  for (const pair of creates) note(`create ${pair[0]}`, () => File.createSync(path, { ...own(pair), comm }));
  for (const pair of opens) note(`open ${pair[0]}`, () => File.openSync(path, { ...own(pair), comm }));
  note('path', () => File.openSync(comm.rank === odd ? `${path}x` : path, { comm }));
  note('create or open', () => (comm.rank === odd ? File.createSync(path, { comm }) : File.openSync(path, { comm })));
  for (const [name, text] of [
    ['H5VL_LOG_NSUBFILES', '2'],
    ['H5VL_LOG_METADATA_SHARE', '0'],
    ['H5VL_LOG_NSUBFILES', 'two'],
  ] as const) {
    // Each thread has an environment of its own, as each rank of MPI has.
    note(`environment ${name}`, () => {
      if (comm.rank === odd) process.env[name] = text;
      try {
        return File.createSync(path, { comm });
      } finally {
        delete process.env[name];
      }
    });
  }
  return { told };
}

/** Different order of the same options is no difference. */
export function otherOrder(comm: Communicator, path: string): number {
  const options = { comm, checksum: true, durability: 'process' } as const;
  const { comm: same, checksum, durability } = options;
  const file = File.createSync(path, comm.rank === 0 ? options : { durability, checksum, comm: same });
  const { dtype, shape } = plain;
  file.createDataset('/a', comm.rank === 0 ? { dtype, shape, fill: 1 } : { fill: 1, shape: [...shape], dtype });
  file.closeSync();
  return file.sequence;
}

/** One call of very many differs: `found` are the outcomes of flushes, the last one of a flush after calls that only differ in order. */
export function manyCalls(comm: Communicator, path: string): Outcome[] {
  const file = File.createSync(path, { comm });
  const found = [10, 5000].map((differs) => {
    for (let i = 0; i < 6000; i++) file.createGroup(i === differs && comm.rank === 1 ? `/other-${i}` : `/g-${i}`);
    return outcomeOf(() => file.flushSync());
  });
  for (let i = 0; i < 6000; i++) {
    const isOdd = comm.rank === 1 && i % 1000 === 0;
    const attributes = isOdd ? { b: 'one', a: `two ${i}` } : { a: `two ${i}`, b: 'one' };
    file.createDataset(`/g-${i}`, { dtype: 'int8', shape: [2], attributes });
  }
  found.push(outcomeOf(() => file.flushSync()));
  file.closeSync();
  return found;
}

/** Texts that are dropped with their dataset, beside posts that stay. */
export function lostTexts(comm: Communicator, { path, odd, subfiles }: Omit<Work, 'work'>): Outcome {
  const file = File.createSync(path, { comm, subfiles: subfiles ?? 0 });
  const numbers = file.createDataset('/numbers', { dtype: 'int32', shape: [comm.size] });
  file.flushSync();
  numbers.write([5 + comm.rank], { start: [comm.rank], count: [1] });
  const texts = file.createDataset('/texts', { dtype: T.string(), shape: [comm.size] });
  texts.write(['abc'], { start: [comm.rank], count: [1] });
  if (comm.rank === odd) file.createGroup('/only');
  const outcome = outcomeOf(() => file.flushSync());
  file.flushSync();
  file.closeSync();
  return outcome;
}

export interface Work {
  readonly work: string;
  readonly path: string;
  readonly odd: number;
  readonly subfiles?: number;
}

/** What posts refer to was deleted, moved and exchanged, by calls that did not last. Returns what the references lead to. */
export function keptReferences(comm: Communicator, { path, odd, subfiles }: Omit<Work, 'work'>) {
  const file = File.createSync(path, { comm, subfiles: subfiles ?? 0 });
  for (const name of ['x', 'y', 'gone']) file.createDataset(name, { dtype: 'int8', shape: [] });
  file.createGroup('g');
  const links = file.createDataset('links', { dtype: T.reference, shape: [comm.size, 4] });
  const mine = { start: [comm.rank, 0], count: [1, 4] };
  // The group gets its number, the datasets have none yet.
  links.write(['/g', '', '', ''], mine);
  file.flushSync();
  links.write(['/x', '/y', '/gone', '/g'], mine);
  file.move('x', 'z');
  file.move('y', 'x');
  file.delete('gone');
  file.move('g', 'y');
  file.attributes.set('differs', comm.rank === odd ? 1 : 2);
  const { code } = outcomeOf(() => file.flushSync());
  const pending = file.dataset('links', T.reference).readSync(mine);
  file.closeSync();
  comm.barrier();
  const reader = File.openSync(path, { comm });
  const committed = reader.dataset('links', T.reference).readSync(mine);
  reader.closeSync();
  return { code, pending, committed };
}

export default (comm: Communicator, { work, path, odd, subfiles = 0 }: Work): unknown => {
  if (work === 'calls') return differentCalls(comm, path, odd);
  if (work === 'flushes') return differentFlushes(comm, { path, odd, subfiles });
  if (work === 'posts') return lostPosts(comm, { path, odd, subfiles });
  if (work === 'references') return keptReferences(comm, { path, odd, subfiles });
  if (work === 'texts') return lostTexts(comm, { path, odd, subfiles });
  if (work === 'many') return manyCalls(comm, path);
  return work === 'beginnings' ? differentBeginnings(comm, path, odd) : otherOrder(comm, path);
};
