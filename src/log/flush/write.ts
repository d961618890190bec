import { checksummer } from '#platform';
import type { Append } from '../../hdf5/write/appender.ts';
import type { Io } from '../../storage/io.ts';
import { type ChecksumKind, encodeRecord, type RankPart } from '../format/commit-record.ts';
import type { Log } from '../log.ts';
import { goneBuffer } from '../post/arena.ts';
import type { Lent } from './data.ts';
import type { FlushPlan } from './plan.ts';
import type { Share } from './share.ts';
import type { StorePlan } from './store-plan.ts';

/** Data is written in pieces of this size; while one is on its way, its checksum is computed. */
const PIECE = 8 * 2 ** 20;
const SMALL_END = 64 * 1024;
/** Where checksums are not wanted. */
export const NO_SUM = new Uint8Array(8);

/** Writes the data of this rank and gives the checksum of it. With `keepEnd` a small end is left to the caller. */
export function* writeShare(
  log: Log,
  share: Share,
  keepEnd: boolean,
): Io<{ end: readonly Uint8Array[]; at: number; checksum: Uint8Array }> {
  const sum = log.options.checksum ? checksummer() : null;
  let at = share.offset;
  const pieces = new Pieces(share.data, share.lent);
  let parts: readonly Uint8Array[] = pieces.next();
  while (parts.length > 0) {
    const current = parts;
    const size = current.reduce((total, part) => total + part.length, 0);
    // A small end goes with the rest: a small flush is one write.
    if (keepEnd && size <= SMALL_END && pieces.isEmpty) break;
    yield {
      op: 'write',
      parts: current,
      offset: at,
      meanwhile: () => {
        if (sum) for (const part of current) sum.update(part);
        parts = pieces.next();
      },
    };
    at += size;
  }
  if (sum) for (const part of parts) sum.update(part);
  if (share.section) {
    const { bytes, offset } = share.section;
    yield { op: 'write', parts: [bytes], offset, meanwhile: () => sum?.update(bytes) };
  }
  return { end: parts, at, checksum: sum?.digest() ?? NO_SUM };
}

/** A flush of one rank; gives the bytes it added. May be started again from the beginning. */
export function* commitAlone(log: Log, plan: FlushPlan): Io<number> {
  const { store } = plan;
  if (store) yield* store.store.run(writeAlone(log, plan, store));
  const rest = log.spread ? yield* log.spread.conclude(log, plan) : 0;
  return (store?.planned.bytes ?? 0) + rest;
}

/** Data and all the rest of a store. */
function* writeAlone(log: Log, plan: FlushPlan, store: StorePlan): Io<void> {
  yield* store.committer.write(store.planned, function* (append) {
    const { end, at, checksum } = yield* writeShare(log, plan.share, true);
    const rest = append.parts.slice(store.addition.data.length);
    const part = { rank: 0, end: plan.share.offset + plan.share.size, checksum };
    fillRecord(log, plan, store, append, rest, [part]);
    yield { op: 'write', parts: [...end, ...rest], offset: at };
  });
}

/** Everything of a commit but the data, which the ranks have written: `parts` says what. */
export function* writeRest(log: Log, plan: FlushPlan, store: StorePlan, parts: readonly RankPart[]): Io<void> {
  const { dataSize, tableSize, header } = store.addition;
  yield* store.committer.write(store.planned, function* (append) {
    const rest = append.parts;
    const behindData = store.committer.appender.base + append.at + dataSize;
    fillRecord(log, plan, store, append, header ? [header, ...rest] : rest, parts);
    if (header) yield { op: 'write', parts: [header], offset: behindData };
    yield { op: 'write', parts: rest, offset: behindData + (header ? tableSize : 0) };
  });
}

/** The record is the last to know what the commit consists of. */
function fillRecord(
  log: Log,
  plan: FlushPlan,
  { committer, record, merged, addition }: StorePlan,
  append: Append,
  rest: readonly Uint8Array[],
  ranks: readonly RankPart[],
): void {
  const sum = log.options.checksum ? checksummer() : null;
  for (const part of rest) if (part !== record) sum?.update(part);
  let filled = 0;
  for (const { bytes, size } of merged) {
    if (bytes) record.set(bytes, filled);
    filled += size;
  }
  const { base } = committer.appender;
  const bytes = encodeRecord({
    sequence: plan.sequence,
    time: plan.time,
    requests: plan.requests,
    root: append.root,
    start: base + append.at,
    end: base + append.end,
    kind: (sum?.kind ?? 0) as ChecksumKind,
    sectionsSummed: addition.header !== null,
    world: log.main.comm.size,
    ranks,
    rest: sum?.digest() ?? NO_SUM,
  });
  record.set(bytes, filled);
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
