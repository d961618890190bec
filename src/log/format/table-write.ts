import { deflate, sameBytes } from '#platform';
import { allocate, grown } from '../../base/buffers.ts';
import { putU64 } from '../../hdf5/format/byte-writer.ts';
import { ClassicTable, ClassicWriter, isClassic } from './classic.ts';
import { ENTRY, ENTRY_HEADER, MOST_ENTRY_BYTES, type NewEntry, type TableOptions } from './table.ts';

const ZLIB_LEVEL = 1; // nearly as small as 6 and five to nine times as fast
/** A reference costs 8 bytes; selections of up to that many (scalars, one-dimensional records) are never shared. */
const SHARE_FROM = 8;

/** A selection as bytes: number of blocks if several, steps if encoded, all starts, all counts. */
interface Selection {
  readonly bytes: Uint8Array;
  readonly flags: number;
  readonly record: number;
  readonly count: number;
}

/** What an entry says besides its selection, and what decides which others may have the same one. */
type Identified = Pick<NewEntry, 'id' | 'offset' | 'size' | 'shape' | 'records' | 'key'>;

interface Shared {
  readonly at: number;
  readonly rank: number;
  /** Whether it was made for a dataset of records: if it is no record then, its blocks lie in several. */
  readonly records: boolean;
  readonly selection: Selection;
}

/** How many blocks fit into an entry, however they are written. */
export function mostBlocks(rank: number): number {
  return Math.floor((MOST_ENTRY_BYTES - ENTRY_HEADER - 8 - 4 - 8 * 32) / (16 * Math.max(1, rank)));
}

/** Builds a table. */
export type TableBuilder = Pick<TableWriter, 'entries' | 'size' | 'add' | 'finish' | 'section'>;

/** A table of the format that the options ask for. */
export function newTable(options: TableOptions): TableBuilder {
  return !import.meta.page && options.classic ? new ClassicWriter(options.classic) : new TableWriter(options);
}

/** Builds a metadata table of one section. */
export class TableWriter {
  readonly #options: TableOptions;
  #bytes: Uint8Array = allocate(128);
  #view = viewOf(this.#bytes);
  #at = HEADER;
  entries = 0;
  #byKey = new Map<object, Shared[]>();
  #byContent = new Map<number, Shared[]>();
  /** The last entry, if it is a compressed record: it must not stay the last. */
  #lastCompressed: { at: number; selection: Selection; entry: Identified } | null = null;

  constructor(options: TableOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#at;
  }

