import type { Handle, HandleCell } from './binding.ts';
import type { Job } from './job.ts';

/** A communicator, as far as the end of the process is concerned. */
export interface Member {
  readonly handle: Handle;
  readonly rank: number;
  readonly size: number;
  /** How many collectives this rank has begun on it. */
  readonly begun: number;
  readonly departures: Departures;
}

const tag = 1;

/**
 * What is known of ranks that have left a communicator. A rank that ends tells the next one in how many collectives it took part; who has
 * left, or is about to, passes on what is lower than what it has told. So in a normal end every rank sends one message; and where
 * a rank waits in a collective in which another one never took part, one of those who wait comes to know.
 */
export class Departures {
  /** The fewest collectives of any rank that is known to have left, and which rank that is in the job. */
  count = Number.POSITIVE_INFINITY;
  rank = -1;
  readonly #job: Job;
  #told = Number.POSITIVE_INFINITY;
  // Messages on their way, and the memory that they are in.
  readonly #sent: { request: HandleCell; message: Float64Array }[] = [];
  readonly #flag = new Int32Array(new ArrayBuffer(4));

  constructor(job: Job) {
    this.#job = job;
  }

  /** Hears what the rank before has told. */
  listen({ handle, rank, size }: Member): void {
    if (size === 1) return;
    const job = this.#job;
    const { calls, constants, cells } = job.binding;
    const from = (rank + size - 1) % size;
    for (;;) {
      job.check(calls.Iprobe(from, tag, handle, this.#flag, constants.STATUS_IGNORE), 'MPI_Iprobe');
      if (this.#flag[0] === 0) return;
      const message = new Float64Array(new ArrayBuffer(16));
      const request = cells(1);
      job.check(calls.Irecv(message, 2, constants.DOUBLE, from, tag, handle, request), 'MPI_Irecv');
      // It has arrived already.
      while (!job.isDone(request, 1)) job.binding.yieldCore();
      this.#note(message[0] ?? 0, message[1] ?? 0);
    }
  }

  /** This rank leaves. */
  leave(member: Member): void {
    this.#note(member.begun, this.#job.rank);
    this.passOn(member);
  }

  /** Tells the next rank, unless it knows. */
  passOn(member: Member): void {
    this.listen(member);
    const { handle, rank, size } = member;
    if (size === 1 || this.count >= this.#told) return;
    this.#told = this.count;
    const { calls, constants, cells } = this.#job.binding;
    const message = new Float64Array(new ArrayBuffer(16));
    message.set([this.count, this.rank]);
    const request = cells(1);
    this.#sent.push({ request, message });
    const code = calls.Isend(message, 2, constants.DOUBLE, (rank + 1) % size, tag, handle, request);
    this.#job.check(code, 'MPI_Isend');
  }

  /** Whether everything that was told has been sent. */
  get settled(): boolean {
    return this.#sent.every(({ request }) => this.#job.isDone(request, 1));
  }

  #note(count: number, rank: number): void {
    if (count >= this.count) return;
    this.count = count;
    this.rank = rank;
  }
}
