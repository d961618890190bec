import { readFileSync } from 'node:fs';
import { markAsUntransferable } from 'node:worker_threads';
import { H5LogError } from '../../../src/base/errors.ts';
import type { TimeoutCommunicator } from '../../../src/comm/communicator.ts';

export interface Case {
  readonly name: string;
  /** The rank that misbehaves. */
  readonly who?: number;
  readonly value?: unknown;
}

/** What a rank saw of a failure. */
export interface Seen {
  readonly code: string | undefined;
  readonly rank: number | undefined;
  readonly message: string;
  /** How long it was in the call that threw, in milliseconds. */
  readonly after: number;
}

type Program = (comm: TimeoutCommunicator, given: Case) => unknown;

const one = Float64Array.of(1);
const bytes = Uint8Array.of(1, 2, 3);

/** Programs for a rank, each a way to fail or something to look at. */
const programs: Record<string, Program> = {
  returns: (_, { value }) => value,
  ranks: ({ rank, size, kind, timeout }) => ({ rank, size, kind, timeout }),
  sums: (comm) => comm.allreduce(Float64Array.of(comm.rank), 'sum')[0],
  array: ({ rank }) => new Float64Array(1000).fill(rank),
  part: ({ rank }) => new Float64Array(1_000_000).fill(rank).subarray(10, 13),
  buffer: ({ rank }) => Buffer.from([rank, 7]),
  view: ({ rank }) => new DataView(Uint8Array.of(9, rank, 9).buffer, 1, 1),
  untransferable: ({ rank }) => {
    const array = new Uint8Array(5).fill(rank);
    markAsUntransferable(array.buffer);
    return array;
  },
  shared: (comm, { value }) => {
    const counter = new Int32Array(value as SharedArrayBuffer);
    Atomics.add(counter, 0, 1);
    comm.barrier();
    return Atomics.load(counter, 0);
  },
  unclonable: (comm, { who }) => (comm.rank === who ? () => 1 : comm.barrier()),
  prints: (comm, { value }) => {
    for (let i = 0; i < (value as number); i++) console.log(`rank ${comm.rank} line ${i}`);
    comm.barrier();
    console.log(`rank ${comm.rank} last`);
  },
  idles: () => void setInterval(() => {}, 1000),

  // Processor time of the whole process while all but one wait, in milliseconds.
  waits: (comm, { who, value }) => {
    comm.barrier();
    const before = process.cpuUsage();
    if (comm.rank === who) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, value as number);
    comm.barrier();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  },
  gathers: (comm, { value }) => {
    const length = value as number;
    comm.barrier();
    const begin = performance.now();
    const all = comm.gather(new Uint8Array(length).fill(comm.rank + 1), 0);
    const took = performance.now() - begin;
    const right = all?.every((message, rank) => Buffer.compare(message, Buffer.alloc(length, rank + 1)) === 0);
    return { took, right };
  },

  // One rank fails while the others wait; those tell what they saw when `value` is a shared array of text.
  throws: failing(() => {
    throw new RangeError('the tide is out');
  }),
  rejects: failing(async () => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    throw Object.assign(new Error('no such tide'), { code: 'ETIDE', errno: -7 });
  }),
  throwsOurs: failing(() => {
    throw new H5LogError('SHAPE', 'three is not four', { file: 'a.h5', object: '/t', cause: new Error('deep') });
  }),
  throwsText: failing(() => {
    throw 'just text';
  }),
  throwsLater: failing(() => {
    setTimeout(() => {
      throw new Error('out of a timer');
    }, 20);
    return new Promise(() => {});
  }),
  rejectsUnhandled: failing(() => {
    void Promise.reject(new Error('nobody cared'));
    return new Promise((resolve) => setTimeout(resolve, 5000));
  }),
  systemError: failing(() => readFileSync('/there/is/no/such/file')),
  exits: failing(() => process.exit(3)),
  exitsLater: failing(() => {
    setTimeout(() => process.exit(0), 20);
    return new Promise(() => {});
  }),
  neverEnds: failing(() => new Promise(() => {})),
  leaves: failing(() => 'gone'),
  aborts: failing((comm) => {
    console.log('the last words');
    comm.abort(7);
  }),
  fillsMemory: failing(() => {
    const hoard: number[][] = [];
    while (true) hoard.push(new Array(100_000).fill(hoard.length + 0.5));
  }),

  // The others do not wait, they are busy for ever.
  throwsAmongSpinners: (comm, { who }) => {
    comm.barrier();
    if (comm.rank === who) throw new Error('while others spin');
    while (true);
  },
  abortsAmongSpinners: (comm, { who }) => {
    comm.barrier();
    if (comm.rank === who) comm.abort(5);
    while (true);
  },
  throwsAmongSleepers: async (comm, { who }) => {
    if (comm.rank === who) throw new Error('while others sleep');
    await new Promise((resolve) => setTimeout(resolve, 60_000));
  },

  late: (comm, { who, value }) => {
    const part = comm.split(0) as TimeoutCommunicator;
    if (comm.rank === who) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, value as number);
    const begin = performance.now();
    try {
      part.barrier();
    } catch (error) {
      throw Object.assign(error as Error, { waited: performance.now() - begin });
    }
    return part.timeout;
  },
  setsTimeout: (comm, { who }) => {
    comm.timeout = 80;
    const part = comm.split(0).split(0) as TimeoutCommunicator;
    if (comm.rank !== who) return part.barrier();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000);
    return part.timeout;
  },
  catchesTimeout: (comm, { who }) => {
    comm.timeout = 80;
    if (comm.rank === who) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
    return caught(() => comm.barrier());
  },
  leftGroup: (comm, { who }) => {
    // Nobody needs the rank that returned: the others have a communicator without it.
    const part = comm.split(comm.rank === who ? 1 : 0);
    if (comm.rank === who) return -1;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    let sum = 0;
    for (let i = 0; i < 1000; i++) sum += part.allreduce(one, 'sum')[0] ?? 0;
    return sum;
  },
  survives: (comm, given) => {
    // The same mistake again and again, always agreed on, and the communicator still works.
    const seen = calls(comm, given).map((call) => caught(call));
    return { seen, sum: comm.allreduce(one, 'sum')[0] };
  },
  survivesInGroup: (comm, given) => {
    const part = comm.split(comm.rank === 0 ? 1 : 0) as TimeoutCommunicator;
    if (comm.rank === 0) return { seen: [], sum: part.allreduce(one, 'sum')[0] };
    return { seen: calls(part, given).map((call) => caught(call)), sum: part.allreduce(one, 'sum')[0] };
  },
  closesEarly: (comm, { who }) => {
    const part = comm.split(0) as TimeoutCommunicator;
    part.barrier();
    if (comm.rank === who) part.close();
    // It is over for good: a second call does not wait for the rank that has left either.
    const seen = [caught(() => part.barrier()), caught(() => part.barrier())];
    comm.barrier();
    return seen;
  },
};

