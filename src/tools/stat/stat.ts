import type { File } from '../../api/file.ts';
import { sessionOf } from '../../api/handle.ts';
import { atOffset, H5LogError, inObject } from '../../base/errors.ts';
import { ANY, checkOptions } from '../../base/options.ts';
import type { FileSession } from '../../connector/file-session.ts';
import { describeType } from '../../dtype/describe.ts';
import { UNDEFINED } from '../../hdf5/format/cursor.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import { readChunkIndex } from '../../hdf5/layouts/chunks/chunk-index.ts';
import { elementCount } from '../../hdf5/messages/dataspace.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { type Filter, namedFilter } from '../../log/format/properties.ts';
import { ENTRY } from '../../log/format/table.ts';
import type { PublishWay } from '../../log/format/view.ts';
import type { Log } from '../../log/log.ts';
import type { LogDataset } from '../../log/post/dataset.ts';
import type { BlockIndex } from '../../log/read/index.ts';
import { visibleElements } from '../../log/read/visible.ts';
import type { LogStore } from '../../log/store.ts';
import { boxSize, clipInto } from '../../space/box.ts';
import type { Io } from '../../storage/io.ts';
import {
  drive,
  type FileKind,
  kindOf,
  logOf,
  nameOf,
  type Opened,
  reading,
  sayingKind,
  storagesOf,
} from '../inside.ts';
import {
  entrySize,
  FORMS,
  type Form,
  formOf,
  type LogsShown,
  logsShown,
  type Origin,
  Origins,
  tablesOf,
} from '../log-tables.ts';
import { inputObjects } from '../replay/input-objects.ts';

export interface StatOptions {
  /** Only this dataset; ranks, tables and totals are still those of the whole file. */
  dataset?: string;
}

/** What some writer, or some flush, wrote. */
export interface WrittenPart {
  readonly entries: number;
  readonly blocks: number;
  /** Bytes in the file. */
  readonly bytes: number;
}

export interface DatasetStat extends WrittenPart {
  readonly path: string;
  readonly id: number;
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Bytes of the elements that were written, without filters. */
  readonly written: number;
  /** Of these: hidden by newer writes, and outside of the shape. */
  readonly overlap: number;
  readonly outside: number;
  /** Bytes in the file that nobody reads any more. */
  readonly dead: number;
  /** What every HDF5 program sees of it; null: never published. */
  readonly published: PublishedStat | null;
  readonly ranks: readonly (WrittenPart & { readonly rank: number })[];
}

/** An ordinary layout: of which commit, how it came about, and where its data is. */
export interface PublishedStat {
  readonly sequence: number;
  readonly way: PublishWay;
  /** Bytes in the log that the layout points at, and bytes that were copied for it. */
  readonly shared: number;
  readonly copied: number;
}

/** A dataset that is not in the log. */
export interface OrdinaryStat {
  readonly path: string;
  readonly dtype: string;
  /** null: a NULL dataspace. */
  readonly shape: readonly number[] | null;
  readonly layout: 'compact' | 'contiguous' | 'chunked' | 'virtual' | 'external' | 'none';
  /** Of chunks: the kind of their index, how many are stored, and their filters. */
  readonly index?: string;
  readonly chunks?: number;
  readonly filters?: readonly Filter[];
  /** Bytes of its data in this file, and of its elements. */
  readonly bytes: number;
  readonly size: number;
}

export interface FlushStat {
  readonly sequence: number;
  /** ISO 8601; missing for flushes of the original, which are counted by their log datasets. */
  readonly time?: string;
  readonly requests?: number;
  /** How many ranks wrote data; missing where nobody recorded it. */
  readonly ranks?: number;
  /** Data, and everything that the flush added to the file. */
  readonly data: number;
  readonly bytes: number;
}

export interface Stat {
  readonly file: string;
  readonly kind: FileKind;
  /** Bytes of the file and of its subfiles. */
  readonly size: number;
  readonly subfiles: number;
  /** null: there is no log. */
  readonly logs: LogsShown | null;
  /** Requests that are on record. */
  readonly requests: number;
  readonly datasets: readonly DatasetStat[];
  /** Datasets that are not in the log; all of an ordinary file. */
  readonly ordinary: readonly OrdinaryStat[];
  /** rank -1: nobody recorded it. */
  readonly ranks: readonly (WrittenPart & { readonly rank: number })[];
  readonly tables: {
    readonly count: number;
    readonly bytes: number;
    /** Numbers and ends of sections. */
    readonly header: number;
    /** Each entry has one form; those of records are counted once more. */
    readonly forms: Readonly<Record<Form | 'record', { readonly entries: number; readonly bytes: number }>>;
  };
  readonly flushes: readonly FlushStat[];
  /** What every HDF5 program sees; `dead` are copies for layouts that have been replaced. null: nothing was ever published. */
  readonly published: {
    readonly sequence: number;
    readonly shared: number;
    readonly copied: number;
    readonly dead: number;
  } | null;
  /** Data of the log, with copies for layouts, and how much of it is read, or hidden, cut off, deleted. Of a file without a log, the data of its datasets. */
  readonly data: { readonly bytes: number; readonly live: number; readonly dead: number };
  /** Everything else: headers, tables, records, older states of them. */
  readonly structure: number;
}

