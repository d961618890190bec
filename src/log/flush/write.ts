import { checksummer } from '#platform';
import type { Append } from '../../hdf5/write/appender.ts';
import { type Io, nothing } from '../../storage/io.ts';
import {
  type ChecksumKind,
  encodeRecord,
  type RankPart,
  type SubfileState,
  statePart,
} from '../format/commit-record.ts';
import type { Log } from '../log.ts';
import { goneBuffer } from '../post/arena.ts';
import type { Stage } from '../post/stage.ts';
import type { Contributed, Contribution, Lent } from './contribution.ts';
import { type StoreCommit, stateOf } from './store-commit.ts';

/** What the ranks of a store add to it, known to all of them. */
export interface RankLayout {
  /** Bytes of heaps and data, and of the table. */
  readonly dataSize: number;
  readonly tableSize: number;
  /** The length of each rank's section of the table. */
  readonly sections: readonly number[];
  /** The heaps of all ranks come before their data. */
  readonly heapsFirst: boolean;
  /** Bytes of these heaps. */
  readonly heapsSize: number;
  /** File offset of the first byte of data. */
  readonly start: number;
}

/** A flush whose bytes and offsets are fixed. */
export interface FlushPlan {
  readonly sequence: number;
  readonly time: number;
  /** Requests of all ranks. */
  readonly requests: number;
  readonly stages: readonly Stage[];
  readonly contribution: Contribution;
  /** Whether any rank of this rank's store has data. */
  readonly hasData: boolean;
  /**
   * The commit of the store that takes this rank's data, on the rank that writes the structure of that store. Of several ranks it plans
   * the commit when all have written their data.
   */
  store: StoreCommit | null;
  /** With subfiles: the commit of the main file, on the rank that writes it. */
  main: StoreCommit | null;
  /** Of several ranks: what they add to this rank's store. */
  readonly layout: RankLayout | null;
  /** No other rank and no other store: the indexes in memory can follow without reading tables. */
  readonly isSingleWriter: boolean;
  /** Tables with references to deleted datasets are written again by this flush. */
  readonly rewrote: boolean;
  /** Of several ranks that failed: no sync has, so that the same space can be written again. */
  isClear?: boolean;
}

/** What a commit record says of its commit, apart from bytes and checksums. */
type CommitNumbers = Pick<FlushPlan, 'sequence' | 'time' | 'requests'>;

/** Bytes of one write: while it is on its way, its checksum is computed. */
const WRITE_SIZE = 8 * 2 ** 20;
/** Data up to this size at the end is written together with the table and the structure. */
const SMALL_END = 64 * 1024;
/** Stored where checksums are switched off. */
export const NO_SUM = new Uint8Array(8);

