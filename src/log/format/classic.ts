// Tables and data logs of the classic format; docs/format.md, section 10. Every entry says which byte order it has. What the
// table needs beyond the entries, a directory of its datasets, lies behind them.

import { allocate, grown } from '../../base/buffers.ts';
import { formatError } from '../../base/errors.ts';
import { boxSize } from '../../space/box.ts';
import { ENTRY, type NewEntry, type TableOptions } from './table.ts';
import { type BlockSink, type OpenedTable, type RawEntry, Table } from './table-read.ts';

/** Flags of entries as tools show them; the file has a field for each. */
export const CLASSIC = { points: 0x100, bigEndian: 0x200, filtered: 0x400 } as const;

const ascii = (text: string): Uint8Array => Uint8Array.from(text, (letter) => letter.charCodeAt(0));
const MAGIC = ascii('logvol_metadata1');
const NUMBER_AT = MAGIC.length + 4;
const HEADER = NUMBER_AT + 8;
/** Bytes of an entry before its coordinates, behind them, and, where filters were applied, of the size of the data. */
const BEFORE = 16;
const BEHIND = 20;
const STORED = 8;
/** Number, dimensions, bytes of an element, first entry. */
const IN_DIRECTORY = 32;
const MAX_RANK = 32;

type Order = NonNullable<TableOptions['classic']>;

/** What data of a log begins with. */
export function dataHeader(order: Order): Uint8Array {
  const magic = ascii('logvol_data1');
  const bytes = new Uint8Array(magic.length + 4);
  bytes.set(magic);
  viewOf(bytes).setInt32(magic.length, 1, order === 'little');
  return bytes;
}

/** Whether bytes are a table of the classic format. Another one begins with a number of sections, which is never that large. */
export const isClassic = (bytes: Uint8Array): boolean => MAGIC.every((byte, i) => i > 7 || bytes[i] === byte);

/** A table, whatever its format is. `base` is its file offset, for messages. */
export function openTable(bytes: Uint8Array, base: number): OpenedTable {
  return isClassic(bytes) ? new ClassicTable(bytes, base) : new Table(bytes, base);
}

interface ClassicEntry extends RawEntry {
  readonly end: number;
  /** Where the offset of the data is, and the next entry of the dataset, which may be 0. */
  readonly pointerAt: number;
  readonly next: number;
}

interface Listed {
  readonly rank: number;
  readonly element: number;
  readonly first: number;
}

export class ClassicTable implements OpenedTable {
  readonly sections = 1;
  readonly bytes: Uint8Array;
  readonly #base: number;
  readonly #view: DataView;
  /** Number of entries, and where they end. */
  readonly #count: number;
  readonly #end: number;
  readonly #datasets = new Map<number, Listed>();

