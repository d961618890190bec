import type { Communicator } from '../../src/comm/communicator.ts';
import { repeats } from '../seed.ts';

/**
 * What every communicator must do, run on all of its ranks: `conform(comm)` throws where something differs and gives the names
 * of the checks otherwise. It knows nothing but `rank` and `size`, and no test runner, so that it also runs under mpiexec.
 *
 * Sums are of whole numbers, so that their order does not matter; what `min` and `max` make of NaN, or of 0 beside -0, is left open.
 */
export function conform(comm: Communicator): string[] {
  const checks: [string, (comm: Communicator) => void][] = [
    ['rank and size', rankAndSize],
    ['barrier', barriers],
    ['bcast from every root', bcasts],
    ['gather at every root', gathers],
    ['allgather', allgathers],
    ['empty messages', emptyMessages],
    ['allreduce', allreduces],
    ['allreduce of special numbers', specialNumbers],
    ['exscan', exscans],
    ['results are copies', copies],
    ['views and buffers as arguments', views],
    ['many small collectives', manySmall],
    ['large messages', largeMessages],
    ['split', splits],
    ['nested splits', nestedSplits],
    ['interleaved communicators', interleaved],
    ['many communicators one after the other', manySplits],
    ['many communicators at once', manyAlive],
    ['communicators that only some ranks have closed', closedBySome],
    ['wrong arguments', wrongArguments],
    ['a closed communicator', closed],
  ];
  for (const [name, check] of checks) {
    try {
      check(comm);
    } catch (error) {
      throw new Error(`${name}, rank ${comm.rank} of ${comm.size}: ${(error as Error).message}`, { cause: error });
    }
  }
  return checks.map(([name]) => name);
}

function rankAndSize({ rank, size }: Communicator): void {
  expect(Number.isInteger(size) && size >= 1, `size ${size}`);
  expect(Number.isInteger(rank) && rank >= 0 && rank < size, `rank ${rank}`);
}

function barriers(comm: Communicator): void {
  for (let i = 0; i < 100; i++) expect(comm.barrier() === undefined, 'barrier gives nothing');
}

function bcasts(comm: Communicator): void {
  for (let root = 0; root < comm.size; root++) {
    for (const length of lengths) {
      const message = pattern(root + length, length);
      // What the others pass is not looked at.
      const other = length % 2 === 0 ? null : new Uint8Array(3);
      same(comm.bcast(comm.rank === root ? message : other, root), message, `from ${root}`);
    }
  }
}

function gathers(comm: Communicator): void {
  for (let root = 0; root < comm.size; root++) {
    for (const length of lengths) {
      const results = comm.gather(messageOf(comm.rank, length), root);
      if (comm.rank !== root) expect(results === null, 'only the root gets something');
      else allSame(results, comm.size, (rank) => messageOf(rank, length));
    }
  }
}

function allgathers(comm: Communicator): void {
  for (const length of lengths) {
    allSame(comm.allgather(messageOf(comm.rank, length)), comm.size, (rank) => messageOf(rank, length));
  }
}

function emptyMessages(comm: Communicator): void {
  const none = new Uint8Array(0);
  for (let root = 0; root < comm.size; root++) {
    same(comm.bcast(comm.rank === root ? none : null, root), none, 'bcast');
    const results = comm.gather(none, root);
    if (comm.rank === root) allSame(results, comm.size, () => none);
    // Only one rank has something.
    const lone = (rank: number) => (rank === root ? pattern(root, 7) : none);
    allSame(comm.allgather(lone(comm.rank)), comm.size, lone);
  }
  sameNumbers(comm.allreduce(new Float64Array(0), 'sum'), [], 'allreduce');
  sameNumbers(comm.exscan(new Float64Array(0)), [], 'exscan');
}

