import { H5LogError } from '../../base/errors.ts';
import {
  type CollectiveFile,
  type FileCommunicator,
  problemOfBytes,
  problemOfColor,
  problemOfReduction,
  problemOfRoot,
  problemOfTimeout,
  problemOfValues,
  type Reduction,
  type TimeoutCommunicator,
} from '../communicator.ts';
import type { Handle, HandleCell } from './binding.ts';
import { Departures, type Member } from './end.ts';
import { openMpiFile } from './file.ts';
import type { Job } from './job.ts';
import { Spares } from './spares.ts';

/** Counts are int32 in MPI: longer messages are sent in pieces of this size. */
const maxMessage = 2 ** 30;
/** Milliseconds in a collective after which a rank checks whether the others still run. */
const firstCheck = 50;
/** If several ranks could report the same failure, each waits this many milliseconds times its rank: the first report ends the job. */
const reportDelay = 250;
/** Every collective begins with a block of fixed size that holds the length and, if they fit, the data. Sizes in bytes; of reduceBlock in numbers. */
const bcastBlock = 256;
const gatherBlock = 192;
const reduceBlock = 16;
/** Fewer numbers than this fit into the first block of a reduction, after the two that check the lengths. */
const inlineLimit = 15;
/** A larger allgather is a broadcast per rank, straight into the results, instead of one MPI_Allgatherv into a buffer for all. */
const maxGathered = 64 * 2 ** 20;
const payloadTag = 2;

const operations = ['barrier', 'bcast', 'allreduce', 'exscan', 'gather', 'allgather', 'split'] as const;
type Operation = (typeof operations)[number];

/**
 * Collectives over MPI. They use the nonblocking calls and poll: a rank inside a blocking call could not time out and would not
 * notice that another rank has ended.
 */
export class MpiCommunicator implements TimeoutCommunicator, FileCommunicator, Member {
  readonly kind = 'mpi' as const;
  readonly rank: number;
  readonly size: number;
  readonly handle: Handle;
  readonly job: Job;
  readonly departures: Departures;
  readonly #open: Set<Member>;
  #begun = 0;
  #timeout: number;
  /** Rank in the job of each rank of this communicator. */
  readonly #members: readonly number[];
  readonly #cell: HandleCell;
  readonly #request: HandleCell;
  readonly #free: ((cell: HandleCell) => void) | null;
  readonly #spares = new Spares();
  readonly #checked = process.env.H5LOG_MPI_CHECK === '1';
  readonly #bytes = new Uint8Array(new ArrayBuffer(bcastBlock));
  readonly #length = new DataView(this.#bytes.buffer);
  readonly #send = new Float64Array(new ArrayBuffer(8 * reduceBlock));
  readonly #receive = new Float64Array(new ArrayBuffer(8 * reduceBlock));
  #blocks: Uint8Array | undefined;
  #closed = false;

  /**
   * `cell` holds the MPI communicator, which is used by nobody else. `open` are all open communicators, for the end of the process.
   * `free` releases the cell on close; null for the communicator of all ranks, which stays open.
   */
  constructor(
    job: Job,
    cell: HandleCell,
    members: readonly number[],
    open: Set<Member>,
    timeout: number,
    free: ((cell: HandleCell) => void) | null,
  ) {
    this.job = job;
    this.#cell = cell;
    this.handle = Number(cell[0]);
    this.#members = members;
    this.rank = members.indexOf(job.rank);
    this.size = members.length;
    this.#timeout = timeout;
    this.#free = free;
    this.#request = job.binding.cells(1);
    this.departures = new Departures(job);
    this.#open = open;
    open.add(this);
  }

  get begun(): number {
    return this.#begun;
  }

  get timeout(): number {
    return this.#timeout;
  }

  set timeout(timeout: number) {
    const problem = problemOfTimeout(timeout);
    if (problem) throw new H5LogError('OPTION', problem);
    this.#timeout = timeout;
  }

  /** Used by `storage: 'mpi-io'`. */
  openFile(path: string): CollectiveFile {
    return openMpiFile(this, path);
  }

