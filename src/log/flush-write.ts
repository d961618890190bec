import { checksummer } from '#platform';
import type { Committer } from '../hdf5/commit.ts';
import type { Io } from '../storage/drive.ts';
import { goneBuffer } from './arena.ts';
import { type CommitRecord, encodeRecord } from './commit-record.ts';
import type { FlushPlan } from './flush.ts';
import type { Lent } from './flush-data.ts';
import type { Log } from './log.ts';

/** Data is written in pieces of this size; while one is on its way, its checksum is computed. */
const PIECE = 4 * 2 ** 20;
const SMALL = 64 * 1024;

/** Writes a planned flush. May be started again from the beginning. */
export function* writeFlush(log: Log, committer: Committer, plan: FlushPlan): Io<void> {
  const { planned } = plan;
  const { base } = committer.appender;
  const sums = log.options.checksum ? checksummer : null;
  const dataSum = sums?.();
  yield* committer.write(planned, function* (append) {
    let at = base + append.at;
    const pieces = new Pieces(plan.data, plan.lent);
    let parts = pieces.next();
    while (parts.length > 0) {
      const current = parts;
      const size = current.reduce((sum, part) => sum + part.length, 0);
      // A small end goes with the rest: a small flush is one write.
      if (size <= SMALL && pieces.isEmpty) break;
      yield {
        op: 'write',
        parts: current,
        offset: at,
        meanwhile: () => {
          if (dataSum) for (const part of current) dataSum.update(part);
          parts = pieces.next();
        },
      };
      at += size;
    }
    if (dataSum) for (const part of parts) dataSum.update(part);
    const rest = append.parts.slice(plan.data.length);
    const restSum = sums?.();
    for (const part of rest) if (part !== plan.record) restSum?.update(part);
    const record: CommitRecord = {
      sequence: plan.sequence,
      time: plan.time,
      requests: plan.requests,
      root: append.root,
      start: base + append.at,
      end: base + append.end,
      kind: dataSum?.kind ?? 0,
      ranks: [{ end: base + append.at + plan.dataSize, checksum: dataSum?.digest() ?? new Uint8Array(8) }],
      rest: restSum?.digest() ?? new Uint8Array(8),
    };
    let filled = 0;
    for (const { bytes, size } of plan.merged) {
      if (bytes) plan.record.set(bytes, filled);
      filled += size;
    }
    plan.record.set(encodeRecord(record), filled);
    yield { op: 'write', parts: [...parts, ...rest], offset: at };
  });
}

/** Data in portions of about {@link PIECE} bytes: many small parts together, large ones cut. */
class Pieces {
  readonly #data: readonly Uint8Array[];
  readonly #lent: ReadonlyMap<Uint8Array, Lent>;
  #part = 0;
  #from = 0;

  constructor(data: readonly Uint8Array[], lent: ReadonlyMap<Uint8Array, Lent>) {
    this.#data = data;
    this.#lent = lent;
  }

  /** Nothing is left. */
  get isEmpty(): boolean {
    return this.#part >= this.#data.length;
  }

  next(): Uint8Array[] {
    const parts: Uint8Array[] = [];
    for (let size = 0; size < PIECE && parts.length < 512 && this.#part < this.#data.length; ) {
      const part = this.#data[this.#part] as Uint8Array;
      const lent = this.#lent.get(part);
      if (lent && part.length !== lent.size) throw goneBuffer(lent.path);
      const piece = part.subarray(this.#from, this.#from + PIECE - size);
      parts.push(piece);
      size += piece.length;
      this.#from += piece.length;
      if (this.#from < part.length) continue;
      this.#part++;
      this.#from = 0;
    }
    return parts;
  }
}