  constructor(bytes: Uint8Array, base: number) {
    this.bytes = bytes;
    this.#base = base;
    this.#view = viewOf(bytes);
    const { length } = bytes;
    if (length < HEADER + 8 || !MAGIC.every((byte, i) => byte === bytes[i]))
      throw this.#error(0, 'table whose magic or version is not known');
    const big = this.#isBig(MAGIC.length, 1, 'format');
    this.#count = this.#number(NUMBER_AT, big);
    const datasets = this.#number(length - 8, big);
    this.#end = length - 8 - datasets * IN_DIRECTORY;
    if (this.#count * (BEFORE + BEHIND) > this.#end - HEADER)
      throw this.#error(0, `table of ${this.#count} entries and ${datasets} datasets in ${length} bytes`);
    for (let at = this.#end; at < length - 8; at += IN_DIRECTORY) {
      const [id, rank, element, first] = [0, 8, 16, 24].map((field) => this.#number(at + field, big)) as [
        number,
        number,
        number,
        number,
      ];
      if (rank > MAX_RANK || first < HEADER || first >= this.#end || this.#datasets.has(id))
        throw this.#error(at, `dataset ${id} of ${rank} dimensions in the directory of a table`);
      this.#datasets.set(id, { rank, element, first });
    }
  }

  /** All entries. Each must be the one that the directory or the entry before it of the same dataset names. */
  *entries(): Generator<ClassicEntry, void, undefined> {
    const next = new Map<number, number>();
    for (const [id, { first }] of this.#datasets) next.set(id, first);
    let at = HEADER;
    for (let i = 0; i < this.#count; i++) {
      const entry = this.entryAt(at);
      if (next.get(entry.id) !== at) throw this.#error(at, `no pointer leads to an entry of dataset ${entry.id}`);
      next.set(entry.id, entry.next);
      yield entry;
      at = entry.end;
    }
    if (at !== this.#end || [...next.values()].some((left) => left !== 0))
      throw this.#error(at, `${this.#count} entries of a table end at ${at}, not ${this.#end}`);
  }

  placesOf(id: number): readonly number[] {
    const places: number[] = [];
    for (let at = this.#datasets.get(id)?.first ?? 0; at !== 0; ) {
      const entry = this.entryAt(at);
      if (entry.id !== id || (entry.next !== 0 && entry.next < entry.end))
        throw this.#error(at, `pointer to ${entry.next} in an entry of dataset ${entry.id}`);
      places.push(at);
      at = entry.next;
    }
    return places;
  }

  entryAt(at: number): ClassicEntry {
    if (at + BEFORE + BEHIND > this.#end) throw this.#error(at, 'table entry that is cut off');
    const big = this.#isBig(at, 0, 'byte order');
    const id = this.#number(at + 4, big);
    const dataset = this.#datasets.get(id);
    if (!dataset) throw this.#error(at, `entry of dataset ${id}, which is not in the directory`);
    const { rank, element } = dataset;
    const type = this.#view.getInt32(at + 12, !big);
    const points = type === 1;
    let from = at + BEFORE;
    // A point of no dimensions would take no bytes: there could be any number of them.
    if (type < 0 || type > 1 || (points && rank === 0)) throw this.#error(at, `selection of type ${type}`);
    const count = points ? this.#number(from, big) : 1;
    if (points) from += 8;
    const behind = from + (points ? count : 2) * 8 * rank;
    if (behind + BEHIND > this.#end) throw this.#error(at, `entry of ${count} blocks that is cut off`);
    const filter = this.#view.getInt32(behind, !big);
    const end = behind + BEHIND + (filter === 0 ? 0 : STORED);
    if (filter < 0 || filter > 2 || end > this.#end) throw this.#error(at, `entry with filter ${filter}`);
    let size = element * count;
    for (let d = 0; !points && d < rank; d++) size *= this.#number(from + 8 * (rank + d), big);
    if (filter !== 0) size = this.#number(behind + BEHIND, big);
    if (!(size <= Number.MAX_SAFE_INTEGER)) throw this.#error(at, `entry of ${size} bytes`);
    const flags =
      (count > 1 ? ENTRY.multi : 0) |
      (points ? CLASSIC.points : 0) |
      (big ? CLASSIC.bigEndian : 0) |
      (filter === 0 ? 0 : CLASSIC.filtered);
    // One literal: a table has an entry for every block, and objects that are spread take ten times as long.
    return {
      id,
      flags,
      offset: this.#number(behind + 4, big),
      size,
      count,
      times: 1,
      at,
      section: 0,
      record: -1,
      holder: id,
      body: { flags, at: from, end: behind },
      end,
      pointerAt: behind + 4,
      next: this.#number(behind + 12, big),
    };
  }

  sizeAt(at: number): number {
    return this.entryAt(at).end - at;
  }

  checkSize(entry: RawEntry, size: number, filtered: boolean): void {
    if (filtered !== ((entry.flags & CLASSIC.filtered) !== 0) || size !== entry.size || (filtered && entry.count !== 1))
      throw this.#error(entry.at, `entry of ${entry.size} bytes and ${entry.count} blocks that need ${size}`);
  }

  checkRoom({ id, at }: RawEntry, rank: number): void {
    if (this.#datasets.get(id)?.rank !== rank)
      throw this.#error(at, `entry of a dataset of ${rank} dimensions that says otherwise`);
  }

  /** Entries of this format always have to be worked out. */
  plainBlock(): null {
    return null;
  }

  blocks(entry: RawEntry, { rank, starts, counts, at }: BlockSink): void {
    this.checkRoom(entry, rank);
    const { flags, at: from } = entry.body;
    const big = (flags & CLASSIC.bigEndian) !== 0;
    const points = (flags & CLASSIC.points) !== 0;
    for (let k = 0; k < entry.count * rank; k++) {
      starts[at + k] = this.#number(from + 8 * k, big);
      counts[at + k] = points ? 1 : this.#number(from + 8 * (rank + k), big);
      if ((starts[at + k] as number) + (counts[at + k] as number) > Number.MAX_SAFE_INTEGER)
        throw this.#error(entry.at, `block that begins at ${starts[at + k]}`);
    }
  }

  /** Moves the data of an entry. */
  move({ pointerAt, flags, offset }: ClassicEntry, by: number): void {
    this.#view.setBigInt64(pointerAt, BigInt(offset + by), (flags & CLASSIC.bigEndian) === 0);
  }

  /** What the directory says of a dataset that has entries. */
  listed(id: number): Listed {
    return this.#datasets.get(id) as Listed;
  }

  /** The byte order of a 32-bit number that is `least` or 1. A 0 does not have any: it means little-endian. */
  #isBig(at: number, least: 0 | 1, what: string): boolean {
    const number = this.#view.getUint32(at, false);
    const little = least === 0 ? 0 : 0x01000000;
    if (number !== 1 && number !== little) throw this.#error(at, `${what} 0x${number.toString(16)} is not known`);
    return number === 1;
  }

  #number(at: number, big: boolean): number {
    const upper = this.#view.getUint32(big ? at : at + 4, !big);
    if (upper > 0x1fffff) throw this.#error(at, 'a number of a table that is negative or too large');
    return this.#view.getUint32(big ? at + 4 : at, !big) + upper * 2 ** 32;
  }

  #error(at: number, text: string): Error {
    return formatError(text, this.#base + at);
  }
}

/** Entries of a dataset, each of which names the next. */
interface Chain extends Listed {
  /** Where the last entry says which the next one is, and its byte order. */
  last: number;
  little: boolean;
}

/** Builds a table. */
export class ClassicWriter {
  readonly #little: boolean;
  #bytes: Uint8Array = allocate(256);
  #view = viewOf(this.#bytes);
  #at = HEADER;
  readonly #chains = new Map<number, Chain>();
  entries = 0;

  constructor(order: Order) {
    this.#little = order === 'little';
  }

  get size(): number {
    return this.#at + this.#chains.size * IN_DIRECTORY + 8;
  }

  /** Blocks of one element each, one behind the other, are an entry of points, and so is a selection of points. */
  add(entry: NewEntry): void {
    const { blocks, filter, elementSize } = entry;
    const { rank, counts, from, to } = blocks;
    const points = entry.points === true && rank > 0;
    let { offset } = entry;
    const sizeOf = (i: number): number => boxSize(counts, i * rank, rank);
    for (let i = from; i < to; ) {
      let end = i + 1;
      let elements = sizeOf(i);
      if (points) for (; end < to; end++) elements += sizeOf(end);
      else if (elements === 1 && rank > 0 && filter === 0) for (; end < to && sizeOf(end) === 1; end++) elements++;
      this.#put(entry, i, end, points || end > i + 1 ? elements : 0, offset);
      offset += elements * elementSize;
      i = end;
    }
  }

  /** An entry of blocks [from, to): so many points, or, if that is 0, one block. */
  #put(entry: NewEntry, from: number, to: number, points: number, offset: number): void {
    const { id, blocks, filter } = entry;
    const { rank } = blocks;
    const at = this.#room(BEFORE + (points > 0 ? 8 + 8 * rank * points : 16 * rank) + BEHIND + (filter ? STORED : 0));
    const big = !this.#little;
    this.#view.setInt32(at, big ? 1 : 0, !big);
    this.#long(at + 4, id);
    this.#view.setInt32(at + 12, points > 0 ? 1 : 0, !big);
    let to64 = at + BEFORE;
    if (points > 0) {
      to64 = this.#long(to64, points);
      for (let i = from; i < to; i++) to64 = this.#points(to64, blocks, i);
    } else {
      for (const list of [blocks.starts, blocks.counts])
        for (let d = 0; d < rank; d++) to64 = this.#long(to64, list[from * rank + d] as number);
    }
    this.#view.setInt32(to64, filter, !big);
    to64 = this.#long(to64 + 4, offset);
    this.#link(id, { rank, element: entry.elementSize, first: at }, to64, this.#little);
    to64 = this.#long(to64, 0);
    if (filter) this.#long(to64, entry.size);
  }

  /** The elements of a block as points, in row-major order. */
  #points(to: number, { rank, starts, counts }: NewEntry['blocks'], block: number): number {
    const k = block * rank;
    const at = starts.slice(k, k + rank);
    let where = to;
    for (;;) {
      for (let d = 0; d < rank; d++) where = this.#long(where, at[d] as number);
      let d = rank - 1;
      for (; d >= 0; d--) {
        at[d] = (at[d] as number) + 1;
        if ((at[d] as number) < (starts[k + d] as number) + (counts[k + d] as number)) break;
        at[d] = starts[k + d] as number;
      }
      if (d < 0) return where;
    }
  }

  /** Adds entries of another table as they are. */
  copy(table: ClassicTable, isKept: (id: number) => boolean): void {
    for (const entry of table.entries()) {
      if (!isKept(entry.id)) continue;
      const at = this.#room(entry.end - entry.at);
      this.#bytes.set(table.bytes.subarray(entry.at, entry.end), at);
      const little = (entry.flags & CLASSIC.bigEndian) === 0;
      const last = at + entry.pointerAt + 8 - entry.at;
      this.#link(entry.id, { ...table.listed(entry.id), first: at }, last, little);
      this.#view.setBigInt64(last, 0n);
    }
  }

  #link(id: number, listed: Listed, last: number, little: boolean): void {
    this.entries++;
    const chain = this.#chains.get(id);
    if (!chain) {
      this.#chains.set(id, { ...listed, last, little });
      return;
    }
    this.#long(chain.last, listed.first, chain.little);
    chain.last = last;
    chain.little = little;
  }

  #long(at: number, value: number, little = this.#little): number {
    const high = Math.floor(value / 2 ** 32);
    this.#view.setUint32(little ? at : at + 4, value - high * 2 ** 32, little);
    this.#view.setUint32(little ? at + 4 : at, high, little);
    return at + 8;
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

  finish(): Uint8Array {
    const end = this.#at;
    let at = this.#room(this.#chains.size * IN_DIRECTORY + 8);
    this.#bytes.set(MAGIC);
    this.#view.setInt32(MAGIC.length, 1, this.#little);
    this.#long(NUMBER_AT, this.entries);
    for (const [id, { rank, element, first }] of this.#chains)
      for (const number of [id, rank, element, first]) at = this.#long(at, number);
    this.#at = end;
    return this.#bytes.subarray(0, this.#long(at, this.#chains.size));
  }

  /** Of several ranks each makes a table; they become one. */
  section(): Uint8Array {
    return this.finish();
  }
}

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
