// What a commit adds to numbered logs: every log gets its own data and table. Of several ranks each lays out what it has, and
// sends its tables to the one that writes the structure.

import { concatBytes } from '../../base/buffers.ts';
import { ByteWriter, putU64 } from '../../hdf5/format/byte-writer.ts';
import { Cursor } from '../../hdf5/format/cursor.ts';
import { dataHeader } from '../format/classic.ts';
import type { TableOptions } from '../format/table.ts';
import { mergeTables } from '../format/table-merge.ts';
import { moveEntries, newTable, type TableBuilder, tableHeader } from '../format/table-write.ts';

/** What a commit adds to one log: data between two file offsets, and the table of it. */
export interface LogPart {
  readonly number: number;
  readonly start: number;
  readonly end: number;
  readonly table: Uint8Array;
}

interface OpenPart {
  readonly number: number;
  readonly start: number;
  end: number;
  readonly table: TableBuilder;
}

/** The tables of data that is laid out, log after log. */
export class LogParts {
  readonly #options: TableOptions;
  readonly #parts = new Map<number, OpenPart>();
  #current: OpenPart | null = null;
  /** What the data of a log begins with. */
  readonly header: Uint8Array | null;

  constructor(options: TableOptions) {
    this.#options = options;
    this.header = options.classic ? dataHeader(options.classic) : null;
  }

  /** Data of a log comes next, at a file offset. Gives its table, or null if data of the same log came before. */
  begin(number: number, offset: number): TableBuilder | null {
    if (this.#current?.number === number) return null;
    let part = this.#parts.get(number);
    if (!part) {
      part = { number, start: offset, end: offset, table: newTable(this.#options) };
      this.#parts.set(number, part);
    }
    this.#current = part;
    return part.table;
  }

  /** Up to here. */
  reach(offset: number): void {
    if (this.#current) this.#current.end = offset;
  }

  /** All of them, in the order of their data. */
  get #all(): OpenPart[] {
    return [...this.#parts.values()];
  }

  get size(): number {
    return this.#all.reduce((sum, { table }) => sum + table.size, 0);
  }

  finish(): LogPart[] {
    return this.#all.map((part) => ({ ...part, table: part.table.finish() }));
  }

  /** For the rank that writes the structure. Offsets may have to be moved by {@link moveParts}. */
  pack(): Uint8Array {
    return concatBytes(
      this.#all.flatMap(({ number, start, end, table }) => {
        const section = table.section();
        return [new ByteWriter(HEADER).u64(number).u64(start).u64(end).u64(section.length).done(), section];
      }),
    );
  }
}

const HEADER = 32;

/** The data of all parts turns out to begin `by` bytes further on in the file. */
export function moveParts(packed: Uint8Array, by: number): void {
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  let at = 0;
  for (const { start, end, table } of unpacked(packed)) {
    putU64(view, at + 8, start + by);
    putU64(view, at + 16, end + by);
    moveEntries(table, by);
    at += HEADER + table.length;
  }
}

function* unpacked(packed: Uint8Array): Generator<LogPart, void, undefined> {
  const cursor = new Cursor(packed, 0);
  while (cursor.left > 0) {
    const [number, start, end] = [cursor.u64(), cursor.u64(), cursor.u64()];
    yield { number, start, end, table: cursor.take(cursor.u64()) };
  }
}

/** What all ranks add: for every log the sections of their tables as one table. */
export function joinedParts(packed: readonly Uint8Array[], options: TableOptions): LogPart[] {
  const byNumber = new Map<number, { start: number; end: number; sections: Uint8Array[] }>();
  packed.forEach((bytes, rank) => {
    for (const { number, start, end, table } of unpacked(bytes)) {
      const known = byNumber.get(number) ?? { start, end, sections: packed.map(() => NOTHING) };
      known.end = end;
      known.sections[rank] = table;
      byNumber.set(number, known);
    }
  });
  return Array.from(byNumber, ([number, { start, end, sections }]) => ({
    number,
    start,
    end,
    table: options.classic
      ? mergeTables(
          sections.flatMap((bytes) => (bytes.length > 0 ? [{ bytes, address: start }] : [])),
          () => ANY_SHAPE,
          options,
        )
      : concatBytes([tableHeader(sections.map(({ length }) => length)), ...sections]),
  }));
}

const NOTHING = new Uint8Array(0);
const ANY_SHAPE = { shape: [], records: false };
