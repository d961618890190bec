import type { File } from '../../api/file.ts';
import { isH5LogError } from '../../base/errors.ts';
import { AMOUNT, CALLBACK, checkOptions, FLAG } from '../../base/options.ts';
import { CONFIG } from '../../log/format/log-group.ts';
import type { RawEntry } from '../../log/format/table-read.ts';
import type { Log } from '../../log/log.ts';
import type { LogDataset } from '../../log/post/dataset.ts';
import type { LogStore, Series } from '../../log/store.ts';
import type { Io } from '../../storage/io.ts';
import { drive, type FileKind, kindOf, logOf, nameOf, reading, type Source, sayingKind } from '../inside.ts';
import {
  bitNames,
  entrySize,
  flagNames,
  type LogsShown,
  type LogTable,
  logsShown,
  referenceOf,
  tablesOf,
} from '../log-tables.ts';

export interface DumpOptions {
  /** Only what the log says of itself: no entries of tables. */
  header?: boolean;
  /** The most blocks that are listed of an entry; all of them unless it is said. */
  blocks?: number;
  /** Given every entry, which is then not part of the result: tables may be larger than memory. */
  onEntry?: (entry: DumpedEntry, section: DumpedSection, table: DumpedTable) => void | Promise<void>;
}

/** An entry of a metadata table; see docs/format.md, section 3. */
export interface DumpedEntry {
  /** From the beginning of the table. */
  readonly at: number;
  readonly size: number;
  readonly dataset: number;
  /** Missing for a dataset that was deleted. */
  readonly path?: string;
  readonly flags: number;
  readonly flagNames: readonly string[];
  /** The data: file offset and bytes. */
  readonly offset: number;
  readonly bytes: number;
  readonly record?: number;
  /** Of a reference: where the entry with the selection begins in the table. */
  readonly reference?: number;
  /** How many blocks there are, and the first of them. */
  readonly count: number;
  readonly blocks: readonly { readonly start: readonly number[]; readonly count: readonly number[] }[];
  /** Why the blocks are not known, where they cannot be decoded. */
  readonly problem?: string;
}

export interface DumpedSection {
  readonly number: number;
  readonly entries: DumpedEntry[];
}

export interface DumpedTable {
  /** The number of the subfile that holds it; missing for the file itself. */
  readonly subfile?: number;
  /** The number of its log; missing for the log that all datasets share. */
  readonly log?: number;
  readonly number: number;
  readonly offset: number;
  readonly bytes: number;
  /** Written in the merge mode of the original. */
  readonly merged: boolean;
  readonly sections: DumpedSection[];
}

/** A log: offsets and sizes of its data and tables. */
export interface DumpedSeries {
  readonly logs: readonly { readonly offset: number; readonly bytes: number }[];
  readonly tables: readonly { readonly offset: number; readonly bytes: number }[];
}

/** The series of a file: offsets and sizes. */
export interface DumpedStore extends DumpedSeries {
  readonly file: string;
  readonly subfile?: number;
  readonly configuration: DumpedConfiguration;
  /** Logs that have numbers. */
  readonly numbered: readonly (DumpedSeries & { readonly number: number })[];
  readonly records: readonly { readonly offset: number; readonly bytes: number }[];
}

/** The five numbers of `_int_att`, and the bits of the fourth. */
export interface DumpedConfiguration {
  /** Datasets ever created. */
  readonly datasets: number;
  readonly logs: number;
  readonly tables: number;
  readonly config: number;
  /** 1 without subfiles. */
  readonly subfiles: number;
  readonly bits: readonly string[];
}

export interface Dump {
  readonly file: string;
  readonly kind: FileKind;
  readonly sequence: number;
  /** null for a file without a log. */
  readonly configuration: DumpedConfiguration | null;
  readonly logs: LogsShown | null;
  readonly stores: readonly DumpedStore[];
  readonly tables: readonly DumpedTable[];
}

/**
 * Takes a log apart: configuration, tables, sections, entries.
 *
 * @example const { configuration, tables } = await dump('run.h5');
 */
export async function dump(source: Source, options: DumpOptions = {}): Promise<Dump> {
  checkOptions('dump', options, { header: FLAG, blocks: AMOUNT, onEntry: CALLBACK });
  return sayingKind(source, () => reading(source, (file) => dumpFile(file, options)));
}

