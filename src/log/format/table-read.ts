import { inflate } from '#platform';
import { atOffset, formatError } from '../../base/errors.ts';
import { Cursor } from '../../hdf5/format/cursor.ts';
import { MergedEntry, type MergedFit } from './original.ts';
import { ENTRY, ENTRY_HEADER } from './table.ts';

const KNOWN_FLAGS = ENTRY.multi | ENTRY.encoded | ENTRY.compressed | ENTRY.reference | ENTRY.record;
/** Those of a merged entry. */
const KNOWN_MERGED = ENTRY.multi | ENTRY.encoded | ENTRY.compressed;

/** An entry of a table whose selection is not worked out yet. */
export interface RawEntry {
  readonly id: number;
  readonly flags: number;
  readonly offset: number;
  readonly size: number;
  /** Number of blocks. */
  readonly count: number;
  /**
   * How many elements were written to its only block, one over the other: where blocks take no bytes in a table, in a scalar
   * dataset or a record of a one-dimensional one, all n of them are this one. 1 for all others.
   */
  readonly times: number;
  /** Where the entry begins in the table, and its section. */
  readonly at: number;
  readonly section: number;
  /** Record number; -1 for entries that are not within one record. */
  readonly record: number;
  /** The dataset whose entry holds the selection, and that entry: this one, or the one it refers to. */
  readonly holder: number;
  readonly body: { readonly flags: number; readonly at: number; readonly end: number };
}

/** Receives the blocks of an entry as coordinates, all dimensions. */
export interface BlockSink {
  readonly rank: number;
  readonly starts: Float64Array;
  readonly counts: Float64Array;
  /** Index of the first number to write. */
  readonly at: number;
}

/** What can be asked of a table, whatever its format is. */
export type OpenedTable = Pick<Table, keyof Table>;

/** A metadata table: `nsec`, the ends of the sections, and the entries of each. `base` is its file offset, for messages. */
export class Table {
  readonly #bytes: Uint8Array;
  readonly #base: number;
  readonly #sections: [number, number][] = [];
  /** Where the entries of each dataset begin. */
  #places: Map<number, number[]> | null = null;

  constructor(bytes: Uint8Array, base: number) {
    this.#bytes = bytes;
    this.#base = base;
    const cursor = new Cursor(bytes, base);
    const count = cursor.u64();
    if (count > Math.floor(bytes.length / 8) - 1) cursor.fail(`table of ${count} sections in ${bytes.length} bytes`);
    let from = 8 * (count + 1);
    for (let i = 0; i < count; i++) {
      const end = cursor.u64();
      if (end < from || end > bytes.length) cursor.fail(`section ${i} of a table ends at ${end}, begins at ${from}`);
      this.#sections.push([from, end]);
      from = end;
    }
  }

  get sections(): number {
    return this.#sections.length;
  }

  /** All entries, section after section. */
  *entries(): Generator<RawEntry, void, undefined> {
    for (let section = 0; section < this.#sections.length; section++) {
      const [from, end] = this.#sections[section] as [number, number];
      for (let at = from; at < end; ) {
        const entry = this.#entry(at, end, section, from);
        yield entry;
        at += this.sizeAt(at);
      }
    }
  }

  /** Where the entries of a dataset begin. */
  placesOf(id: number): readonly number[] {
    if (!this.#places) {
      const places = new Map<number, number[]>();
      for (const entry of this.entries()) {
        const list = places.get(entry.id);
        if (list) list.push(entry.at);
        else places.set(entry.id, [entry.at]);
      }
      this.#places = places;
    }
    return this.#places.get(id) ?? [];
  }

