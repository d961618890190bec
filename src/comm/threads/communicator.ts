import { H5LogError } from '../../base/errors.ts';
import {
  problemOfBytes,
  problemOfColor,
  problemOfReduction,
  problemOfRoot,
  problemOfTimeout,
  problemOfValues,
  type Reduction,
  reductions,
  type TimeoutCommunicator,
} from '../communicator.ts';
import { any, Mailboxes, type Operation } from './mailboxes.ts';
import { chunkSize, inlineLimit, type SharedRun } from './memory.ts';

/** Receives a chunk of a rank's message: `count` bytes at `from` in the bulk memory, which belong at `start` of the message. */
type Receive = (rank: number, from: number, start: number, count: number) => void;

/** Ranks that are threads of one process and communicate over shared memory. */
class ThreadsCommunicator implements TimeoutCommunicator {
  readonly kind = 'threads' as const;
  readonly rank: number;
  readonly size: number;
  readonly #boxes: Mailboxes;
  readonly #bulk: Uint8Array;

  constructor(boxes: Mailboxes) {
    this.#boxes = boxes;
    this.rank = boxes.rank;
    this.size = boxes.members.length;
    this.#bulk = new Uint8Array(boxes.run.memory.bulk);
  }

  get timeout(): number {
    return this.#boxes.timeout;
  }

  set timeout(timeout: number) {
    const problem = problemOfTimeout(timeout);
    if (problem) throw new H5LogError('OPTION', problem);
    this.#boxes.timeout = timeout;
  }

  barrier(): void {
    this.#boxes.begin('barrier');
    this.#boxes.post('barrier', 0, 0);
    this.#boxes.awaitAll('barrier', 0, 0);
  }