function allreduces(comm: Communicator): void {
  for (const count of [1, 3, 24, 100, 5000]) {
    const of = (rank: number) =>
      Float64Array.from({ length: count }, (_, i) => ((rank + 3) * (i + 7)) % 101) as Float64Array;
    const all = ranksOf(comm).map(of);
    const each = (combine: (a: number, b: number) => number) =>
      all.slice(1).reduce((sum, values) => sum.map((value, i) => combine(value, values[i] ?? 0)), all[0] ?? of(0));
    const mine = of(comm.rank);
    sameNumbers(
      comm.allreduce(mine, 'sum'),
      each((a, b) => a + b),
      `sum of ${count}`,
    );
    sameNumbers(
      comm.allreduce(mine, 'min'),
      each((a, b) => (a < b ? a : b)),
      `min of ${count}`,
    );
    sameNumbers(
      comm.allreduce(mine, 'max'),
      each((a, b) => (a > b ? a : b)),
      `max of ${count}`,
    );
    sameNumbers(mine, of(comm.rank), 'the argument is left alone');
  }
  // Whatever the order of adding, all ranks must have added in the same one.
  const rough = comm.allreduce(
    Float64Array.of(0.1 + comm.rank / 3, 1e16 / (comm.rank + 1), Math.PI ** comm.rank),
    'sum',
  );
  const bits = new Uint8Array(rough.buffer, rough.byteOffset, rough.byteLength);
  allSame(comm.allgather(bits), comm.size, () => bits);
}

function specialNumbers(comm: Communicator): void {
  const { rank, size } = comm;
  const last = rank === size - 1;
  const big = Number.MAX_VALUE;
  const infinity = Number.POSITIVE_INFINITY;
  const sum = comm.allreduce(
    Float64Array.of(
      last ? Number.NaN : 1,
      -0,
      infinity,
      last ? -infinity : infinity,
      2 ** 53 - size + 1,
      Number.MIN_VALUE,
    ),
    'sum',
  );
  const opposed = size === 1 ? -infinity : Number.NaN;
  const sums = [Number.NaN, -0, infinity, opposed, size * (2 ** 53 - size + 1), size * Number.MIN_VALUE];
  // The fifth is exact only while it fits into 53 bits.
  sameNumbers(drop(sum, size > 1 ? 4 : -1), drop(sums, size > 1 ? 4 : -1), 'sum');
  const edges = Float64Array.of(
    last ? -infinity : 5,
    last ? infinity : 5,
    infinity,
    -infinity,
    last ? big : -big,
    -rank,
    rank,
  );
  const least = [-infinity, size === 1 ? infinity : 5, infinity, -infinity, size === 1 ? big : -big, 0 - (size - 1), 0];
  const most = [size === 1 ? -infinity : 5, infinity, infinity, -infinity, big, 0, size - 1];
  // 0 and -0 count as the same here: which of them is smaller is open.
  sameNumbers(comm.allreduce(edges, 'min').map(plain), least.map(plain), 'min');
  sameNumbers(comm.allreduce(edges, 'max').map(plain), most.map(plain), 'max');
  const before = comm.exscan(Float64Array.of(rank === 0 ? Number.NaN : 1, rank === 0 ? infinity : 1, -0));
  sameNumbers(before, rank === 0 ? [0, 0, 0] : [Number.NaN, infinity, -0], 'exscan');
}

function exscans(comm: Communicator): void {
  for (const count of [1, 3, 100, 5000]) {
    const of = (rank: number) => Float64Array.from({ length: count }, (_, i) => rank * 1000 + i);
    const expected = new Float64Array(count);
    for (let rank = 0; rank < comm.rank; rank++) {
      for (const [i, value] of of(rank).entries()) expected[i] = (expected[i] as number) + value;
    }
    sameNumbers(comm.exscan(of(comm.rank)), expected, `of ${count}`);
  }
}

function copies(comm: Communicator): void {
  const mine = pattern(comm.rank, 100);
  const sent = comm.bcast(comm.rank === 0 ? mine : null, 0);
  const all = comm.allgather(mine);
  const values = Float64Array.of(comm.rank, 1);
  const sum = comm.allreduce(values, 'max');
  // Neither the argument nor a later call may change what was given out, and writing into it harms nobody.
  mine.fill(255);
  values.fill(-1);
  comm.allgather(new Uint8Array(100).fill(1));
  comm.allreduce(Float64Array.of(1e9, 1e9), 'max');
  same(sent, pattern(0, 100), 'bcast');
  allSame(all, comm.size, (rank) => pattern(rank, 100));
  sameNumbers(sum, [comm.size - 1, 1], 'allreduce');
  for (const result of [sent, ...all]) result.fill(7);
  sum.fill(7);
  comm.barrier();
  allSame(comm.allgather(pattern(comm.rank, 100)), comm.size, (rank) => pattern(rank, 100));
}