/** Writes the data of this rank and returns its checksum. With `keepEnd` a small end is left to the caller. */
export function* writeContribution(
  log: Log,
  contribution: Contributed,
  keepEnd: boolean,
): Io<{ end: readonly Uint8Array[]; at: number; checksum: Uint8Array }> {
  const { section } = contribution;
  const sum = log.options.checksum ? checksummer(contribution.size + (section?.bytes.length ?? 0)) : null;
  let at = contribution.offset;
  const pieces = new WriteQueue(contribution.data, contribution.lent);
  let parts: readonly Uint8Array[] = pieces.next();
  while (parts.length > 0) {
    const current = parts;
    const size = current.reduce((total, part) => total + part.length, 0);
    // A small flush is a single write.
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
  if (section && !section.isSent) {
    const { bytes, offset } = section;
    yield { op: 'write', parts: [bytes], offset, meanwhile: () => sum?.update(bytes) };
  }
  return { end: parts, at, checksum: sum?.digest() ?? NO_SUM };
}

/**
 * Writes a flush of one rank. May be started again from the beginning. Not a generator itself: every step of the innermost one would also
 * pass through this one.
 */
export function writeAlone(log: Log, plan: FlushPlan): Io<void> {
  const { store, main } = plan;
  if (!import.meta.page && main) return writeSubfile(log, plan, main);
  return store ? writeStore(log, plan, store) : nothing(undefined);
}

function writeStore(log: Log, plan: FlushPlan, commit: StoreCommit): Io<void> {
  const body = (append: Append) => writeAppend(log, plan, commit, append);
  return commit.store.run(commit.committer.write(commit.planned, body));
}

/** With subfiles the flush counts once the main file names the new states of its subfiles. */
function* writeSubfile(log: Log, plan: FlushPlan, main: StoreCommit): Io<void> {
  if (plan.store) yield* writeStore(log, plan, plan.store);
  yield* writeRest(log, plan, main, statesAfter(log, plan).map(statePart));
}

/** Writes what a single rank appends: its data, then everything else. */
function* writeAppend(log: Log, plan: FlushPlan, commit: StoreCommit, append: Append): Io<void> {
  const { contribution } = plan;
  const { end, at, checksum } = yield* writeContribution(log, contribution, true);
  const rest = append.parts.slice(commit.addition.data.length);
  const part = { rank: 0, end: contribution.offset + contribution.size, checksum };
  fillRecord(log, plan, commit, append, rest, [part]);
  yield { op: 'write', parts: [...end, ...rest], offset: at };
}

/** The states of the subfiles, with what this rank writes. */
export function statesAfter(log: Log, { store }: FlushPlan): readonly SubfileState[] {
  if (import.meta.page || !log.hasSubfiles) return log.states;
  const states = [...log.states];
  if (store) states[store.store.index] = stateOf(store);
  return states;
}

/** Writes everything of a commit except the data, which the ranks have written: `parts` has its ends and checksums. */
export function* writeRest(log: Log, plan: CommitNumbers, commit: StoreCommit, parts: readonly RankPart[]): Io<void> {
  const { dataSize, copied = 0, tableSize, header } = commit.addition;
  yield* commit.committer.write(commit.planned, function* (append) {
    const rest = append.parts;
    const behindData = commit.committer.appender.base + append.at + dataSize + copied;
    fillRecord(log, plan, commit, append, header ? [header, ...rest] : rest, parts);
    if (header) yield { op: 'write', parts: [header], offset: behindData };
    yield { op: 'write', parts: rest, offset: behindData + (header ? tableSize : 0) };
  });
}

/** Fills the commit record, once the checksums of data and structure are known. */
function fillRecord(
  log: Log,
  plan: CommitNumbers,
  { committer, record, mergedRecords, addition }: StoreCommit,
  append: Append,
  rest: readonly Uint8Array[],
  ranks: readonly RankPart[],
): void {
  const sum = log.options.checksum ? checksummer(append.end - append.at) : null;
  for (const part of rest) if (part !== record) sum?.update(part);
  let filled = 0;
  for (const { bytes, size } of mergedRecords) {
    if (bytes) record.set(bytes, filled);
    filled += size;
  }
  const { base } = committer.appender;
  const bytes = encodeRecord({
    version: log.version,
    sequence: plan.sequence,
    time: plan.time,
    requests: plan.requests,
    root: append.root,
    start: base + append.at,
    end: base + append.end,
    kind: (sum?.kind ?? 0) as ChecksumKind,
    sectionsSummed: addition.header !== null,
    heapsFirst: addition.heapsFirst ?? false,
    world: log.main.comm.size,
    ranks,
    rest: sum?.digest() ?? NO_SUM,
  });
  record.set(bytes, filled);
}

/** Hands out data in writes of about {@link WRITE_SIZE} bytes: many small buffers together, large ones cut. */
class WriteQueue {
  readonly #data: readonly Uint8Array[];
  readonly #lent: ReadonlyMap<Uint8Array, Lent>;
  #part = 0;
  #from = 0;

  constructor(data: readonly Uint8Array[], lent: ReadonlyMap<Uint8Array, Lent>) {
    this.#data = data;
    this.#lent = lent;
  }

  get isEmpty(): boolean {
    return this.#part >= this.#data.length;
  }

  next(): Uint8Array[] {
    const parts: Uint8Array[] = [];
    for (let size = 0; size < WRITE_SIZE && parts.length < 512 && this.#part < this.#data.length; ) {
      const part = this.#data[this.#part] as Uint8Array;
      const lent = this.#lent.get(part);
      if (lent && part.length !== lent.size) throw goneBuffer(lent.path);
      const piece = part.subarray(this.#from, this.#from + WRITE_SIZE - size);
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