  add(entry: NewEntry): void {
    this.entries++;
    this.#lastCompressed = null;
    const known = entry.key ? this.#find(this.#byKey.get(entry.key), entry) : undefined;
    if (known && this.#options.share) {
      this.#reference(
        entry,
        known.at,
        known.selection.flags,
        entry.blocks.starts[entry.blocks.from * entry.blocks.rank],
      );
      return;
    }
    this.#addSelection(entry, known?.selection ?? encodeSelection(entry, this.#options.encode));
  }

  /** Adds an entry of one block that another table has; `coordinates` as they are stored there. `record`: -1 if it is in none. */
  addPlainBlock(entry: Identified, coordinates: Uint8Array, record: number): void {
    this.entries++;
    this.#lastCompressed = null;
    const flags = record < 0 ? 0 : ENTRY.record;
    this.#addSelection(entry, { bytes: coordinates, flags, record, count: 1 });
  }

  #addSelection(entry: Identified, selection: Selection): void {
    const { bytes, flags, record } = selection;
    if (this.#options.share && bytes.length > SHARE_FROM) {
      const hash = hashOf(bytes);
      const rank = entry.shape.length;
      const same = this.#byContent
        .get(hash)
        ?.find(
          (shared) =>
            shared.rank === rank && shared.selection.flags === flags && sameBytes(shared.selection.bytes, bytes),
        );
      if (same) {
        if (entry.key) push(this.#byKey, entry.key, same);
        this.#reference(entry, same.at, flags, record);
        return;
      }
      const shared = { at: this.#at, rank, records: entry.records, selection };
      if (entry.key) push(this.#byKey, entry.key, shared);
      push(this.#byContent, hash, shared);
    }
    this.#full(entry, selection, true);
  }

  #find(list: readonly Shared[] | undefined, entry: NewEntry): Shared | undefined {
    return list?.find(({ rank, records, selection }) => {
      if (rank !== entry.shape.length) return false;
      const isRecord = (selection.flags & ENTRY.record) !== 0;
      // The blocks are the same ones, so they need not be looked at if it is known whether they lie in one record.
      const isKnown = isRecord || records;
      return isRecord === (isKnown ? isRecord && entry.records : isRecordEntry(entry)) && fitsSteps(selection, entry);
    });
  }

  #room(count: number): number {
    const at = this.#at;
    this.#at += count;
    if (this.#at > this.#bytes.length) {
      this.#bytes = grown(this.#bytes, at, this.#at);
      this.#view = viewOf(this.#bytes);
    }
    return at;
  }

  #header(at: number, size: number, entry: Identified, flags: number): number {
    const view = this.#view;
    view.setInt32(at, size, true);
    view.setInt32(at + 4, entry.id, true);
    view.setInt32(at + 8, flags, true);
    putU64(view, at + 12, entry.offset);
    putU64(view, at + 20, entry.size);
    return at + ENTRY_HEADER;
  }

  /** A reference to a record entry keeps its own record number: the original misreads it otherwise. */
  #reference(entry: Identified, target: number, flags: number, record: number | undefined): void {
    const isRecord = (flags & ENTRY.record) !== 0;
    const size = ENTRY_HEADER + (isRecord ? 16 : 8);
    const from = this.#at;
    let at = this.#header(this.#room(size), size, entry, flags | ENTRY.reference);
    if (isRecord) {
      putU64(this.#view, at, record as number);
      at += 8;
    }
    this.#view.setBigInt64(at, BigInt(target - from), true);
  }

  #full(entry: Identified, selection: Selection, mayCompress: boolean): void {
    const { bytes, flags, record, count } = selection;
    const isRecord = (flags & ENTRY.record) !== 0;
    let body = bytes;
    let all = flags;
    if (mayCompress && count > 1 && count >= this.#options.compressFrom) {
      const packed = deflate(bytes.subarray(4), ZLIB_LEVEL);
      if (packed.length < bytes.length - 4) {
        body = new Uint8Array(4 + packed.length);
        body.set(bytes.subarray(0, 4));
        body.set(packed, 4);
        all |= ENTRY.compressed;
      }
    }
    const size = ENTRY_HEADER + (isRecord ? 8 : 0) + body.length;
    const from = this.#room(size);
    let at = this.#header(from, size, entry, all);
    if (isRecord) {
      putU64(this.#view, at, record);
      at += 8;
    }
    this.#bytes.set(body, at);
    if (isRecord && all & ENTRY.compressed) this.#lastCompressed = { at: from, selection, entry };
  }

  /** The table: number of sections, their ends, entries. */
  finish(): Uint8Array {
    this.#end();
    putU64(this.#view, 0, 1);
    putU64(this.#view, 8, this.#at);
    return this.#bytes.subarray(0, this.#at);
  }

  /** Only the entries: one section of a table of several. */
  section(): Uint8Array {
    this.#end();
    return this.#bytes.subarray(HEADER, this.#at);
  }

  #end(): void {
    const last = this.#lastCompressed;
    if (last) {
      // The original looks 8 bytes too far when it unpacks a record entry: behind it must be more of the table.
      this.#at = last.at;
      this.#full(last.entry, last.selection, false);
    }
  }
}

/** Bytes before the entries of a table with so many sections. */
export const headerSize = (sections: number): number => 8 * (sections + 1);

/** The header of a table whose sections have these sizes. */
export function tableHeader(sizes: readonly number[]): Uint8Array {
  const bytes = allocate(headerSize(sizes.length));
  const view = viewOf(bytes);
  putU64(view, 0, sizes.length);
  let end = bytes.length;
  sizes.forEach((size, i) => {
    end += size;
    putU64(view, 8 * (i + 1), end);
  });
  return bytes;
}

/** Entries whose data turns out to begin `by` bytes further on in the file. */
export function moveEntries(section: Uint8Array, by: number): void {
  if (isClassic(section)) {
    const table = new ClassicTable(section, 0);
    for (const entry of table.entries()) table.move(entry, by);
    return;
  }
  const view = viewOf(section);
  for (let at = 0; at < section.length; at += view.getInt32(at, true)) {
    putU64(view, at + 12, view.getUint32(at + 12, true) + view.getUint32(at + 16, true) * 2 ** 32 + by);
  }
}

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** One section: the number of sections and one end. */
const HEADER = 16;