function views(comm: Communicator): void {
  const wide = new Uint8Array(64);
  wide.set(pattern(comm.rank, 10), 13);
  const part = wide.subarray(13, 23);
  allSame(comm.allgather(part), comm.size, (rank) => pattern(rank, 10));
  same(comm.bcast(comm.rank === 0 ? Buffer.from(part) : null, 0), pattern(0, 10), 'a Buffer');
  const shared = new Uint8Array(new SharedArrayBuffer(10));
  shared.set(part);
  allSame(comm.allgather(shared), comm.size, (rank) => pattern(rank, 10));
  const numbers = Float64Array.of(9, 9, comm.rank, 1, 9).subarray(2, 4);
  sameNumbers(comm.allreduce(numbers, 'sum'), [(comm.size * (comm.size - 1)) / 2, comm.size], 'a subarray');
}

/** Small collectives of all kinds in a fixed mixture: what one leaves behind must not reach the next. */
function manySmall(comm: Communicator): void {
  const { rank, size } = comm;
  const ranks = (size * (size - 1)) / 2;
  for (let i = 0; i < repeats(10_000); i++) {
    const root = i % size;
    const kind = (i * 7) % 6;
    if (kind === 0) comm.barrier();
    else if (kind === 1)
      sameNumbers(comm.allreduce(Float64Array.of(rank + i, i), 'sum'), [ranks + size * i, size * i], `${i}`);
    else if (kind === 2) sameNumbers(comm.exscan(Float64Array.of(i)), [rank * i], `${i}`);
    else if (kind === 3) same(comm.bcast(rank === root ? pattern(i, i % 40) : null, root), pattern(i, i % 40), `${i}`);
    else if (kind === 4)
      allSame(comm.allgather(pattern(i + rank, (i + rank) % 40)), size, (r) => pattern(i + r, (i + r) % 40));
    else {
      const all = comm.gather(pattern(i - rank, rank), root);
      if (rank === root) allSame(all, size, (r) => pattern(i - r, r));
    }
  }
}

function largeMessages(comm: Communicator): void {
  const { rank, size } = comm;
  const length = repeats(40_000_000) + 3;
  const root = size - 1;
  const message = pattern(9, length);
  same(comm.bcast(rank === root ? message : null, root), message, 'bcast');
  // Different lengths: rank 0 has nothing, the last the most.
  const of = (r: number) => pattern(r, Math.floor((length * r) / size));
  const all = comm.gather(of(rank), 0);
  if (rank === 0) allSame(all, size, of);
  const some = (r: number) => pattern(r + 50, r % 2 === 0 ? Math.floor(length / 8) : 5);
  allSame(comm.allgather(some(rank)), size, some);
  const count = Math.floor(length / 80);
  const values = new Float64Array(count).map((_, i) => i * (rank + 1));
  const factor = (size * (size + 1)) / 2;
  sameNumbers(
    comm.allreduce(values, 'sum'),
    new Float64Array(count).map((_, i) => i * factor),
    'allreduce',
  );
  sameNumbers(
    comm.allreduce(values, 'max'),
    new Float64Array(count).map((_, i) => i * size),
    'max',
  );
  const before = (rank * (rank + 1)) / 2;
  sameNumbers(
    comm.exscan(values),
    new Float64Array(count).map((_, i) => i * before),
    'exscan',
  );
}

function splits(comm: Communicator): void {
  const { rank, size } = comm;
  for (const [name, color] of [
    ['all together', () => 5],
    ['all alone', (r: number) => r],
    ['even and odd', (r: number) => r % 2],
    ['in reverse', (r: number) => 2 ** 31 - 1 - r],
    ['low and high', (r: number) => (2 * r < size ? 1000 : 0)],
  ] as [string, (rank: number) => number][]) {
    const group = ranksOf(comm).filter((r) => color(r) === color(rank));
    const part = comm.split(color(rank));
    expect(part.size === group.length, `${name}: ${part.size} ranks, not ${group.length}`);
    expect(part.rank === group.indexOf(rank), `${name}: rank ${part.rank}, not ${group.indexOf(rank)}`);
    const sum = group.reduce((a, b) => a + b, 0);
    sameNumbers(part.allreduce(Float64Array.of(rank), 'sum'), [sum], name);
    allSame(part.allgather(Uint8Array.of(rank)), group.length, (r) => Uint8Array.of(group[r] ?? 0));
    part.close();
  }
}

