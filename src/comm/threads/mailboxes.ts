import { availableParallelism } from 'node:os';
import { H5LogError } from '../../base/errors.ts';
import { blockSize, completedRound, inlineLimit, mailboxHeader, mailboxOffset, type SharedRun } from './memory.ts';

/** Codes of the operations in mailbox headers. `fault`: a call with a bad argument. `next`: a further round of the same call. */
const operation = {
  barrier: 1,
  bcast: 2,
  allreduce: 3,
  exscan: 4,
  gather: 5,
  allgather: 6,
  split: 7,
  close: 8,
  fault: 9,
  next: 10,
} as const;
export type Operation = keyof typeof operation;
const names = ['nothing', ...Object.keys(operation)];

/** In a comparison of headers: this field may differ between ranks. */
export const any = -1;

/** Milliseconds that a rank sleeps before it checks again whether the run has failed or a rank has ended. */
const sleepSlice = 20;
/**
 * Spins before a rank goes to sleep: about 30 us, since waking up costs that much. With more ranks than cores, the rank that is
 * waited for may need this very core, so the spinning is short.
 */
const spinsOnFreeCores = 3000;
const spinsOnBusyCores = 50;

/**
 * The mailboxes of one communicator. A collective consists of one or more rounds. In each round every rank fills its mailbox,
 * publishes the number of the round in it, and waits for the last rank, which wakes all others at once: each rank sleeps at most
 * once. A rank has two mailboxes and uses them in turn: it gets to round r + 2 only after all have published r + 1, and so have
 * read what it left in round r.
 */
export class Mailboxes {
  readonly run: SharedRun;
  readonly rank: number;
  /** Rank in the whole run of each rank of this communicator. */
  readonly members: readonly number[];
  readonly words: Int32Array;
  readonly numbers: Float64Array;
  readonly bytes: Uint8Array;
  timeout = Number.POSITIVE_INFINITY;
  readonly #block: number;
  readonly #spins: number;
  #round = 0;
  #calling: Operation = 'barrier';
  #closed = false;
  /**
   * The rank that ended while this one waited for it. No further round can complete, and nothing may be written into the mailboxes:
   * others may still be reading what was there before.
   */
  #endedRank: number | undefined;
  /** One that has closed the communicator: nobody waits for it again. */
  #leftRank: number | undefined;

  constructor(run: SharedRun, block: number, members: readonly number[], rank: number) {
    const size = blockSize(members.length);
    this.run = run;
    this.rank = rank;
    this.members = members;
    this.words = new Int32Array(run.memory.control, block, size / 4);
    this.numbers = new Float64Array(run.memory.control, block, size / 8);
    this.bytes = new Uint8Array(run.memory.control, block, size);
    this.#block = block;
    this.#spins = run.ranks <= availableParallelism() ? spinsOnFreeCores : spinsOnBusyCores;
  }