  /** The size of the entry that begins there. */
  sizeAt(at: number): number {
    return i32(this.#bytes, at);
  }

  /** The entry that begins at a place that {@link entries} gave. */
  entryAt(at: number): RawEntry {
    const section = this.#sections.findIndex(([from, end]) => at >= from && at < end);
    const [from, end] = this.#sections[section] as [number, number];
    return this.#entry(at, end, section, from);
  }

  /** The size in an entry's header must be that of its blocks; filtered data is one block of its own. */
  checkSize(entry: RawEntry, size: number, filtered: boolean): void {
    if (filtered && (entry.count !== 1 || entry.times !== 1))
      throw formatError(`filtered data of ${entry.count * entry.times} blocks in one entry`, this.#base + entry.at);
    if (size !== entry.size)
      throw formatError(`entry of ${entry.size} bytes whose blocks need ${size}`, this.#base + entry.at);
  }

  #entry(at: number, end: number, section: number, sectionFrom: number): RawEntry {
    const cursor = new Cursor(this.#bytes, this.#base, at, end);
    const size = cursor.i32();
    if (size < ENTRY_HEADER || at + size > end) cursor.fail(`table entry of ${size} bytes where ${end - at} are left`);
    cursor.end = at + size;
    const id = cursor.i32();
    const flags = cursor.i32();
    if (id < 0) cursor.fail(`table entry of dataset ${id}`);
    if (flags & ~KNOWN_FLAGS) cursor.fail(`table entry with unknown flags 0x${(flags >>> 0).toString(16)}`);
    const offset = cursor.u64();
    const dataSize = cursor.u64();
    const record = flags & ENTRY.record ? cursor.u64() : -1;
    if ((flags & ENTRY.reference) === 0) {
      const count = blockCount(cursor, flags);
      const body = { flags, at: cursor.at, end: at + size };
      // Blocks that take no bytes are all the same one.
      const times = cursor.left === 0 && count > 1 ? { count: 1, times: count } : { count, times: 1 };
      return { id, flags, offset, size: dataSize, ...times, at, section, record, holder: id, body };
    }
    const target = at + signed(cursor);
    if (target < sectionFrom || target >= at)
      cursor.fail(`reference to ${target}, outside what comes before it in its section`);
    const { holder, count, body, record: theirs } = this.#target(target, at);
    if (record >= 0 && theirs < 0) cursor.fail('reference with a record number to an entry without one');
    // The original drops the record number of a reference within the same record: it is then the target's.
    const own = record < 0 ? theirs : record;
    if (body.at === body.end && count > 1) cursor.fail('reference to a selection that takes no bytes');
    return { id, flags, offset, size: dataSize, count, times: 1, at, section, record: own, holder, body };
  }

  /** The full entry at `at` that a reference at `limit` leads to. */
  #target(at: number, limit: number): Pick<RawEntry, 'holder' | 'count' | 'record' | 'body'> {
    const cursor = new Cursor(this.#bytes, this.#base, at, limit);
    const size = cursor.i32();
    if (size < ENTRY_HEADER || at + size > limit) cursor.fail('reference to something that is not an entry');
    cursor.end = at + size;
    const holder = cursor.i32();
    const flags = cursor.i32();
    if (flags & ENTRY.reference) cursor.fail('reference to a reference');
    if (flags & ~KNOWN_FLAGS) cursor.fail('reference to something that is not an entry');
    cursor.skip(16);
    const record = flags & ENTRY.record ? cursor.u64() : -1;
    const count = blockCount(cursor, flags);
    return { holder, count, record, body: { flags, at: cursor.at, end: at + size } };
  }

  /**
   * Throws if the selection of an entry cannot have that many blocks of `rank` dimensions; to be called before room is made for
   * them.
   */
  checkRoom(entry: RawEntry, rank: number): void {
    const { flags, at, end } = entry.body;
    const needed = selectionBytes(entry, rank);
    if (needed <= (end - at) * (flags & ENTRY.compressed ? MOST_RATIO : 1)) return;
    const text = `selection of ${entry.count} blocks of ${rank} dimensions in ${end - at} bytes`;
    throw formatError(text, this.#base + entry.at);
  }

  /** The coordinates of an entry of one block as they are stored, for a dataset of a rank; null where they have to be worked out. */
  plainBlock(entry: RawEntry, rank: number): Uint8Array | null {
    if (import.meta.page) return null;
    const { flags, at, end } = entry.body;
    const half = (rank - (entry.record >= 0 ? 1 : 0)) * 8;
    if (entry.count !== 1 || (flags & ~ENTRY.record) !== 0 || half <= 0 || end - at !== 2 * half) return null;
    const bytes = this.#bytes;
    for (let k = at; k < at + half; k += 8)
      if (number(bytes, k) + number(bytes, k + half) > Number.MAX_SAFE_INTEGER) return null;
    return this.#bytes.subarray(at, end);
  }

  /** Works out the blocks of an entry for a dataset of a rank; with `merged` for one of the original's merge mode. */
  blocks(entry: RawEntry, sink: BlockSink, merged?: MergedFit): void {
    if (merged && this.#isMerged(entry, sink.rank)) this.#blocksOfMerged(entry, sink, merged);
    else this.#blocksOf(entry, sink);
    this.#check(entry, sink);
  }

  /** Raw coordinates, as their length tells. What is flagged as encoded or compressed is neither in merge mode. */
  #isMerged({ count, body }: RawEntry, rank: number): boolean {
    return (body.flags & ~KNOWN_MERGED) === 0 && rank > 0 && body.end - body.at === count * rank * 16;
  }

  #blocksOfMerged(entry: RawEntry, { rank, starts, counts, at }: BlockSink, fit: MergedFit): void {
    const view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.byteLength);
    const reason = new MergedEntry(view, entry.body.at, entry.count, rank, fit).decode(starts, counts, at);
    if (reason) throw formatError(`an entry written in merge mode cannot be decoded: ${reason}`, this.#base + entry.at);
  }

  #blocksOf(entry: RawEntry, sink: BlockSink): void {
    const { rank } = sink;
    const isRecord = entry.record >= 0;
    if (isRecord && rank === 0) throw formatError('record entry of a scalar dataset', this.#base + entry.at);
    const first = isRecord ? 1 : 0;
    const dims = rank - first;
    const { flags, at, end } = entry.body;
    let bytes = this.#bytes;
    let from = at;
    let to = end;
    const encoded = (flags & ENTRY.encoded) !== 0;
    if (encoded && (flags & ENTRY.multi) === 0) throw formatError('encoded entry of one block', this.#base + entry.at);
    const needed = selectionBytes(entry, rank);
    // In merge mode the flag is set for a scalar as well, which leaves nothing to compress.
    if (flags & ENTRY.compressed && at < end) {
      bytes = this.#inflated(entry, needed);
      from = 0;
      to = bytes.length;
    }
    if (to - from !== needed) {
      throw formatError(
        `selection of ${entry.count} blocks of ${rank} dimensions takes ${needed} bytes, the entry has ${to - from}`,
        this.#base + entry.at,
      );
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (isRecord) {
      for (let i = 0, k = sink.at; i < entry.count; i++, k += rank) {
        sink.starts[k] = entry.record;
        sink.counts[k] = 1;
      }
    }
    if (!encoded) {
      const next = getCoordinates(view, from, sink.starts, sink.at, rank, first, entry.count);
      getCoordinates(view, next, sink.counts, sink.at, rank, first, entry.count);
    } else if (dims > 0) this.#decode(view, from, sink, first, entry);
  }

  #inflated({ body, at }: RawEntry, needed: number): Uint8Array {
    try {
      return inflate(this.#bytes.subarray(body.at, body.end), needed);
    } catch (error) {
      throw atOffset(error, this.#base + at);
    }
  }

  #decode(view: DataView, from: number, sink: BlockSink, first: number, entry: RawEntry): void {
    const dims = sink.rank - first;
    const steps = new Float64Array(dims);
    let at = from;
    let bias = 1;
    for (let d = 0; d < dims - 1; d++, at += 8) {
      const step = u64(view, at);
      if (step < 1) throw formatError(`encoded selection with a step of ${step}`, this.#base + entry.at);
      steps[d] = step;
      bias += step;
    }
    if (!import.meta.page && dims === 2 && (view.byteOffset + at) % 4 === 0) {
      decodePairs(new Uint32Array(view.buffer, view.byteOffset + at, 4 * entry.count), sink, first, steps[0] as number);
      return;
    }
    const last = dims - 1;
    steps[last] = 1;
    const { starts, counts, rank } = sink;
    for (let i = 0, k = sink.at + first; i < entry.count; i++, at += 8, k += rank) {
      let value = u64(view, at);
      for (let d = 0; d < last; d++) {
        const digit = Math.floor(value / (steps[d] as number));
        starts[k + d] = digit;
        value -= digit * (steps[d] as number);
      }
      starts[k + last] = value; // its step is 1
    }
    // Counts are at least 1. Taking one of each step away first makes a count that spans its whole dimension decode right.
    let before = NaN;
    for (let i = 0, k = sink.at + first; i < entry.count; i++, at += 8, k += rank) {
      let value = u64(view, at) - bias;
      if (value === before) {
        // Most blocks are as large as the one before.
        for (let d = 0; d < dims; d++) counts[k + d] = counts[k - rank + d] as number;
        continue;
      }
      before = value;
      for (let d = 0; d < dims; d++) {
        const digit = Math.floor(value / (steps[d] as number));
        counts[k + d] = digit + 1;
        value -= digit * (steps[d] as number);
      }
    }
  }

  #check(entry: RawEntry, { rank, starts, counts, at }: BlockSink): void {
    const end = at + entry.count * rank;
    for (let k = at; k < end; k++) {
      const start = starts[k] as number;
      const count = counts[k] as number;
      if (!(start >= 0 && count >= 0 && start + count <= Number.MAX_SAFE_INTEGER)) {
        throw formatError(`block with start ${start} and count ${count}`, this.#base + entry.at);
      }
    }
  }
}

/**
 * Decodes the blocks of an entry of two encoded dimensions, as {@link Table.blocks} does for any number of them: without a view and a list of
 * steps for each number that takes less than half of the time, and a file may have millions of rows. `words` are the lower and the upper
 * half of each number.
 */
function decodePairs(words: Uint32Array, { rank, starts, counts, at }: BlockSink, first: number, step: number): void {
  const blocks = words.length / 4;
  const end = at + blocks * rank;
  let w = 0;
  for (let k = at + first; k < end; k += rank, w += 2) {
    const value = (words[w] as number) + (words[w + 1] as number) * 2 ** 32;
    const digit = Math.floor(value / step);
    starts[k] = digit;
    starts[k + 1] = value - digit * step;
  }
  const bias = 1 + step;
  let [before, slow, fast] = [NaN, 0, 0];
  for (let k = at + first; k < end; k += rank, w += 2) {
    const value = (words[w] as number) + (words[w + 1] as number) * 2 ** 32 - bias;
    if (value !== before) {
      before = value;
      const digit = Math.floor(value / step);
      slow = digit + 1;
      fast = value - digit * step + 1;
    }
    counts[k] = slow;
    counts[k + 1] = fast;
  }
}

/** zlib makes nothing more than about a thousand times smaller. */
const MOST_RATIO = 1040;

/** How many bytes the blocks of an entry take for a dataset of a rank, before compression. */
function selectionBytes({ record, count, body }: RawEntry, rank: number): number {
  const dims = rank - (record >= 0 ? 1 : 0);
  return body.flags & ENTRY.encoded ? Math.max(0, dims - 1) * 8 + count * 16 : count * dims * 16;
}

function blockCount(cursor: Cursor, flags: number): number {
  if ((flags & ENTRY.multi) === 0) return 1;
  const count = cursor.i32();
  if (count > 0 && cursor.left === 0) return count; // all the same, and counted as one
  // A block takes at least 16 bytes unless compressed.
  if (count < 0 || 16 * count > cursor.left * (flags & ENTRY.compressed ? MOST_RATIO : 1))
    cursor.fail(`entry of ${count} blocks in ${cursor.left} bytes`);
  return count;
}

function signed(cursor: Cursor): number {
  const { bytes } = cursor;
  const at = cursor.need(8, 'reference');
  const value = i32(bytes, at + 4) * 2 ** 32 + (i32(bytes, at) >>> 0);
  return value < -(2 ** 31) || value > 0 ? cursor.fail(`reference of ${value} bytes`) : value;
}

// Without a view, which takes longer to make than to read from: every flush looks at a few entries.
function i32(bytes: Uint8Array, at: number): number {
  const low = (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
  return low | ((bytes[at + 2] as number) << 16) | ((bytes[at + 3] as number) << 24);
}

function number(bytes: Uint8Array, at: number): number {
  return (i32(bytes, at) >>> 0) + (i32(bytes, at + 4) >>> 0) * 2 ** 32;
}

function u64(view: DataView, at: number): number {
  return view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32;
}

function getCoordinates(
  view: DataView,
  at: number,
  list: Float64Array,
  to: number,
  rank: number,
  first: number,
  count: number,
): number {
  let where = at;
  for (let i = 0; i < count; i++) {
    for (let d = first; d < rank; d++, where += 8) list[to + i * rank + d] = u64(view, where);
  }
  return where;
}