function push<K>(map: Map<K, Shared[]>, key: K, shared: Shared): void {
  const list = map.get(key);
  if (list) list.push(shared);
  else map.set(key, [shared]);
}

/** Whether all blocks lie in the same record. Several blocks of a single element each would take no bytes: they are no record. */
function isRecordEntry({ records, blocks }: NewEntry): boolean {
  const { rank, starts, counts, from, to } = blocks;
  if (!records || rank === 0 || (rank === 1 && to - from > 1)) return false;
  const record = starts[from * rank];
  for (let i = from; i < to; i++) if (counts[i * rank] !== 1 || starts[i * rank] !== record) return false;
  return true;
}

/** Steps of the encoded dimensions: sizes plus one, so that a block over a whole dimension decodes right everywhere. */
function stepsOf(shape: readonly number[], first: number): number[] | null {
  const steps: number[] = [1];
  for (let d = shape.length - 1; d > first; d--) steps.unshift((steps[0] as number) * ((shape[d] as number) + 1));
  const largest = (steps[0] as number) * ((shape[first] as number) + 1);
  return largest <= Number.MAX_SAFE_INTEGER ? steps : null;
}

/** An encoded selection fits another dataset only if its steps are those of that dataset's shape. */
function fitsSteps(selection: Selection, entry: NewEntry): boolean {
  if ((selection.flags & ENTRY.encoded) === 0) return true;
  const steps = stepsOf(entry.shape, selection.flags & ENTRY.record ? 1 : 0);
  if (!steps) return false;
  const view = new DataView(selection.bytes.buffer, selection.bytes.byteOffset);
  return steps
    .slice(0, -1)
    .every((step, i) => step === view.getUint32(4 + i * 8, true) + view.getUint32(8 + i * 8, true) * 2 ** 32);
}

function encodeSelection(entry: NewEntry, mayEncode: boolean): Selection {
  const { blocks, shape } = entry;
  const { rank, starts, counts, from, to } = blocks;
  const count = to - from;
  const isRecord = isRecordEntry(entry);
  const first = isRecord ? 1 : 0;
  const dims = rank - first;
  const { times = 1 } = entry;
  const multi = count > 1 || times > 1;
  const steps = mayEncode && count > 1 && dims > 1 ? stepsOf(shape, first) : null;
  const flags = (multi ? ENTRY.multi : 0) | (steps ? ENTRY.encoded : 0) | (isRecord ? ENTRY.record : 0);
  const record = isRecord ? (starts[from * rank] as number) : 0;
  const head = multi ? 4 : 0;
  const bytes = allocate(head + (steps ? (dims - 1) * 8 + count * 16 : count * dims * 16));
  const view = viewOf(bytes);
  if (multi) view.setInt32(0, times > 1 ? times : count, true);
  let at = head;
  if (!steps) {
    at = putCoordinates(view, at, starts, rank, first, from, to);
    putCoordinates(view, at, counts, rank, first, from, to);
    return { bytes, flags, record, count };
  }
  for (const step of steps.slice(0, -1)) {
    putU64(view, at, step);
    at += 8;
  }
  at = putEncoded(view, at, starts, rank, first, steps, from, to);
  putEncoded(view, at, counts, rank, first, steps, from, to);
  return { bytes, flags, record, count };
}

function putCoordinates(
  view: DataView,
  at: number,
  list: Float64Array,
  rank: number,
  first: number,
  from: number,
  to: number,
): number {
  let where = at;
  for (let i = from; i < to; i++) {
    for (let d = first; d < rank; d++, where += 8) putU64(view, where, list[i * rank + d] as number);
  }
  return where;
}

function putEncoded(
  view: DataView,
  at: number,
  list: Float64Array,
  rank: number,
  first: number,
  steps: readonly number[],
  from: number,
  to: number,
): number {
  let where = at;
  for (let i = from; i < to; i++, where += 8) {
    let value = 0;
    for (let d = first, k = i * rank + first; d < rank; d++, k++)
      value += (list[k] as number) * (steps[d - first] as number);
    putU64(view, where, value);
  }
  return where;
}

/** Hash of a selection. */
function hashOf(bytes: Uint8Array): number {
  // Samples 256 bytes of long selections; equal hashes are compared in full anyway.
  const step = Math.max(1, Math.floor(bytes.length / 256));
  let hash = bytes.length | 0;
  for (let i = 0; i < bytes.length; i += step) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193);
  return hash >>> 0;
}