/** One call a mistake, on this rank: the wrong one on the rank that misbehaves, the right one on the others. */
function calls(comm: TimeoutCommunicator, { who }: Case): (() => unknown)[] {
  const bad = comm.rank === who;
  const wrong = (value: unknown) => value as never;
  return [
    () => comm.bcast(bytes, bad ? comm.size : 0),
    () => comm.gather(bytes, bad ? -1 : 0),
    () => comm.bcast(bad ? null : bytes, who ?? 0),
    () => comm.allgather(bad ? wrong('text') : bytes),
    () => comm.allreduce(bad ? wrong([1]) : one, 'sum'),
    () => comm.allreduce(one, bad ? wrong('product') : 'sum'),
    () => comm.exscan(bad ? wrong(undefined) : one),
    () => comm.split(bad ? 0.5 : 0),
    () => (bad ? comm.barrier() : comm.allreduce(one, 'sum')),
    () => (bad ? comm.allgather(new Uint8Array(1_000_000)) : comm.exscan(one)),
    () => comm.allreduce(new Float64Array(bad ? 4 : 3), 'sum'),
    () => comm.allreduce(new Float64Array(bad ? 300_000 : 3), 'sum'),
    () => comm.allreduce(one, bad ? 'min' : 'max'),
    () => comm.exscan(new Float64Array(bad ? 0 : 1)),
    () => comm.gather(bytes, bad ? 1 : 0),
    () => (bad ? comm.gather(bytes, 0) : comm.bcast(bytes, 0)),
  ];
}

function failing(fail: (comm: TimeoutCommunicator) => unknown): Program {
  return (comm, { who, value }) => {
    comm.barrier();
    if (comm.rank === who) return fail(comm);
    const seen = caught(() => {
      while (true) comm.allgather(bytes);
    });
    // Entering another collective fails just so.
    const again = caught(() => comm.split(0));
    if (value instanceof SharedArrayBuffer) write(value, comm.rank, { ...seen, again: again?.code });
    throw new Error(`a consequence, on rank ${comm.rank}`, { cause: seen });
  };
}

function caught(call: () => unknown): Seen | undefined {
  const begin = performance.now();
  try {
    call();
  } catch (error) {
    const { code, rank, message } = error as H5LogError;
    return { code, rank, message, after: performance.now() - begin };
  }
  return undefined;
}

const noteSize = 1000;

function write(notes: SharedArrayBuffer, rank: number, note: object): void {
  new Uint8Array(notes, rank * noteSize, noteSize).set(new TextEncoder().encode(JSON.stringify(note)));
}

/** What the ranks wrote down before they ended; undefined for those that did not. */
export function notes(shared: SharedArrayBuffer): (Seen | undefined)[] {
  const text = new TextDecoder().decode(new Uint8Array(shared).slice()).replaceAll('\0', ' ');
  return Array.from({ length: shared.byteLength / noteSize }, (_, rank) => {
    const note = text.slice(rank * noteSize, (rank + 1) * noteSize).trim();
    return note === '' ? undefined : (JSON.parse(note) as Seen);
  });
}

export function notesOf(ranks: number): SharedArrayBuffer {
  return new SharedArrayBuffer(ranks * noteSize);
}

export default function rank(comm: TimeoutCommunicator, given: Case): unknown {
  const program = programs[given.name];
  if (!program) throw new Error(`there is no case ${given.name}`);
  return program(comm, given);
}
