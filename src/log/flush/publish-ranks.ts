// Publishing by several ranks: all of them plan the same, and each copies its share of the chunks; the first writes the structure.

import { checksummer } from '#platform';
import { type Attempt, agreeOn } from '../../comm/agreement.ts';
import type { Communicator } from '../../comm/communicator.ts';
import { ByteWriter } from '../../hdf5/format/byte-writer.ts';
import { Cursor } from '../../hdf5/format/cursor.ts';
import { attemptIo, type Io, nothing } from '../../storage/io.ts';
import type { RankPart } from '../format/commit-record.ts';
import type { Log } from '../log.ts';
import { Publisher } from '../publish/publish.ts';
import type { Sink } from '../publish/update.ts';
import { Contribution } from './contribution.ts';
import { makeAll, type PublishRequest, planAll, planCommit, takeFlush, writeLate } from './publish.ts';
import { nextOffset } from './store-commit.ts';
import { NO_SUM } from './write.ts';

/**
 * Collective, when nothing is pending and every rank has read the structure of the last commit: makes other programs see it, with a
 * commit. false if they do already.
 */
export function* publishTogether(
  log: Log,
  comm: Communicator,
  request: PublishRequest,
  { sequence, power }: { readonly sequence: number; readonly power: boolean },
): Io<boolean> {
  const { main } = log;
  if (log.touched.size === 0 && !log.othersDiffer) return false;
  const taken = takeFlush(log, null, request);
  const contribution = new Contribution(log, 0);
  const plans = agreeOn(comm, yield* attemptIo(checkedPlans()));
  if (!plans) return false;
  const leads = comm.rank === 0;
  const end = new SharedEnd(log, comm);
  const publisher = new Publisher(end, main.base, log.files);
  const show = end.agree(yield* attemptIo(makeAll(log, plans, publisher, leads)));
  yield* end.finish(power);
  agreeOn(comm, yield* attemptIo(commit()));
  request.outcome = show;
  return true;

  function* checkedPlans(): ReturnType<typeof planAll> {
    // Before any rank writes: nobody else has changed the file.
    yield* main.committer?.appender.check() ?? [];
    return yield* planAll(log, taken, contribution, request);
  }

  function* commit(): Io<void> {
    if (!leads) return;
    const addition = contribution.asAddition();
    const { parts, copied } = end;
    contribution.offset = nextOffset(main);
    const time = Date.now();
    const plan = planCommit(log, taken, { contribution, addition, copied, parts, updated: [], show, sequence, time });
    const written = yield* attemptIo(writeLate(log, plan));
    if ('result' in written) return;
    plan.undo();
    throw written.error;
  }
}

/** The end of a file that several ranks add to: all of them make every call. */
class SharedEnd implements Sink {
  /** What was written, in the order of the file. */
  readonly parts: RankPart[] = [];
  copied = 0;
  readonly #log: Log;
  readonly #comm: Communicator;
  /** File offset of the first byte. */
  readonly #start: number;
  /** The rank that makes the next piece. */
  #turn = 0;
  /** The error that all ranks have thrown. */
  #thrown: unknown = null;
  /** Why this rank could not write what it had to. */
  #failure: { readonly error: unknown } | null = null;

  constructor(log: Log, comm: Communicator) {
    this.#log = log;
    this.#comm = comm;
    // Only the rank that appends to the file knows where it ends.
    const [start] = comm.allreduce(Float64Array.of(comm.rank === 0 ? nextOffset(log.main) : 0), 'max');
    this.#start = start as number;
  }

  /**
   * Collective: gives the result of this rank, or throws the first error of all. Whatever fails on a rank meets this call on the others;
   * what all have thrown already is not agreed on again.
   */
  agree<T>(outcome: Attempt<T>): T {
    if ('error' in outcome && outcome.error === this.#thrown) throw outcome.error;
    try {
      return agreeOn(this.#comm, outcome);
    } catch (error) {
      this.#thrown = error;
      throw error;
    }
  }

  *append(bytes: Uint8Array): Io<number> {
    const [placed] = yield* this.share(1, (numbers) => nothing(numbers.map(() => bytes)));
    return (placed as { address: number }).address;
  }

  *share(
    count: number,
    make: (numbers: readonly number[]) => Io<Uint8Array[]>,
  ): Io<{ readonly address: number; readonly size: number }[]> {
    const { rank, size: ranks } = this.#comm;
    const maker = Array.from({ length: count }, (_, i) => (this.#turn + i) % ranks);
    this.#turn = (this.#turn + count) % ranks;
    const mine = maker.flatMap((by, i) => (by === rank ? [i] : []));
    const { pieces, report } = this.agree(yield* attemptIo(this.#reported(make(mine))));
    const reports = this.#comm.allgather(report).map((one) => new Cursor(one, 0));
    const sums = reports.map((one) => one.take(8).slice());
    const sizes = maker.map((by) => (reports[by] as Cursor).u64());
    // The pieces of a rank lie together.
    const places: { address: number; size: number }[] = new Array(count);
    const { main } = this.#log;
    for (let by = 0; by < ranks; by++) {
      const from = this.copied;
      for (const [i, rankOfPiece] of maker.entries()) {
        if (rankOfPiece !== by) continue;
        places[i] = { address: this.#start - main.base + this.copied, size: sizes[i] as number };
        this.copied += sizes[i] as number;
      }
      if (this.copied === from) continue;
      this.parts.push({ rank: by, end: this.#start + this.copied, checksum: sums[by] as Uint8Array });
      if (by === rank) yield* this.#write(pieces, this.#start + from);
    }
    return places;
  }

  /** Pieces, with a report for the others: the checksum, and the sizes. */
  *#reported(making: Io<Uint8Array[]>): Io<{ pieces: Uint8Array[]; report: Uint8Array }> {
    const pieces = yield* making;
    const sum = this.#log.options.checksum ? checksummer() : null;
    for (const bytes of pieces) sum?.update(bytes);
    const out = new ByteWriter(8 + 8 * pieces.length).put(sum?.digest() ?? NO_SUM);
    for (const { length } of pieces) out.u64(length);
    return { pieces, report: out.done() };
  }

  *#write(parts: Uint8Array[], offset: number): Io<void> {
    const written = yield* attemptIo(writing(parts, offset));
    if ('error' in written) this.#failure ??= written;
  }

  /** Everything is in the file, or the first failure is thrown on all ranks. */
  *finish(power: boolean): Io<void> {
    const { appender } = this.#log.main.committer ?? {};
    const failure = this.#failure;
    const end = this.#start + this.copied;
    const rest = function* (): Io<void> {
      if (failure) throw failure.error;
      // The first rank keeps the file longer than what all write: another size would be the work of a stranger.
      if (appender) yield* appender.reserve(end - appender.base);
      if (power) yield { op: 'sync' };
    };
    this.agree(yield* attemptIo(rest()));
  }
}

function* writing(parts: Uint8Array[], offset: number): Io<void> {
  yield { op: 'write', parts, offset };
}