function nestedSplits(comm: Communicator): void {
  const { rank, size } = comm;
  // Halves of halves, all alive at once, then used from the innermost to the outermost.
  const alive: [Communicator, number[]][] = [[comm, ranksOf(comm)]];
  while (alive.length < 5) {
    const [part, members] = alive[alive.length - 1] as [Communicator, number[]];
    const half = Math.ceil(members.length / 2);
    const low = part.rank < half;
    alive.push([part.split(low ? 0 : 1), low ? members.slice(0, half) : members.slice(half)]);
  }
  for (const [part, members] of alive.reverse()) {
    expect(members[part.rank] === rank, `rank ${rank} is rank ${part.rank} of ${members}`);
    const before = members.slice(0, part.rank).reduce((a, b) => a + b, 0);
    sameNumbers(part.exscan(Float64Array.of(rank)), [before], `a part of ${members.length} of ${size}`);
    if (part !== comm) part.close();
  }
}

/** Rows and columns of a grid of two rows, used in turn, with small and large messages; the ranks of one row do not wait for the other. */
function interleaved(comm: Communicator): void {
  const { rank, size } = comm;
  const rows = comm.split(rank % 2);
  const columns = comm.split(rank >> 1);
  const row = ranksOf(comm).filter((r) => r % 2 === rank % 2);
  const column = ranksOf(comm).filter((r) => r >> 1 === rank >> 1);
  const large = 600_001;
  for (let i = 0; i < repeats(300); i++) {
    sameNumbers(rows.allreduce(Float64Array.of(rank + i), 'max'), [Math.max(...row) + i], `row ${i}`);
    if (i % 10 === 0) {
      const of = (r: number) => pattern(r + i, large + r);
      allSame(rows.allgather(of(rank)), row.length, (r) => of(row[r] ?? 0));
      allSame(columns.allgather(of(rank)), column.length, (r) => of(column[r] ?? 0));
    }
    same(
      columns.bcast(columns.rank === 0 ? pattern(rank + i, 30) : null, 0),
      pattern((column[0] ?? 0) + i, 30),
      `${i}`,
    );
    if (rank % 2 === 0) for (let k = 0; k < i % 4; k++) rows.barrier();
    if (i % 7 === 0) sameNumbers(comm.allreduce(Float64Array.of(1), 'sum'), [size], `all ${i}`);
  }
  columns.close();
  rows.close();
}

function manySplits(comm: Communicator): void {
  for (let i = 0; i < repeats(1000); i++) {
    const part = comm.split(i % 3 === 0 ? 0 : comm.rank % 2);
    const size = i % 3 === 0 ? comm.size : ranksOf(comm).filter((r) => r % 2 === comm.rank % 2).length;
    sameNumbers(part.allreduce(Float64Array.of(1), 'sum'), [size], `split ${i}`);
    part.close();
  }
}

function manyAlive(comm: Communicator): void {
  const parts = Array.from({ length: 64 }, (_, i) => comm.split(comm.rank % ((i % 3) + 1)));
  for (const [i, part] of [...parts.entries()].reverse()) {
    const lowest = comm.rank % ((i % 3) + 1);
    sameNumbers(part.allreduce(Float64Array.of(comm.rank + i), 'min'), [lowest + i], `communicator ${i}`);
  }
  for (const part of parts) part.close();
}

/** What one rank has closed another may still have, when the next one is made. */
function closedBySome(comm: Communicator): void {
  const kept: Communicator[] = [];
  for (let i = 0; i < 12; i++) {
    const part = comm.split(0);
    sameNumbers(part.allreduce(Float64Array.of(comm.rank + i), 'max'), [comm.size - 1 + i], `communicator ${i}`);
    if (i % 3 === comm.rank % 3) kept.push(part);
    else part.close();
  }
  for (const part of kept) part.close();
  const last = comm.split(0);
  sameNumbers(last.allreduce(Float64Array.of(1), 'sum'), [comm.size], 'the last communicator');
  last.close();
}

