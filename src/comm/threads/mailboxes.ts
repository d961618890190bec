import { availableParallelism } from 'node:os';
import { H5LogError } from '../../base/errors.ts';
import { blockSize, inlineLimit, mailboxHeader, mailboxOffset, meeting, type SharedRun } from './memory.ts';

/** What a header says that a rank has called. `fault` is a call with a bad argument; `next` goes on with the call before. */
export const operation = {
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

/** In a comparison of headers: this part may differ from rank to rank. */
export const any = -1;

/** How long a rank sleeps before it looks again whether the run has failed or the rank it waits for has ended. */
const slice = 20;
/**
 * Looks before a rank goes to sleep: about 30 us, since waking up costs that much. With more ranks than cores the one that is
 * waited for may need this very core, so the spinning is short.
 */
const spinsOnFreeCores = 3000;
const spinsOnBusyCores = 50;

/**
 * The mailboxes of one communicator. Each collective has one or more tickets; under each, every rank fills its mailbox, then
 * publishes the ticket, then waits for the last one to come, which tells all others at once: each rank sleeps at most once.
 * A rank has two mailboxes and uses them in turn: it can only come to ticket t + 2 after all have published t + 1, and so have
 * read what it left under t.
 */
export class Mailboxes {
  readonly run: SharedRun;
  readonly rank: number;
  /** The ranks of the whole run that are ranks 0, 1, ... here. */
  readonly members: readonly number[];
  readonly words: Int32Array;
  readonly numbers: Float64Array;
  readonly bytes: Uint8Array;
  timeout = Number.POSITIVE_INFINITY;
  readonly #block: number;
  readonly #spins: number;
  #ticket = 0;
  #calling: Operation = 'barrier';
  #closed = false;
  /**
   * The rank that has ended while this one waited for it. They will not meet again, and nothing more may be put into the mailboxes: others
   * may still be reading what was there before.
   */
  #missed: number | undefined;

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

  /** Begins a collective: gives the place of this rank's message, in bytes. */
  begin(calling: Operation): number {
    this.#calling = calling;
    if (this.#closed) throw this.#error('the communicator is closed', this.rank);
    this.#throwIfFailed();
    if (this.#missed !== undefined) throw this.#ended(this.#missed);
    return this.advance();
  }

  /** The next ticket of a collective that has begun. */
  advance(): number {
    this.#ticket = (this.#ticket + 1) | 0;
    return mailboxOffset(this.rank, this.#ticket) + mailboxHeader;
  }

  /** Where the message of a rank is, under the present ticket, in bytes. */
  place(rank: number): number {
    return mailboxOffset(rank, this.#ticket) + mailboxHeader;
  }

  argumentOf(rank: number): number {
    return this.words[(mailboxOffset(rank, this.#ticket) >> 2) + 2] as number;
  }

  lengthOf(rank: number): number {
    return this.numbers[(mailboxOffset(rank, this.#ticket) >> 3) + 2] as number;
  }

  /** Publishes this rank's mailbox. */
  post(calling: Operation, argument: number, length: number): void {
    const at = mailboxOffset(this.rank, this.#ticket);
    const word = at >> 2;
    this.words[word + 1] = operation[calling];
    this.words[word + 2] = argument;
    this.numbers[(at >> 3) + 2] = length;
    Atomics.store(this.words, word, this.#ticket);
    // Whoever sees all of them is the last; of two that come at the same time one does, or both. A counter would not do: it would
    // also count those who gave a meeting up and went on to the next.
    for (let rank = 0; rank < this.members.length; rank++) if (!this.#hasCome(rank)) return;
    Atomics.store(this.words, meeting, this.#ticket);
    Atomics.notify(this.words, meeting);
  }

  /** Waits until all ranks have published, and compares what they have called. */
  meet(calling: Operation, argument: number, length: number): void {
    const { words, numbers, rank: me } = this;
    const ticket = this.#ticket;
    const called = operation[calling];
    let spins = this.#spins;
    while (Atomics.load(words, meeting) !== ticket && spins > 0) spins--;
    if (spins === 0) this.#sleep();
    let agreed = true;
    for (let rank = 0; rank < this.members.length; rank++) {
      if (rank === me) continue;
      const at = mailboxOffset(rank, ticket);
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

  /** Takes part with nothing but the message that this rank cannot, so that every rank throws the same error. */
  refuse(calling: Operation, problem: string): never {
    const at = this.begin(calling);
    this.refuseNow(at, calling, problem);
  }

  /** The same under the ticket that was begun last. */
  refuseNow(at: number, calling: Operation, problem: string): never {
    const text = new TextEncoder()
      .encode(`${calling} on ${this.#name(this.rank)}: ${problem}`)
      .subarray(0, inlineLimit);
    this.bytes.set(text, at);
    this.post('fault', operation[calling], text.length);
    this.meet('fault', any, any);
    throw this.#disagreement(any, any);
  }

  /** Leaves without waiting; ranks that still call something learn that this one is gone. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.run.failed) return;
    if (this.#missed === undefined) {
      this.advance();
      this.post('close', 0, 0);
    }
    this.run.release(this.#block, this.members.length);
  }

  #sleep(): void {
    const { words, run, members } = this;
    const ticket = this.#ticket;
    const from = performance.now();
    while (true) {
      // First: once it has been seen to have ended, what it had published is there.
      const ended = members.filter((member) => run.hasEnded(member));
      const seen = Atomics.load(words, meeting);
      if (seen === ticket) return;
      this.#throwIfFailed();
      const gone = ended.find((member) => !this.#hasCome(members.indexOf(member)));
      if (gone !== undefined) {
        this.#missed = gone;
        throw this.#ended(gone);
      }
      const left = this.timeout - (performance.now() - from);
      if (left <= 0) this.#giveUp();
      Atomics.wait(words, meeting, seen, Math.min(slice, left));
    }
  }

  /** Whether a rank has published its mailbox under the present ticket. */
  #hasCome(rank: number): boolean {
    return Atomics.load(this.words, mailboxOffset(rank, this.#ticket) >> 2) === this.#ticket;
  }

  #ended(member: number): H5LogError {
    return this.#error(`${this.#name(this.members.indexOf(member))} has ended, its function returned`, member);
  }

  #giveUp(): void {
    const owner = this.members[this.rank] as number;
    const missing = this.members.find((_, rank) => !this.#hasCome(rank));
    // The last one has come just now.
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

  /** The same words on every rank: made only of what the mailboxes hold. */
  #disagreement(argument: number, length: number): H5LogError {
    const { words, numbers, members } = this;
    const at = (rank: number) => mailboxOffset(rank, this.#ticket);
    const called = (rank: number) => words[(at(rank) >> 2) + 1] as number;
    const ranks = [...members.keys()];
    const faulty = ranks.find((rank) => called(rank) === operation.fault);
    if (faulty !== undefined) {
      const text = this.bytes.slice(this.place(faulty), this.place(faulty) + this.lengthOf(faulty));
      return new H5LogError('COMM', new TextDecoder().decode(text), { rank: members[faulty] });
    }
    const gone = ranks.find((rank) => called(rank) === operation.close);
    if (gone !== undefined) return this.#error(`${this.#name(gone)} has closed the communicator`, members[gone]);
    const differs = (rank: number) =>
      called(rank) !== called(0) ||
      (argument !== any && this.argumentOf(rank) !== this.argumentOf(0)) ||
      (length !== any && numbers[(at(rank) >> 3) + 2] !== this.lengthOf(0));
    const other = ranks.find(differs) ?? 0;
    const text = `the ranks called different things: ${this.#describe(0)}, ${this.#describe(other)}`;
    return new H5LogError('COMM', text, { rank: members[other] });
  }

  #describe(rank: number): string {
    const called = this.words[(mailboxOffset(rank, this.#ticket) >> 2) + 1] as number;
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