/** The same for a file that is open. */
async function dumpFile(file: File, options: DumpOptions = {}): Promise<Dump> {
  const log = logOf(file);
  const head = { file: nameOf(file), kind: kindOf(file), sequence: file.sequence };
  if (!log) return { ...head, configuration: null, logs: null, stores: [], tables: [] };
  return {
    ...head,
    configuration: configurationOf(log.main),
    logs: logsShown(log),
    stores: await drive(file, describeStores(log, head.file)),
    tables: options.header ? [] : await dumpTables(file, log, options),
  };
}

function configurationOf({ counts }: LogStore): DumpedConfiguration {
  return { ...counts, bits: bitNames(counts.config, CONFIG) };
}

function* describeStores(log: Log, file: string): Io<DumpedStore[]> {
  const stores: DumpedStore[] = [];
  for (const store of log.stores) stores.push(describeStore(store, log, file, yield* store.everyNumbered()));
  return stores;
}

function describeStore(store: LogStore, log: Log, file: string, numbered: ReadonlyMap<number, Series>): DumpedStore {
  const { logs, tables } = store.committed;
  const places = (list: typeof logs) => list.map(({ address, size }) => ({ offset: address, bytes: size }));
  return {
    file: store.storage?.name ?? file,
    ...(log.hasSubfiles && { subfile: store.index }),
    configuration: configurationOf(store),
    logs: places(logs),
    tables: places(tables),
    numbered: Array.from(numbered, ([number, series]) => ({
      number,
      logs: places(series.logs),
      tables: places(series.tables),
    })),
    records: places(store.recordMembers()),
  };
}

async function dumpTables(file: File, log: Log, options: DumpOptions): Promise<DumpedTable[]> {
  const datasets = await drive(file, log.everyDataset());
  const all: DumpedTable[] = [];
  for await (const read of tablesOf(file, log)) {
    const { item, number, store, table } = read;
    const dumped: DumpedTable = {
      ...(log.hasSubfiles && { subfile: store.index }),
      ...(read.log !== undefined && { log: read.log }),
      number,
      offset: item.address,
      bytes: item.size,
      merged: item.merged === true,
      sections: Array.from({ length: table.sections }, (_, section) => ({ number: section, entries: [] })),
    };
    all.push(dumped);
    for (const entry of table.entries()) {
      const section = dumped.sections[entry.section] as DumpedSection;
      const shown = dumpEntry(read, entry, datasets.get(entry.id), options.blocks ?? Infinity);
      if (options.onEntry) await options.onEntry(shown, section, dumped);
      else section.entries.push(shown);
    }
  }
  return all;
}

function dumpEntry(read: LogTable, entry: RawEntry, dataset: LogDataset | undefined, most: number): DumpedEntry {
  const { at, id, flags, offset, size, record, count, times } = entry;
  const names = flagNames(flags);
  return {
    at,
    size: entrySize(read, at),
    dataset: id,
    ...(dataset && { path: dataset.path }),
    flags,
    flagNames: names,
    offset,
    bytes: size,
    ...(record >= 0 && { record }),
    ...(names.includes('reference') && { reference: referenceOf(read, at) }),
    count: count * times,
    ...blocksOf(read, entry, dataset, most),
  };
}

function blocksOf(
  { table, item }: LogTable,
  entry: RawEntry,
  dataset: LogDataset | undefined,
  most: number,
): Pick<DumpedEntry, 'blocks' | 'problem'> {
  if (!dataset) return { blocks: [], problem: 'the dataset was deleted' };
  const rank = dataset.shape.length;
  const [starts, counts] = [new Float64Array(entry.count * rank), new Float64Array(entry.count * rank)];
  const fit = { elements: entry.size / dataset.elements.size, limits: dataset.maxShape };
  try {
    table.blocks(entry, { rank, starts, counts, at: 0 }, item.merged ? fit : undefined);
  } catch (error) {
    // Whoever looks into a file so deeply wants to see the rest of it all the more.
    if (!isH5LogError(error, 'FORMAT')) throw error;
    return { blocks: [], problem: error.message };
  }
  const blocks = Array.from({ length: Math.min(most, entry.count) }, (_, i) => ({
    start: Array.from(starts.subarray(i * rank, (i + 1) * rank)),
    count: Array.from(counts.subarray(i * rank, (i + 1) * rank)),
  }));
  return { blocks };
}
