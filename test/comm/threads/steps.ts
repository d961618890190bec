import type { Communicator } from '../../../src/comm/communicator.ts';

/** One collective: on the communicator of all ranks (0), of those with the same parity (1), or of neighbours (2). */
export interface Step {
  readonly kind: 'barrier' | 'bcast' | 'gather' | 'allgather' | 'sum' | 'min' | 'max' | 'exscan';
  readonly on: number;
  readonly root: number;
  readonly lengths: readonly number[];
  readonly numbers: readonly (readonly number[])[];
  readonly copies: number;
}

/** Does the steps and compares each with a model that only looks at the step. */
export default function rank(comm: Communicator, steps: readonly Step[]): string {
  const colors = [() => 0, (r: number) => r % 2, (r: number) => r >> 1];
  const comms = [comm, comm.split(comm.rank % 2), comm.split(comm.rank >> 1)];
  for (const [number, step] of steps.entries()) {
    const part = comms[step.on] as Communicator;
    const color = colors[step.on] as (r: number) => number;
    const members = Array.from({ length: comm.size }, (_, r) => r).filter((r) => color(r) === color(comm.rank));
    const expected = model(step, members, comm.rank);
    const got = act(step, part, comm.rank);
    if (text(got) !== text(expected)) return `step ${number}, ${step.kind}: ${text(got)}, not ${text(expected)}`;
  }
  return 'as expected';
}

type Outcome = readonly (Uint8Array | Float64Array)[] | null;

function act(step: Step, part: Communicator, me: number): Outcome {
  const root = step.root % part.size;
  const { kind } = step;
  if (kind === 'barrier') return part.barrier() ?? null;
  if (kind === 'bcast') return [part.bcast(part.rank === root ? bytesOf(step, me) : null, root)];
  if (kind === 'gather') return part.gather(bytesOf(step, me), root);
  if (kind === 'allgather') return part.allgather(bytesOf(step, me));
  if (kind === 'exscan') return [part.exscan(valuesOf(step, me))];
  return [part.allreduce(valuesOf(step, me), kind)];
}

function model(step: Step, members: readonly number[], me: number): Outcome {
  const root = members[step.root % members.length] as number;
  const { kind } = step;
  if (kind === 'barrier') return null;
  if (kind === 'bcast') return [bytesOf(step, root)];
  if (kind === 'gather' && me !== root) return null;
  if (kind === 'gather' || kind === 'allgather') return members.map((r) => bytesOf(step, r));
  const taking = kind === 'exscan' ? members.filter((r) => r < me) : members;
  const add = { sum: (a: number, b: number) => a + b, min: Math.min, max: Math.max }[kind === 'exscan' ? 'sum' : kind];
  const [first, ...others] = taking.map((r) => valuesOf(step, r));
  if (!first) return [valuesOf(step, me).fill(0)];
  return [others.reduce((sum, values) => sum.map((value, i) => add(value, values[i] as number)), first)];
}

function bytesOf(step: Step, r: number): Uint8Array {
  return new Uint8Array(step.lengths[r] ?? 0).map((_, i) => i * 31 + (i >> 8) + r * 7);
}

/** All ranks have as many numbers as the first: anything else is a mistake. */
function valuesOf(step: Step, r: number): Float64Array {
  const own = step.numbers[r] ?? [0];
  return Float64Array.from(
    { length: (step.numbers[0]?.length ?? 1) * step.copies },
    (_, i) => own[i % own.length] as number,
  );
}

/** Short, and different for different bits: the ends, the length and a sum over the bytes. NaN is NaN, whatever its bits. */
function text(outcome: Outcome): string {
  if (outcome === null) return 'nothing';
  return outcome
    .map((array) => {
      const plain =
        array instanceof Float64Array ? array.map((value) => (Number.isNaN(value) ? Number.NaN : value)) : array;
      const bytes = new Uint8Array(plain.buffer, plain.byteOffset, plain.byteLength);
      let sum = 0;
      for (const byte of bytes) sum = (Math.imul(sum, 16_777_619) + byte) >>> 0;
      return `${array.constructor.name} ${array.length} [${Array.from(array.subarray(0, 4)).map((v) => (Object.is(v, -0) ? '-0' : v))}] ${sum}`;
    })
    .join('; ');
}