  barrier(): void {
    this.#begin('barrier', 0);
    this.#complete(this.job.binding.calls.Ibarrier(this.handle, this.#request), 'barrier');
  }

  bcast(bytes: Uint8Array | null, root: number): Uint8Array {
    // Only the root's argument counts.
    const wrong = this.rank === root && bytes !== null ? problemOfBytes(bytes) : undefined;
    this.#begin('bcast', root, problemOfRoot(root, this.size) ?? wrong);
    const { calls, constants } = this.job.binding;
    const block = this.#bytes;
    if (this.rank === root) {
      // A root without data sends a negative length: if it alone threw, the others would wait.
      this.#length.setFloat64(0, bytes ? bytes.length : -1);
      if (bytes && bytes.length <= bcastBlock - 8) block.set(bytes, 8);
    }
    this.#complete(calls.Ibcast(block, bcastBlock, constants.BYTE, root, this.handle, this.#request), 'bcast');
    const length = this.#length.getFloat64(0);
    if (length < 0) {
      throw new H5LogError('COMM', 'bcast: the root has nothing to send', { rank: this.#members[root] });
    }
    if (length <= bcastBlock - 8) return block.slice(8, 8 + length);
    const result = new Uint8Array(length);
    if (bytes && this.rank === root) result.set(bytes);
    this.#bcastInto(result, root, 'bcast');
    return result;
  }

  allreduce(values: Float64Array, op: Reduction): Float64Array {
    this.#begin('allreduce', values?.length, problemOfValues(values) ?? problemOfReduction(op));
    const { SUM, MIN, MAX } = this.job.binding.constants;
    const handle = op === 'sum' ? SUM : op === 'min' ? MIN : MAX;
    const count = values.length;
    const short = Math.min(count, inlineLimit);
    const [send, receive] = [this.#send, this.#receive];
    // After the reduction, these two numbers tell every rank whether all lengths were equal.
    send[0] = op === 'sum' ? short : count;
    send[1] = op === 'sum' ? short * short : -count;
    if (count < inlineLimit) send.set(values, 2);
    this.#reduce(send, receive, handle);
    const [first = 0, second = 0] = receive;
    // For a sum: n times the sum of the squares equals the square of the sum only if all lengths are equal.
    const same = op === 'sum' ? first * first === this.size * second : first === -second;
    if (!same) this.#differingLengths('allreduce', count);
    if (count < inlineLimit) return receive.slice(2, 2 + count);
    if (op === 'sum') this.#checkLengths('allreduce', count);
    const result = new Float64Array(count);
    for (let from = 0; from < count; from += maxMessage / 8) {
      const to = Math.min(count, from + maxMessage / 8);
      this.#reduce(values.subarray(from, to), result.subarray(from, to), handle);
    }
    return result;
  }

  exscan(values: Float64Array): Float64Array {
    this.#begin('exscan', values?.length, problemOfValues(values));
    const count = values.length;
    const short = Math.min(count, inlineLimit);
    const [send, receive] = [this.#send, this.#receive];
    send[0] = short;
    send[1] = short * short;
    if (count < inlineLimit) send.set(values, 2);
    receive.fill(0);
    this.#scan(send, receive);
    // A rank sees only the ranks before it. If its length differs from theirs, it alone throws, and that ends the job.
    if (receive[0] !== this.rank * short || receive[1] !== this.rank * short * short) {
      const message = `exscan: ${this.job.name} gave ${count} values, a rank before it gave another number`;
      throw new H5LogError('COMM', message, { rank: this.job.rank });
    }
    if (count < inlineLimit) return receive.slice(2, 2 + count);
    this.#checkLengths('exscan', count);
    // MPI leaves the result of rank 0 undefined: it stays zero.
    const result = new Float64Array(count);
    for (let from = 0; from < count; from += maxMessage / 8) {
      const to = Math.min(count, from + maxMessage / 8);
      this.#scan(values.subarray(from, to), result.subarray(from, to));
    }
    return result;
  }

  gather(bytes: Uint8Array, root: number): Uint8Array[] | null {
    this.#begin('gather', root, problemOfRoot(root, this.size) ?? problemOfBytes(bytes));
    const { calls, constants } = this.job.binding;
    const { BYTE } = constants;
    const block = this.#fillBlock(bytes);
    const blocks = this.rank === root ? this.#allBlocks() : null;
    this.#complete(
      calls.Igather(block, gatherBlock, BYTE, blocks, gatherBlock, BYTE, root, this.handle, this.#request),
      'gather',
    );
    if (!blocks) {
      if (bytes.length > gatherBlock - 8) this.#transfer([{ bytes, peer: root }], 'Isend');
      return null;
    }
    const results = this.#unpack(blocks);
    // Long messages are sent point to point, straight into the results.
    const long = [...results.entries()].filter(([rank, { length }]) => length > gatherBlock - 8 && rank !== root);
    this.#transfer(
      long.map(([peer, result]) => ({ bytes: result, peer })),
      'Irecv',
    );
    results[root] = new Uint8Array(bytes);
    return results;
  }

  allgather(bytes: Uint8Array): Uint8Array[] {
    this.#begin('allgather', 0, problemOfBytes(bytes));
    return this.#allgather(bytes);
  }

  split(color: number): TimeoutCommunicator {
    this.#begin('split', 0, problemOfColor(color));
    const spares = this.#spares;
    // All ranks learn all colours before MPI_Comm_split, which blocks: a missing rank is noticed here.
    const answers = this.#allgather(new Uint8Array(Int32Array.of(color, spares.first).buffer)).map(
      ({ buffer }) => new Int32Array(buffer),
    );
    const members = this.#members.filter((_, rank) => answers[rank]?.[0] === color);
    if (members.length < this.size) return this.#wrap(this.#splitOff(color), members, undefined);
    const free = answers.every((one) => one[1] === spares.first) ? spares.first : -1;
    const number = free < 0 ? spares.number() : free;
    const cell = free < 0 ? this.#duplicate() : spares.take(free);
    return this.#wrap(cell, members, (closed) => spares.give(number, closed));
  }

  #splitOff(color: number): HandleCell {
    const { binding } = this.job;
    const cell = binding.cells(1);
    this.job.check(binding.calls.Comm_split(this.handle, color, this.rank, cell), 'MPI_Comm_split');
    return cell;
  }

  #duplicate(): HandleCell {
    const { binding } = this.job;
    const cell = binding.cells(1);
    this.#complete(binding.calls.Comm_idup(this.handle, cell, this.#request), 'split');
    return cell;
  }