  bcast(bytes: Uint8Array | null, root: number): Uint8Array {
    const sends = this.rank === root;
    const problem = problemOfRoot(root, this.size) ?? (sends ? problemOfBytes(bytes) : undefined);
    if (problem) this.#boxes.refuse('bcast', problem);
    const mine = sends ? (bytes as Uint8Array) : undefined;
    this.#announce('bcast', root, mine);
    const length = this.#boxes.lengthOf(root);
    const result = mine ? new Uint8Array(mine) : new Uint8Array(length);
    if (length > inlineLimit) {
      const lengths = new Float64Array(this.size);
      lengths[root] = length;
      this.#exchange(mine, lengths, (_, from, start, count) => {
        if (!mine) result.set(this.#bulk.subarray(from, from + count), start);
      });
    } else if (!mine) {
      this.#take(root, result);
    }
    return result;
  }

  allreduce(values: Float64Array, op: Reduction): Float64Array {
    const problem = problemOfValues(values) ?? problemOfReduction(op);
    if (problem) this.#boxes.refuse('allreduce', problem);
    return this.#reduce('allreduce', values, op, this.size);
  }

  exscan(values: Float64Array): Float64Array {
    const problem = problemOfValues(values);
    if (problem) this.#boxes.refuse('exscan', problem);
    return this.#reduce('exscan', values, 'sum', this.rank);
  }

  gather(bytes: Uint8Array, root: number): Uint8Array[] | null {
    const problem = problemOfRoot(root, this.size) ?? problemOfBytes(bytes);
    if (problem) this.#boxes.refuse('gather', problem);
    return this.#collect('gather', bytes, root, this.rank === root);
  }

  allgather(bytes: Uint8Array): Uint8Array[] {
    const problem = problemOfBytes(bytes);
    if (problem) this.#boxes.refuse('allgather', problem);
    return this.#collect('allgather', bytes, 0, true) as Uint8Array[];
  }

  split(color: number): TimeoutCommunicator {
    const problem = problemOfColor(color);
    if (problem) this.#boxes.refuse('split', problem);
    const boxes = this.#boxes;
    boxes.begin('split');
    boxes.post('split', color, 0);
    boxes.awaitAll('split', any, 0);
    const group: number[] = [];
    for (let rank = 0; rank < this.size; rank++) if (boxes.argumentOf(rank) === color) group.push(rank);
    // The lowest rank of each group allocates memory and tells the others where it is.
    const leader = group[0] as number;
    const message = boxes.advance();
    let block = 0;
    if (leader === this.rank) {
      try {
        block = boxes.run.allocate(group.length);
      } catch (error) {
        boxes.refuseNow(message, 'split', (error as Error).message);
      }
    }
    boxes.post('next', block, 0);
    boxes.awaitAll('next', any, any);
    const members = group.map((rank) => boxes.members[rank] as number);
    const made = new Mailboxes(boxes.run, boxes.argumentOf(leader), members, group.indexOf(this.rank));
    made.timeout = boxes.timeout;
    return new ThreadsCommunicator(made);
  }

  abort(code: number): never {
    const { run, members } = this.#boxes;
    const rank = members[this.rank] as number;
    run.fail({ owner: rank, rank, kind: 'abort', reason: `rank ${rank} aborted the run with code ${code}` });
    // In a worker this ends the thread; the thread that started the run ends the others.
    process.exit(Number.isInteger(code) ? code : 1);
  }

  close(): void {
    this.#boxes.close();
  }

  /** First round of a collective of bytes: exchanges the lengths, and messages that fit into a mailbox. */
  #announce(calling: Operation, root: number, mine: Uint8Array | undefined): void {
    const boxes = this.#boxes;
    const at = boxes.begin(calling);
    if (mine && mine.length <= inlineLimit) boxes.bytes.set(mine, at);
    boxes.post(calling, root, mine?.length ?? 0);
    boxes.awaitAll(calling, root, any);
  }

  /** Copies a small message out of a rank's mailbox. */
  #take(rank: number, into: Uint8Array): void {
    const at = this.#boxes.offsetOf(rank);
    into.set(this.#boxes.bytes.subarray(at, at + into.length));
  }

  #collect(calling: 'gather' | 'allgather', bytes: Uint8Array, root: number, receives: boolean): Uint8Array[] | null {
    this.#announce(calling, root, bytes);
    const results: Uint8Array[] = [];
    const large = new Float64Array(this.size);
    for (let rank = 0; rank < this.size; rank++) {
      const length = this.#boxes.lengthOf(rank);
      // In a gather the root's own message is not exchanged.
      if (length > inlineLimit && !(calling === 'gather' && rank === root)) large[rank] = length;
      if (!receives) continue;
      const result = rank === this.rank ? new Uint8Array(bytes) : new Uint8Array(length);
      if (length <= inlineLimit && rank !== this.rank) this.#take(rank, result);
      results.push(result);
    }
    this.#exchange(bytes, large, (rank, from, start, count) => {
      if (receives && rank !== this.rank) results[rank]?.set(this.#bulk.subarray(from, from + count), start);
    });
    return receives ? results : null;
  }

  /** Combines the numbers of ranks 0 to `ranks` - 1, in that order; zeros if `ranks` is 0. */
  #reduce(calling: 'allreduce' | 'exscan', values: Float64Array, op: Reduction, ranks: number): Float64Array {
    const boxes = this.#boxes;
    const count = values.length;
    const bytes = count * 8;
    const argument = reductions.indexOf(op);
    const mailbox = boxes.begin(calling);
    const small = bytes <= inlineLimit;
    if (small) for (let i = 0, at = mailbox >> 3; i < count; i++) boxes.numbers[at + i] = values[i] as number;
    boxes.post(calling, argument, bytes);
    boxes.awaitAll(calling, argument, bytes);
    const result = new Float64Array(count);
    if (small) {
      for (let rank = 0; rank < ranks; rank++) {
        const at = boxes.offsetOf(rank) >> 3;
        if (rank > 0) combine(result, 0, boxes.numbers, at, count, op);
        else for (let i = 0; i < count; i++) result[i] = boxes.numbers[at + i] as number;
      }
      return result;
    }
    const bulk = new Float64Array(boxes.run.memory.bulk);
    const mine = new Uint8Array(values.buffer, values.byteOffset, bytes);
    this.#exchange(mine, new Float64Array(this.size).fill(bytes), (rank, from, start, size) => {
      if (rank >= ranks) return;
      if (rank > 0) combine(result, start / 8, bulk, from / 8, size / 8, op);
      else result.set(bulk.subarray(from / 8, (from + size) / 8), start / 8);
    });
    return result;
  }

  /** Exchanges messages of these lengths through the bulk memory, a chunk of each rank per round. Ranks of length 0 only take part. */
  #exchange(mine: Uint8Array | undefined, lengths: Float64Array, receive: Receive): void {
    const boxes = this.#boxes;
    const { members } = boxes;
    let longest = 0;
    for (const length of lengths) longest = Math.max(longest, length);
    if (longest === 0) return;
    for (let start = 0, round = 0; start < longest; start += chunkSize, round++) {
      const half = round & 1;
      boxes.advance();
      if (mine && start < (lengths[this.rank] as number)) {
        this.#bulk.set(mine.subarray(start, start + chunkSize), chunkOffset(members[this.rank] as number, half));
      }
      boxes.post('next', 0, 0);
      boxes.awaitAll('next', 0, 0);
      for (let rank = 0; rank < this.size; rank++) {
        const count = Math.min(chunkSize, (lengths[rank] as number) - start);
        if (count > 0) receive(rank, chunkOffset(members[rank] as number, half), start, count);
      }
    }
    // The bulk memory belongs to the rank, not to this communicator: all must have read it before it is used again.
    boxes.advance();
    boxes.post('next', 0, 0);
    boxes.awaitAll('next', 0, 0);
  }
}

function chunkOffset(member: number, half: number): number {
  return (2 * member + half) * chunkSize;
}

/** The communicator of all ranks of a run, for one of them. */
export function threadsCommunicator(run: SharedRun, rank: number, timeout: number): TimeoutCommunicator {
  const members = Array.from({ length: run.ranks }, (_, member) => member);
  const boxes = new Mailboxes(run, run.firstBlock, members, rank);
  boxes.timeout = timeout;
  return new ThreadsCommunicator(boxes);
}

/** Combines `count` numbers of `from`, beginning at `start`, into `into` at `at`. Called in rank order, so that all ranks get the same bits. */
function combine(
  into: Float64Array,
  at: number,
  from: Float64Array,
  start: number,
  count: number,
  op: Reduction,
): void {
  if (op === 'sum') {
    for (let i = 0; i < count; i++) into[at + i] = (into[at + i] as number) + (from[start + i] as number);
  } else if (op === 'min') {
    for (let i = 0; i < count; i++) into[at + i] = Math.min(into[at + i] as number, from[start + i] as number);
  } else {
    for (let i = 0; i < count; i++) into[at + i] = Math.max(into[at + i] as number, from[start + i] as number);
  }
}