/**
 * Counts what is in a file: of a log by dataset, by rank, by flush; of an ordinary file by dataset.
 *
 * @example const { data } = await stat('run.h5'); console.log(`${data.dead} of ${data.bytes} bytes are dead`);
 */
export async function stat(source: Opened, options: StatOptions = {}): Promise<Stat> {
  checkOptions('stat', options, { dataset: ANY });
  return sayingKind(source, () => reading(source, (file) => statOf(file, options)));
}

/** The log of a file that must have one. */
export function mustHaveLog(file: File): Log {
  const log = logOf(file);
  if (log) {
    log.mustHoldData();
    return log;
  }
  throw new H5LogError('UNSUPPORTED', `${nameOf(file)} has no log to count in`, { file: nameOf(file) });
}

async function statOf(file: File, options: StatOptions): Promise<Stat> {
  const chosen = options.dataset === undefined ? undefined : file.dataset(options.dataset).path;
  const every = await drive(file, ordinaryStats(sessionOf(file)));
  const ordinary = every.filter(({ path }) => chosen === undefined || path === chosen);
  const size = await sizeOfAll(file);
  if (logOf(file)) return { ...(await statOfLog(file, chosen, size)), ordinary };
  const bytes = every.reduce((sum, dataset) => sum + dataset.bytes, 0);
  return {
    file: nameOf(file),
    kind: kindOf(file),
    size,
    subfiles: 0,
    logs: null,
    requests: 0,
    datasets: [],
    ordinary,
    ranks: [],
    tables: { count: 0, bytes: 0, header: 0, forms: emptyForms() },
    flushes: [],
    published: null,
    data: { bytes, live: bytes, dead: 0 },
    structure: size - bytes,
  };
}

async function sizeOfAll(file: File): Promise<number> {
  let size = 0;
  for (const storage of storagesOf(file)) size += await storage.size();
  return size;
}

/** Every dataset that is not in the log. */
function* ordinaryStats(session: FileSession): Io<OrdinaryStat[]> {
  const found: OrdinaryStat[] = [];
  for (const { node, path, logged } of yield* inputObjects(session)) {
    if (node.kind !== 'dataset' || logged) continue;
    const { dtype, type, space, layout, filters } = session.structure.dataset(node);
    const shape = space.kind === 'null' ? null : space.kind === 'simple' ? space.shape : [];
    const facts = { path, dtype: describeType(dtype), shape, size: elementCount(space) * type.size };
    if (node.message(MESSAGE.externalFiles)) found.push({ ...facts, layout: 'external', bytes: 0 });
    else if (layout?.kind === 'compact') found.push({ ...facts, layout: 'compact', bytes: layout.data.length });
    else if (layout?.kind === 'contiguous' || (layout?.kind === 'chunked' && space.kind === 'simple')) {
      const parts = yield* storedParts(session.structure, node, path);
      const bytes = parts.reduce((sum, { size }) => sum + size, 0);
      const chunked =
        layout.kind === 'chunked'
          ? { index: layout.index.kind, chunks: parts.length, filters: filters.map(namedFilter) }
          : {};
      found.push({ ...facts, layout: layout.kind, ...chunked, bytes });
    } else found.push({ ...facts, layout: layout?.kind === 'virtual' ? 'virtual' : 'none', bytes: 0 });
  }
  return found;
}

/** The pieces of the file that contiguous or chunked data is in. */
function* storedParts(structure: Structure, node: ObjectNode, path: string): Io<{ address: number; size: number }[]> {
  const { space, layout, filters } = structure.dataset(node);
  if (layout?.kind === 'contiguous')
    return layout.address === UNDEFINED ? [] : [{ address: layout.address, size: layout.size }];
  if (layout?.kind !== 'chunked' || space.kind !== 'simple') return [];
  const { chunk, elementSize, index } = layout;
  const grid = { maxShape: space.maxShape, chunk, elementSize, filtered: filters.length > 0 };
  const { file } = structure.loader;
  try {
    const chunks = yield* readChunkIndex(file, index, grid);
    return chunks.map(({ address, size }) => ({ address: address as number, size }));
  } catch (error) {
    throw inObject(atOffset(error, file.base + node.address), path);
  }
}