  /** Begins a collective. Returns the offset of this rank's message in `bytes`. */
  begin(calling: Operation): number {
    this.#calling = calling;
    if (this.#closed) throw this.#error('the communicator is closed', this.rank);
    this.#throwIfFailed();
    if (this.#endedRank !== undefined) throw this.#ended(this.#endedRank);
    if (this.#leftRank !== undefined) throw this.#left(this.#leftRank);
    return this.advance();
  }

  /** Begins the next round of a collective. Returns the offset of this rank's message in `bytes`. */
  advance(): number {
    this.#round = (this.#round + 1) | 0;
    return mailboxOffset(this.rank, this.#round) + mailboxHeader;
  }

  /** The offset in `bytes` of a rank's message in this round. */
  offsetOf(rank: number): number {
    return mailboxOffset(rank, this.#round) + mailboxHeader;
  }

  argumentOf(rank: number): number {
    return this.words[(mailboxOffset(rank, this.#round) >> 2) + 2] as number;
  }

  lengthOf(rank: number): number {
    return this.numbers[(mailboxOffset(rank, this.#round) >> 3) + 2] as number;
  }

  /** Publishes this rank's mailbox for this round. */
  post(calling: Operation, argument: number, length: number): void {
    const at = mailboxOffset(this.rank, this.#round);
    const word = at >> 2;
    this.words[word + 1] = operation[calling];
    this.words[word + 2] = argument;
    this.numbers[(at >> 3) + 2] = length;
    Atomics.store(this.words, word, this.#round);
    // A rank that sees all others published is the last; of two that publish at the same time, one or both see that. A counter
    // would not do: it would also count ranks that gave a round up and went on to the next.
    for (let rank = 0; rank < this.members.length; rank++) if (!this.#hasPublished(rank)) return;
    Atomics.store(this.words, completedRound, this.#round);
    Atomics.notify(this.words, completedRound);
  }

  /** Waits until all ranks have published this round, and throws unless they all made the same call. */
  awaitAll(calling: Operation, argument: number, length: number): void {
    const { words, numbers, rank: me } = this;
    const round = this.#round;
    const called = operation[calling];
    let spins = this.#spins;
    while (Atomics.load(words, completedRound) !== round && spins > 0) spins--;
    if (spins === 0) this.#sleep();
    let agreed = true;
    for (let rank = 0; rank < this.members.length; rank++) {
      if (rank === me) continue;
      const at = mailboxOffset(rank, round);
      const word = at >> 2;
      if (
        words[word + 1] !== called ||
        (argument !== any && words[word + 2] !== argument) ||
        (length !== any && numbers[(at >> 3) + 2] !== length)
      ) {
        agreed = false;
      }
    }
    if (!agreed) throw this.#disagreement(argument, length);
  }

  /** Takes part in the collective with an error message only, so that every rank throws the same error. */
  refuse(calling: Operation, problem: string): never {
    const at = this.begin(calling);
    this.refuseNow(at, calling, problem);
  }

  /** Like `refuse`, in the round that was begun last. `at` is the offset of its message. */
  refuseNow(at: number, calling: Operation, problem: string): never {
    const text = new TextEncoder()
      .encode(`${calling} on ${this.#name(this.rank)}: ${problem}`)
      .subarray(0, inlineLimit);
    this.bytes.set(text, at);
    this.post('fault', operation[calling], text.length);
    this.awaitAll('fault', any, any);
    throw this.#disagreement(any, any);
  }

  /** Leaves the communicator without waiting. Ranks that still call a collective learn that this one has closed it. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.run.failed) return;
    if (this.#endedRank === undefined) {
      this.advance();
      this.post('close', 0, 0);
    }
    this.run.release(this.#block, this.members.length);
  }

  #sleep(): void {
    const { words, run, members } = this;
    const round = this.#round;
    const from = performance.now();
    while (true) {
      // Read before the round: what a rank had published is visible once it is seen to have ended.
      const ended = members.filter((member) => run.hasEnded(member));
      const seen = Atomics.load(words, completedRound);
      if (seen === round) return;
      this.#throwIfFailed();
      const gone = ended.find((member) => !this.#hasPublished(members.indexOf(member)));
      if (gone !== undefined) {
        this.#endedRank = gone;
        throw this.#ended(gone);
      }
      const left = this.timeout - (performance.now() - from);
      if (left <= 0) this.#giveUp();
      Atomics.wait(words, completedRound, seen, Math.min(sleepSlice, left));
    }
  }

  /** Whether a rank has published its mailbox in this round. */
  #hasPublished(rank: number): boolean {
    return Atomics.load(this.words, mailboxOffset(rank, this.#round) >> 2) === this.#round;
  }

  #ended(member: number): H5LogError {
    return this.#error(`${this.#name(this.members.indexOf(member))} has ended, its function returned`, member);
  }

  #left(rank: number): H5LogError {
    return this.#error(`${this.#name(rank)} has closed the communicator`, this.members[rank]);
  }

  #giveUp(): void {
    const owner = this.members[this.rank] as number;
    const missing = this.members.find((_, rank) => !this.#hasPublished(rank));
    // The last rank has published just now.
    if (missing === undefined) return;
    const reason = `rank ${owner} waited ${this.timeout} ms in ${this.#calling} for rank ${missing}, which did not come`;
    if (this.run.fail({ owner, rank: missing, kind: 'error', reason })) {
      throw new H5LogError('COMM', `${this.#calling}: ${reason}`, { rank: missing });
    }
    this.#throwIfFailed();
    throw this.#error(reason, missing);
  }

  #throwIfFailed(): void {
    if (!this.run.failed) return;
    const failure = this.run.failure();
    throw this.#error(failure?.reason ?? 'the run has failed', failure?.rank ?? this.rank);
  }

  /** Built only from what the mailboxes hold, so that the message is the same on every rank. */
  #disagreement(argument: number, length: number): H5LogError {
    const { words, numbers, members } = this;
    const at = (rank: number) => mailboxOffset(rank, this.#round);
    const called = (rank: number) => words[(at(rank) >> 2) + 1] as number;
    const ranks = [...members.keys()];
    const faulty = ranks.find((rank) => called(rank) === operation.fault);
    if (faulty !== undefined) {
      const text = this.bytes.slice(this.offsetOf(faulty), this.offsetOf(faulty) + this.lengthOf(faulty));
      return new H5LogError('COMM', new TextDecoder().decode(text), { rank: members[faulty] });
    }
    const gone = ranks.find((rank) => called(rank) === operation.close);
    if (gone !== undefined) {
      this.#leftRank = gone;
      return this.#left(gone);
    }
    const differs = (rank: number) =>
      called(rank) !== called(0) ||
      (argument !== any && this.argumentOf(rank) !== this.argumentOf(0)) ||
      (length !== any && numbers[(at(rank) >> 3) + 2] !== this.lengthOf(0));
    const other = ranks.find(differs) ?? 0;
    const text = `the ranks called different things: ${this.#describe(0)}, ${this.#describe(other)}`;
    return new H5LogError('COMM', text, { rank: members[other] });
  }

  #describe(rank: number): string {
    const called = this.words[(mailboxOffset(rank, this.#round) >> 2) + 1] as number;
    const argument = this.argumentOf(rank);
    let details = '';
    if (called === operation.bcast || called === operation.gather) details = ` with root ${argument}`;
    else if (called === operation.allreduce) {
      details = ` of ${this.lengthOf(rank) / 8} numbers (${['sum', 'min', 'max'][argument]})`;
    } else if (called === operation.exscan) details = ` of ${this.lengthOf(rank) / 8} numbers`;
    return `${this.#name(rank)} ${names[called]}${details}`;
  }

  #error(reason: string, rank: number | undefined): H5LogError {
    return new H5LogError('COMM', `${this.#calling} on ${this.#name(this.rank)}: ${reason}`, { rank });
  }

  #name(rank: number): string {
    if (this.members.length === this.run.ranks) return `rank ${rank}`;
    return `rank ${rank} of ${this.members.length} (rank ${this.members[rank]} of the run)`;
  }
}