  #wrap(
    cell: HandleCell,
    members: readonly number[],
    giveBack: ((cell: HandleCell) => void) | undefined,
  ): MpiCommunicator {
    const { binding } = this.job;
    const code = binding.calls.Comm_set_errhandler(Number(cell[0]), binding.errorsReturn());
    this.job.check(code, 'MPI_Comm_set_errhandler');
    const free = giveBack ?? ((closed) => this.job.check(binding.calls.Comm_free(closed), 'MPI_Comm_free'));
    return new MpiCommunicator(this.job, cell, members, this.#open, this.timeout, free);
  }

  abort(code: number): never {
    return this.job.abort(code);
  }

  /** The communicator of all ranks stays open until the process ends. */
  close(): void {
    if (this.#closed || this.#free === null || this.job.ended) return;
    this.#closed = true;
    this.#open.delete(this);
    for (const spare of this.#spares.empty()) {
      this.job.check(this.job.binding.calls.Comm_free(spare), 'MPI_Comm_free');
    }
    this.#free(this.#cell);
  }

  #allgather(bytes: Uint8Array): Uint8Array[] {
    const { calls, constants } = this.job.binding;
    const { BYTE } = constants;
    const block = this.#fillBlock(bytes);
    const blocks = this.#allBlocks();
    this.#complete(
      calls.Iallgather(block, gatherBlock, BYTE, blocks, gatherBlock, BYTE, this.handle, this.#request),
      'allgather',
    );
    const results = this.#unpack(blocks);
    const counts = new Int32Array(this.size);
    const offsets = new Int32Array(this.size);
    let total = 0;
    for (const [rank, { length }] of results.entries()) {
      if (length <= gatherBlock - 8) continue;
      offsets[rank] = total;
      counts[rank] = length;
      total += length;
    }
    results[this.rank]?.set(bytes);
    if (total > maxGathered) {
      for (const [rank, result] of results.entries()) {
        if (result.length > gatherBlock - 8) this.#bcastInto(result, rank, 'allgather');
      }
    } else if (total > 0) {
      const all = new Uint8Array(total);
      const count = counts[this.rank] ?? 0;
      this.#complete(
        calls.Iallgatherv(bytes, count, BYTE, all, counts, offsets, BYTE, this.handle, this.#request),
        'allgather',
        total,
      );
      for (const [rank, result] of results.entries()) {
        const at = offsets[rank] ?? 0;
        if (counts[rank]) result.set(all.subarray(at, at + result.length));
      }
    }
    return results;
  }

  #bcastInto(result: Uint8Array, root: number, what: Operation): void {
    const { calls, constants } = this.job.binding;
    for (let from = 0; from < result.length; from += maxMessage) {
      const part = result.subarray(from, from + maxMessage);
      this.#complete(
        calls.Ibcast(part, part.length, constants.BYTE, root, this.handle, this.#request),
        what,
        part.length,
      );
    }
  }

  #reduce(send: Float64Array, receive: Float64Array, op: Handle): void {
    const { calls, constants } = this.job.binding;
    const code = calls.Iallreduce(send, receive, send.length, constants.DOUBLE, op, this.handle, this.#request);
    this.#complete(code, 'allreduce', send.byteLength);
  }

  #scan(send: Float64Array, receive: Float64Array): void {
    const { calls, constants } = this.job.binding;
    const { DOUBLE, SUM } = constants;
    const code = calls.Iexscan(send, receive, send.length, DOUBLE, SUM, this.handle, this.#request);
    this.#complete(code, 'exscan', send.byteLength);
  }

  /** Fills the first block of a gather: the length and the data, if it fits. */
  #fillBlock(bytes: Uint8Array): Uint8Array {
    const block = this.#bytes.subarray(0, gatherBlock);
    this.#length.setFloat64(0, bytes.length);
    if (bytes.length <= gatherBlock - 8) block.set(bytes, 8);
    return block;
  }

  #allBlocks(): Uint8Array {
    this.#blocks ??= new Uint8Array(new ArrayBuffer(gatherBlock * this.size));
    return this.#blocks;
  }

  /** The messages that fit into the blocks; for longer ones, empty memory of their length. */
  #unpack(blocks: Uint8Array): Uint8Array[] {
    const lengths = new DataView(blocks.buffer);
    return Array.from({ length: this.size }, (_, rank) => {
      const length = lengths.getFloat64(rank * gatherBlock);
      const start = rank * gatherBlock + 8;
      return length > gatherBlock - 8 ? new Uint8Array(length) : blocks.slice(start, start + length);
    });
  }

  /** Sends or receives point-to-point messages, all at once. */
  #transfer(messages: readonly { bytes: Uint8Array; peer: number }[], call: 'Isend' | 'Irecv'): void {
    const { calls, constants, cells } = this.job.binding;
    const parts = messages.flatMap(({ bytes, peer }) => {
      return Array.from({ length: Math.ceil(bytes.length / maxMessage) }, (_, index) => {
        return { bytes: bytes.subarray(index * maxMessage, (index + 1) * maxMessage), peer };
      });
    });
    if (parts.length === 0) return;
    const requests = cells(parts.length);
    let total = 0;
    for (const [index, { bytes, peer }] of parts.entries()) {
      const cell = requests.subarray(index, index + 1);
      const code = calls[call](bytes, bytes.length, constants.BYTE, peer, payloadTag, this.handle, cell);
      this.job.check(code, `MPI_${call}`);
      total += bytes.length;
    }
    this.#wait(requests, parts.length, total, 'gather');
  }

  /** Checks the code of a nonblocking call and waits for its request. */
  #complete(code: number, what: Operation, bytes = 0): void {
    if (code !== 0) this.job.check(code, what);
    this.#wait(this.#request, 1, bytes, what);
  }

  #wait(requests: HandleCell, count: number, bytes: number, what: Operation): void {
    this.job.wait(requests, count, bytes, Math.min(firstCheck, this.timeout), (waited) =>
      this.#checkOthers(waited, what),
    );
  }

  /** Called after a while in a collective: aborts the job on timeout, or if a rank that this one waits for has ended. */
  #checkOthers(waited: number, what: Operation): void {
    const { job, rank } = this;
    // Each rank gives those before it the time to report first: one message is enough.
    if (waited >= this.timeout + reportDelay * Math.min(rank, 10)) {
      job.fail(`COMM: ${job.name} has waited ${Math.round(waited)} ms in ${what}; the timeout is ${this.timeout} ms`);
    }
    const { departures } = this;
    departures.listen(this);
    if (departures.count >= this.#begun) return;
    // Another rank may have noticed too, in another communicator.
    job.pause(reportDelay * Math.min(job.rank, 10));
    job.fail(`COMM: rank ${departures.rank} of ${job.size} has ended while ${job.name} waits for it in ${what}`);
  }

  #begin(what: Operation, detail: number, problem?: string): void {
    const wrong = this.#closed ? 'the communicator is closed' : this.job.ended ? 'MPI has ended here' : problem;
    if (wrong) throw new H5LogError('COMM', `${what}: ${wrong}`, { rank: this.job.rank });
    this.#begun++;
    if (this.#checked) this.#compareCalls(what, detail);
  }

  /** With H5LOG_MPI_CHECK=1, for debugging programs: throws unless all ranks make the same call. */
  #compareCalls(what: Operation, detail: number): void {
    const { calls, constants } = this.job.binding;
    const mine = Float64Array.of(operations.indexOf(what), detail);
    const all = new Float64Array(new ArrayBuffer(16 * this.size));
    const code = calls.Iallgather(mine, 2, constants.DOUBLE, all, 2, constants.DOUBLE, this.handle, this.#request);
    this.#complete(code, what);
    for (let rank = 1; rank < this.size; rank++) {
      if (all[2 * rank] === all[0] && all[2 * rank + 1] === all[1]) continue;
      const [here, there] = [describe(all, 0), describe(all, rank)];
      const message = `rank ${this.#members[rank]} calls ${there} where rank ${this.#members[0]} calls ${here}`;
      throw new H5LogError('COMM', message, { rank: this.#members[rank] });
    }
  }

  #checkLengths(what: Operation, count: number): void {
    this.#send[0] = count;
    this.#send[1] = -count;
    this.#reduce(this.#send, this.#receive, this.job.binding.constants.MIN);
    if (this.#receive[0] !== count || this.#receive[1] !== -count) this.#differingLengths(what, count);
  }

  /** Collective, when the lengths differ: finds out which rank differs. */
  #differingLengths(what: Operation, count: number): never {
    const counts = this.#allgather(new Uint8Array(Float64Array.of(count).buffer)).map(
      (bytes) => new Float64Array(bytes.buffer)[0],
    );
    const other = Math.max(
      counts.findIndex((value) => value !== counts[0]),
      0,
    );
    const [first, second] = [this.#members[0], this.#members[other]];
    const message = `${what}: rank ${second} gave ${counts[other]} values, rank ${first} gave ${counts[0]}`;
    throw new H5LogError('COMM', message, { rank: second });
  }
}

function describe(all: Float64Array, rank: number): string {
  const operation = operations[all[2 * rank] ?? -1] ?? 'something else';
  const detail = all[2 * rank + 1] ?? 0;
  if (operation === 'bcast' || operation === 'gather') return `${operation} with root ${detail}`;
  if (operation === 'allreduce' || operation === 'exscan') return `${operation} with ${detail} values`;
  return operation;
}