/** How the layout of a dataset is made up: of bytes in the log, and of others. */
function* publishedStat({ published, log, node, path }: LogDataset): Io<PublishedStat | null> {
  if (!published) return null;
  const { sequence, way } = published.view;
  const { base, committed } = log.main;
  let [shared, copied] = [0, 0];
  for (const { address, size } of yield* storedParts(log.structure, node, path)) {
    const at = base + address;
    if (committed.logs.some((each) => at >= each.address && at + size <= each.address + each.size)) shared += size;
    else copied += size;
  }
  return { sequence, way, shared, copied };
}

async function statOfLog(file: File, chosen: string | undefined, size: number): Promise<Omit<Stat, 'ordinary'>> {
  const log = mustHaveLog(file);
  const count = new Count(log);
  await count.tables(file);
  const known = await drive(file, log.everyDataset());
  const datasets: DatasetStat[] = [];
  let [live, shared, copied] = [0, 0, 0];
  for (const [id, dataset] of [...known].sort(([a], [b]) => a - b)) {
    const index = await drive(file, log.tables.index(dataset, null, log.tables.committed));
    const seen = countDataset(dataset, index);
    const published = await drive(file, publishedStat(dataset));
    live += seen.live;
    shared += published?.shared ?? 0;
    copied += published?.copied ?? 0;
    if (chosen === undefined || dataset.path === chosen)
      datasets.push({ ...describe(dataset, seen, count.of(id)), published });
  }
  const state = log.publishState;
  // What another program has added is not on record.
  const dead = Math.max(0, (state?.copied ?? 0) - copied);
  const bytes = count.data();
  return {
    file: nameOf(file),
    kind: kindOf(file),
    size,
    subfiles: log.hasSubfiles ? log.stores.length : 0,
    logs: logsShown(log),
    requests: log.main.history().reduce((sum, { requests }) => sum + requests, 0),
    datasets,
    ranks: ranksOf(count.ranks),
    tables: count.summary(),
    flushes: count.flushes(),
    published: log.published === null ? null : { sequence: log.published, shared, copied, dead },
    data: {
      bytes,
      live: live + Math.min(copied, state?.copied ?? 0),
      dead: bytes - live - Math.min(copied, state?.copied ?? 0),
    },
    structure: size - bytes,
  };
}

interface Sum {
  entries: number;
  blocks: number;
  bytes: number;
}

function emptyForms(): Record<Form | 'record', { entries: number; bytes: number }> {
  return Object.fromEntries([...FORMS, 'record' as const].map((form) => [form, { entries: 0, bytes: 0 }])) as Record<
    Form | 'record',
    { entries: number; bytes: number }
  >;
}

/** Adds up the tables of a log. */
class Count {
  readonly #log: Log;
  readonly #origins: Origins;
  readonly #datasets = new Map<number, { all: Sum; ranks: Map<number, Sum> }>();
  readonly #flushes = new Map<number, number>();
  readonly #unrecorded = new Map<LogStore, number>();
  readonly #forms = emptyForms();
  readonly ranks = new Map<number, Sum>();
  #tables = 0;
  #bytes = 0;
  #header = 0;

  constructor(log: Log) {
    this.#log = log;
    this.#origins = new Origins(log);
  }

