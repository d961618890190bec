import type { File } from '../api/file.ts';
import { ENTRY, ENTRY_HEADER } from '../log/format/table.ts';
import { Table } from '../log/format/table-read.ts';
import type { Log } from '../log/log.ts';
import type { LogStore, TierItem } from '../log/store.ts';
import { drive } from './inside.ts';

/** A metadata table that was read. */
export interface LogTable {
  readonly store: LogStore;
  /** The number in its name. */
  readonly number: number;
  readonly item: TierItem;
  readonly table: Table;
  /** Its bytes. */
  readonly view: DataView;
}

/** The tables of a log one after the other; only one is in memory at a time. */
export async function* tablesOf(file: File, log: Log): AsyncGenerator<LogTable, void, undefined> {
  for (const store of log.stores) {
    for (const [number, item] of store.committed.tables.entries()) {
      const bytes = new Uint8Array(item.size);
      await drive(file, store.data.file.readInto(bytes, item.address, 'metadata table'));
      yield { store, number, item, table: new Table(bytes, item.address), view: new DataView(bytes.buffer) };
    }
  }
}

/** The size of the entry that begins there, header included. */
export function entrySize({ view }: LogTable, at: number): number {
  return view.getInt32(at, true);
}

/** Where the entry that a reference leads to begins. */
export function referenceOf({ view }: LogTable, at: number): number {
  const isRecord = (view.getInt32(at + 8, true) & ENTRY.record) !== 0;
  return at + Number(view.getBigInt64(at + ENTRY_HEADER + (isRecord ? 8 : 0), true));
}

/** How an entry says which elements it is about. */
export const FORMS = ['single', 'multi', 'encoded', 'compressed', 'reference'] as const;
export type Form = (typeof FORMS)[number];

export function formOf(flags: number): Form {
  if (flags & ENTRY.reference) return 'reference';
  if (flags & ENTRY.compressed) return 'compressed';
  if (flags & ENTRY.encoded) return 'encoded';
  return flags & ENTRY.multi ? 'multi' : 'single';
}

/** The flags of an entry in words. */
export function flagNames(flags: number): string[] {
  return bitNames(flags, ENTRY);
}

/** The names of the bits that are set, lowest first; a module of constants lists them by the alphabet. */
export function bitNames(bits: number, names: Readonly<Record<string, number>>): string[] {
  return Object.entries(names)
    .filter(([, bit]) => bits & bit)
    .sort(([, a], [, b]) => a - b)
    .map(([name]) => name);
}