/** All ranks make the same mistake, all get the error, and go on. */
function wrongArguments(comm: Communicator): void {
  const one = Uint8Array.of(1);
  const wrong = (value: unknown) => value as never;
  const mistakes: [string, () => unknown][] = [
    ['root too high', () => comm.bcast(one, comm.size)],
    ['root negative', () => comm.gather(one, -1)],
    ['root no whole number', () => comm.gather(one, 0.5)],
    ['nothing to send', () => comm.bcast(comm.rank === 0 ? null : one, 0)],
    ['bytes missing', () => comm.allgather(wrong(null))],
    ['numbers of another type', () => comm.allreduce(wrong([1, 2]), 'sum')],
    ['bytes for numbers', () => comm.exscan(wrong(one))],
    ['an unknown reduction', () => comm.allreduce(Float64Array.of(1), wrong('product'))],
    ['a negative colour', () => comm.split(-1)],
    ['a colour that is no number', () => comm.split(Number.NaN)],
  ];
  for (const [name, mistake] of mistakes) {
    // The root alone sees that it has nothing to send, unless the communicator agrees on errors.
    if (name === 'nothing to send' && comm.size > 1) continue;
    expectError(name, mistake);
    sameNumbers(comm.allreduce(Float64Array.of(1), 'sum'), [comm.size], `after: ${name}`);
  }
}

function closed(comm: Communicator): void {
  const part = comm.split(0);
  part.close();
  part.close();
  expectError('barrier', () => part.barrier());
  expectError('bcast', () => part.bcast(new Uint8Array(1), 0));
  expectError('allreduce', () => part.allreduce(Float64Array.of(1), 'sum'));
  expectError('split', () => part.split(0));
  comm.barrier();
}

// Around the sizes at which a message may take another way.
const lengths = [1, 24, 255, 487, 488, 489, 4096, 65_536, 262_145];

function ranksOf({ size }: Communicator): number[] {
  return Array.from({ length: size }, (_, rank) => rank);
}

/** Each rank has another length and other bytes. */
function messageOf(rank: number, length: number): Uint8Array {
  return pattern(rank, length + rank);
}

/** Bytes that differ with the seed and the place. */
function pattern(seed: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = (seed * 2_654_435_761) >>> 0;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

function drop(values: ArrayLike<number>, index: number): number[] {
  return Array.from(values).filter((_, i) => i !== index);
}

function plain(value: number): number {
  return value === 0 ? 0 : value;
}

function expect(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

function expectError(what: string, call: () => unknown): void {
  let thrown: unknown;
  try {
    call();
  } catch (error) {
    thrown = error;
  }
  const { name, code } = (thrown ?? {}) as { name?: unknown; code?: unknown };
  expect(name === 'H5LogError' && code === 'COMM', `${what}: threw ${String(thrown)}, not an H5LogError COMM`);
}

function same(got: Uint8Array, expected: Uint8Array, what: string): void {
  expect(got instanceof Uint8Array, `${what}: no Uint8Array`);
  expect(got.buffer instanceof ArrayBuffer, `${what}: not in memory of its own`);
  expect(got.length === expected.length, `${what}: ${got.length} bytes, not ${expected.length}`);
  if (Buffer.compare(got, expected) === 0) return;
  const at = expected.findIndex((byte, i) => byte !== got[i]);
  throw new Error(`${what}: byte ${at} is ${got[at]}, not ${expected[at]}`);
}

function allSame(got: Uint8Array[] | null, size: number, expected: (rank: number) => Uint8Array): void {
  expect(Array.isArray(got) && got.length === size, `${got?.length} messages, not ${size}`);
  got?.forEach((bytes, rank) => {
    same(bytes, expected(rank), `of rank ${rank}`);
  });
}

function sameNumbers(got: ArrayLike<number>, expected: ArrayLike<number>, what: string): void {
  expect(got.length === expected.length, `${what}: ${got.length} numbers, not ${expected.length}`);
  for (let i = 0; i < got.length; i++) {
    const [value, wanted] = [got[i], expected[i]];
    if (!Object.is(value, wanted)) throw new Error(`${what}: number ${i} is ${say(value)}, not ${say(wanted)}`);
  }
}

function say(value: number | undefined): string {
  return Object.is(value, -0) ? '-0' : String(value);
}