  async tables(file: File): Promise<void> {
    for await (const read of tablesOf(file, this.#log)) {
      const { table, store, item } = read;
      this.#origins.meet(read);
      this.#tables++;
      this.#bytes += item.size;
      this.#header += item.size;
      for (const { id, flags, at, offset, size, section, count } of table.entries()) {
        const bytes = entrySize(read, at);
        this.#header -= bytes;
        add(this.#forms[formOf(flags)], bytes);
        if (flags & ENTRY.record) add(this.#forms.record, bytes);
        this.#add(id, this.#origins.of(read, offset, section), { entries: 1, blocks: count, bytes: size });
        if (!this.#origins.isRecorded(store, offset))
          this.#unrecorded.set(store, (this.#unrecorded.get(store) ?? 0) + size);
      }
    }
  }

  #add(id: number, { rank, flush }: Origin, part: Sum): void {
    let dataset = this.#datasets.get(id);
    if (!dataset) {
      dataset = { all: { entries: 0, blocks: 0, bytes: 0 }, ranks: new Map() };
      this.#datasets.set(id, dataset);
    }
    accumulate(dataset.all, part);
    accumulate(sumOf(dataset.ranks, rank), part);
    accumulate(sumOf(this.ranks, rank), part);
    this.#flushes.set(flush, (this.#flushes.get(flush) ?? 0) + part.bytes);
  }

  of(id: number): { all: Sum; ranks: Map<number, Sum> } {
    return this.#datasets.get(id) ?? { all: { entries: 0, blocks: 0, bytes: 0 }, ranks: new Map() };
  }

  /** Bytes of data in the log, also those that no entry names any more. */
  data(): number {
    let bytes = 0;
    for (const store of this.#log.stores) {
      const recorded = this.#origins.recorded(store);
      const logged = store.committed.logs.reduce((sum, { size }) => sum + size, 0);
      bytes += store.history().length > 0 ? recorded + (this.#unrecorded.get(store) ?? 0) : logged;
    }
    return bytes;
  }

  summary(): Stat['tables'] {
    return { count: this.#tables, bytes: this.#bytes, header: this.#header, forms: this.#forms };
  }

  /** Commits that are on record, or the log datasets of the original. */
  flushes(): FlushStat[] {
    const { main, stores, hasSubfiles } = this.#log;
    const history = main.history();
    if (history.length === 0) {
      return [...this.#flushes]
        .filter(([sequence]) => sequence >= 0)
        .sort(([a], [b]) => a - b)
        .map(([sequence, data]) => ({ sequence, data, bytes: data }));
    }
    const added = new Map<number, { data: number; bytes: number; ranks: number }>();
    for (const store of stores) {
      for (const { sequence, start, end, ranks } of store.history()) {
        const known = added.get(sequence) ?? { data: 0, bytes: 0, ranks: 0 };
        const data = ranks.length === 0 ? 0 : (ranks.at(-1)?.end ?? start) - start;
        added.set(sequence, {
          data: known.data + data,
          bytes: known.bytes + (hasSubfiles ? end - start : 0),
          // The ends of ranks that wrote nothing are those of the rank before.
          ranks: known.ranks + ranks.filter(({ end: to }, r) => to > (ranks[r - 1]?.end ?? start)).length,
        });
      }
    }
    return history.map(({ sequence, time, requests, start, end }) => {
      const { data, bytes, ranks } = added.get(sequence) ?? { data: 0, bytes: 0, ranks: 0 };
      return { sequence, time: new Date(time).toISOString(), requests, ranks, data, bytes: bytes + end - start };
    });
  }
}

function add(form: { entries: number; bytes: number }, bytes: number): void {
  form.entries++;
  form.bytes += bytes;
}

function accumulate(sum: Sum, { entries, blocks, bytes }: Sum): void {
  sum.entries += entries;
  sum.blocks += blocks;
  sum.bytes += bytes;
}

function sumOf(sums: Map<number, Sum>, key: number): Sum {
  let sum = sums.get(key);
  if (!sum) {
    sum = { entries: 0, blocks: 0, bytes: 0 };
    sums.set(key, sum);
  }
  return sum;
}

function ranksOf(sums: ReadonlyMap<number, Sum>): (WrittenPart & { rank: number })[] {
  return [...sums].sort(([a], [b]) => a - b).map(([rank, sum]) => ({ rank, ...sum }));
}

interface Seen {
  readonly written: number;
  readonly overlap: number;
  readonly outside: number;
  /** Bytes in the file that are read. */
  readonly live: number;
  /** Some data is filtered: bytes in the file are not those of elements. */
  readonly isStream: boolean;
}

function countDataset(dataset: LogDataset, index: BlockIndex): Seen {
  const { shape, elements } = dataset;
  const seen = visibleElements(index, shape);
  let [written, inside, visible, live] = [0, 0, 0, 0];
  const { rank } = index;
  const [origin, start, count] = [new Float64Array(rank), new Float64Array(rank), new Float64Array(rank)];
  /** Several blocks may be in one stream: it is read if one of them is. */
  const streams = new Map<string, number>();
  for (let i = 0; i < index.length; i++) {
    written += boxSize(index.counts, i * rank, rank);
    inside += clipInto(index.starts, index.counts, i * rank, rank, origin, shape, start, count, 0);
    visible += seen[i] as number;
    const stored = index.stored ? (index.stored[i] as number) : 0;
    if (stored === 0) live += (seen[i] as number) * elements.size;
    else if ((seen[i] as number) > 0) streams.set(streamKey(index, i), stored);
  }
  for (const stored of streams.values()) live += stored;
  const { size } = elements;
  return {
    written: written * size,
    overlap: (inside - visible) * size,
    outside: (written - inside) * size,
    live,
    isStream: index.stored !== null,
  };
}

const streamKey = (index: BlockIndex, i: number): string => `${index.stores?.[i] ?? 0} ${index.offsets[i]}`;

function describe(
  { path, id, elements, shape }: LogDataset,
  { written, overlap, outside, live, isStream }: Seen,
  { all, ranks }: { all: Sum; ranks: Map<number, Sum> },
): Omit<DatasetStat, 'published'> {
  const facts = { path, id, dtype: describeType(elements.dtype), shape, ...all, ranks: ranksOf(ranks) };
  const dead = all.bytes - live;
  if (isStream) return { ...facts, written, overlap, outside, dead };
  // The bytes tell more than the blocks: where the original wrote an element several times with one request, the blocks are one.
  return { ...facts, written: all.bytes, overlap: dead - outside, outside, dead };
}
