import { formatError, H5LogError } from '../base/errors.ts';
import type { Communicator } from '../comm/communicator.ts';
import type { Link, ObjectNode } from '../hdf5/graph/object-node.ts';
import { openStructure } from '../hdf5/open.ts';
import type { Committer } from '../hdf5/write/commit.ts';
import type { Structure } from '../hdf5/write/structure.ts';
import { type Io, onStorage } from '../storage/io.ts';
import type { ByteStorage } from '../storage/storage.ts';
import { type CommitRecord, recordSize, recordsIn, type SubfileState } from './format/commit-record.ts';
import {
  CONFIG,
  knownGroup,
  LOG_GROUP,
  LOGS_GROUP,
  type LogCounts,
  readAddress,
  readCounts,
  recordsGroup,
  SERIES,
} from './format/log-group.ts';
import { logGroup } from './format/log-group-write.ts';
import { LogRanges, whereWritten } from './log-ranges.ts';
import { LogData } from './read/boxes.ts';

/** Tables and records up to this size are kept in memory when a file is opened for writing, so that they can be merged. */
export const SMALL = 2 ** 20;

const NOTHING = new Uint8Array(0);

/** A log: its data, and the tables of it. */
export interface Series {
  readonly logs: readonly TierItem[];
  readonly tables: readonly TierItem[];
}

/** The series as they are, or will be when the commits under way have succeeded. */
export interface LogState extends Series {
  readonly records: readonly TierItem[];
  /** Numbered logs, as far as commits of this session changed them. */
  readonly numbered: ReadonlyMap<number, Series>;
}

/** Numbered logs of a state of the file. */
export interface NumberedLogs {
  /** Those that commits of this session had changed by then. */
  readonly changed: ReadonlyMap<number, Series>;
  readonly found: FoundLogs;
}

/** Numbered logs as they were in the file when its structure was read, as far as somebody has asked for them. */
interface FoundLogs {
  /** null until the file is open. */
  structure: Structure | null;
  readonly series: Map<number, Series>;
}

export const NO_SERIES: Series = { logs: [], tables: [] };
const EMPTY_STATE: LogState = { ...NO_SERIES, records: [], numbered: new Map() };

/** The file of a store, once it is open. */
interface StoreFile {
  /** null: the file that is driven. */
  readonly storage: ByteStorage | null;
  readonly structure: Structure;
  readonly counts: LogCounts;
}

/**
 * A file that holds log, tables and commit records: the file itself, or one of its subfiles. Of several ranks one writes its
 * structure; the others write data into it, and look at it again when they want to read.
 */
export class LogStore {
  /** Its number among the stores of a log. */
  readonly index: number;
  /** The ranks whose data goes here. */
  readonly comm: Communicator;
  /** Only the rank that writes the structure has one. */
  committer: Committer | null = null;
  storage: ByteStorage | null = null;
  state: LogState = EMPTY_STATE;
  /** What is in the file. */
  committed: LogState = EMPTY_STATE;
  /** The address of the root group of what is in the file, and where that ends. */
  root = -1;
  end = 0;
  /** The log group has no members but those that are counted: looked at before the first commit. */
  isTidy = false;
  #earlierData: LogData | null = null;
  #file: { structure: Structure; counts: LogCounts; data: LogData } | null = null;
  #ranges: { of: readonly TierItem[]; ranges: LogRanges } | null = null;
  readonly #numberedRanges = new WeakMap<readonly TierItem[], { of: readonly TierItem[]; ranges: LogRanges }>();
  #found: FoundLogs | null = null;
  /** Numbered logs as an earlier state had them: what was known of them is not read again. */
  #earlierFound: ReadonlyMap<number, Series> = new Map();
  #isMoved = false;
  /** Whether another program has copied the log without its members, or put them into chunks: what tables name is gone. */
  isRewritten = false;
  #history: { of: readonly TierItem[]; records: readonly CommitRecord[] } | null = null;

  /** The group of commit records of which all but the last member are yet to be read. */
  #olderRecords: ObjectNode | null = null;
  readonly #readLater: (<T>(io: Io<T>) => T) | null;

  /**
   * `earlier` is the same store in an earlier state: what was known of it is not read again. `readLater` runs what a reader may never
   * need, where it can be read at any time.
   */
  constructor(index: number, comm: Communicator, earlier?: LogStore, readLater: (<T>(io: Io<T>) => T) | null = null) {
    this.index = index;
    this.comm = comm;
    this.#readLater = readLater;
    if (!earlier?.isOpen) return;
    this.committed = earlier.committed;
    this.#earlierData = earlier.data;
    this.#earlierFound = earlier.#known;
  }

  get #known(): ReadonlyMap<number, Series> {
    const found = this.#found?.series ?? [];
    return new Map([...this.#earlierFound, ...found, ...this.committed.numbered]);
  }

  /** The file is open; {@link load} finds what is in it. */
  attach({ storage, structure, counts }: StoreFile): void {
    const { base, end } = structure.loader.file;
    this.storage = storage;
    this.root = structure.root.address;
    this.end = base + end;
    // Entries name file offsets, not addresses. Pages that were read stay valid: nothing is ever overwritten.
    const data = this.#file?.data ?? this.#earlierData ?? new LogData(0, this.end, storage);
    data.file.end = Math.max(data.file.end, this.end);
    this.#file = { structure, counts, data };
    this.isTidy = false;
  }

  get isOpen(): boolean {
    return this.#file !== null;
  }

  get #open(): { structure: Structure; counts: LogCounts; data: LogData } {
    if (!this.#file) throw new H5LogError('STORAGE', `subfile ${this.index} is used before it was opened`);
    return this.#file;
  }

  get structure(): Structure {
    return this.#open.structure;
  }

  get data(): LogData {
    return this.#open.data;
  }

  get counts(): LogCounts {
    return this.#open.counts;
  }

  set counts(counts: LogCounts) {
    this.#open.counts = counts;
  }

  /** Runs code on the store's own file. */
  run<T>(io: Io<T>): Io<T> {
    return this.storage ? onStorage(this.storage, io) : io;
  }

  get base(): number {
    return this.structure.loader.file.base;
  }

  /** Finds logs, tables and commit records in the structure. */
  *load(): Io<void> {
    const { root, loader } = this.structure;
    const overlaps = (yield { op: 'overlaps' }) === 1;
    loader.file.overlapping = overlaps;
    this.data.overlapping = overlaps;
    this.isRewritten = false;
    this.#earlierFound = this.#known;
    this.#found = null;
    const link = root.link(LOG_GROUP);
    const node = link && (yield* this.run(this.structure.loader.follow(link)));
    const writing = this.committer !== null;
    const { committed: known } = this;
    const hasLogs = node != null && node.links.size > 0;
    // Programs that do not know the type of the members leave them out.
    if (!hasLogs && this.counts.logs > 0 && !(this.counts.config & CONFIG.subfiling)) this.isRewritten = true;
    const found = hasLogs ? yield* this.#series(node, 'logs', this.counts.logs, false, known.logs) : [];
    // How many flushes a log dataset stands for is not known any more; merging them costs nothing anyway.
    const tables = hasLogs ? yield* this.#series(node, 'tables', this.counts.tables, writing, known.tables) : [];
    const place = root.link(recordsGroup(this.counts));
    const group = place && !this.isRewritten && (yield* this.run(this.structure.loader.follow(place)));
    const count = group ? counted(group, 'records') : 0;
    // Most readers never ask for older ones.
    const isFirst = !import.meta.page && this.#readLater !== null && this.#earlierData === null && count > 1;
    this.#olderRecords = isFirst && group ? group : null;
    const from = isFirst ? count - 1 : 0;
    const records = group ? yield* this.#series(group, 'records', count, true, known.records, from) : [];
    this.committed = { ...EMPTY_STATE, logs: found, tables, records };
    const logs = found.map((item) => this.#placed(item));
    // Where logs do not say it themselves, older records tell where they were written: all of them may be there now.
    const marked = this.#marked(tables);
    this.state = { ...EMPTY_STATE, logs, tables: marked, records: this.committed.records };
    this.committed = this.state;
    this.#isMoved = false;
    if (root.link(LOGS_GROUP) && !this.isOurs)
      for (const { logs: moved } of (yield* this.everyNumbered()).values())
        this.#isMoved ||= this.rangesWith(moved).isMoved;
    if (this.isRewritten) this.state = this.committed = EMPTY_STATE;
  }

  /** The numbered logs of a state of this store. */
  numberedIn({ numbered: changed }: LogState): NumberedLogs {
    this.#found ??= { structure: this.#file?.structure ?? null, series: new Map() };
    return { changed, found: this.#found };
  }

  /**
   * A numbered log in a state of the file. A flush that begins while it is being read changes the groups in memory, also for a commit
   * that then fails; but it has read every log that it changes before, and what it has read counts.
   */
  *series(number: number, { changed, found }: NumberedLogs): Io<Series> {
    const known = changed.get(number) ?? found.series.get(number);
    if (known) return known;
    found.structure ??= this.structure;
    let read = NO_SERIES;
    try {
      read = yield* this.#read(number, found.structure);
    } catch (error) {
      // Links of a commit that is not in the file lead nowhere.
      if (!found.series.has(number)) throw error;
    }
    const series = found.series.get(number) ?? read;
    found.series.set(number, series);
    return series;
  }

  *#read(number: number, structure: Structure): Io<Series> {
    const all = yield* this.#logsGroup(structure);
    const link = all?.link(String(number));
    const group = link && (yield* this.run(structure.loader.follow(link)));
    const earlier = this.#earlierFound.get(number) ?? NO_SERIES;
    const logs = group ? yield* this.#series(group, 'logs', counted(group, 'logs'), false, earlier.logs) : [];
    const tables = group
      ? yield* this.#series(group, 'tables', counted(group, 'tables'), this.committer !== null, earlier.tables)
      : [];
    return { logs: logs.map((item) => this.#placed(item)), tables };
  }

  *#logsGroup({ root, loader }: Structure): Io<ObjectNode | null> {
    const link = root.link(LOGS_GROUP);
    return link ? yield* this.run(loader.follow(link)) : null;
  }

  /** All numbered logs of the newest state, in the order of their numbers. */
  *everyNumbered(): Io<ReadonlyMap<number, Series>> {
    const all = new Map<number, Series>();
    const names = [...((yield* this.#logsGroup(this.structure))?.links.keys() ?? [])];
    const numbers = names.filter((name) => /^\d{1,10}$/.test(name)).map(Number);
    for (const number of numbers.sort((a, b) => a - b))
      all.set(number, yield* this.series(number, this.numberedIn(this.committed)));
    return all;
  }

  /** Where the data of a numbered log is, and of the one for all datasets. */
  rangesWith(logs: readonly TierItem[]): LogRanges {
    const { logs: shared } = this.committed;
    const known = this.#numberedRanges.get(logs);
    if (known?.of === shared) return known.ranges;
    const ranges = rangesOf([...shared, ...logs]);
    this.#numberedRanges.set(logs, { of: shared, ranges });
    return ranges;
  }

  /** Whether another program has moved a log. */
  get isMoved(): boolean {
    return this.isRewritten || this.#isMoved || this.ranges.isMoved;
  }

  /** A log dataset as it is kept: it says where it was written. */
  #placed(item: TierItem): TierItem {
    const written = item.written ?? whereWritten(item, this.history());
    return { ...item, weight: LOG_WEIGHT, bytes: NOTHING, written };
  }

  /** Where the data is that tables name. */
  get ranges(): LogRanges {
    const { logs } = this.committed;
    if (this.#ranges?.of !== logs) this.#ranges = { of: logs, ranges: rangesOf(logs) };
    return this.#ranges.ranges;
  }

  /** Marks tables of the original's merge mode: those of a file in that mode that none of our commits wrote. */
  #marked(tables: readonly TierItem[]): readonly TierItem[] {
    if ((this.counts.config & CONFIG.merge) === 0) return tables;
    const ours = ({ address }: TierItem): boolean =>
      this.history().some(({ start, end }) => address >= start && address < end);
    return tables.map((item) => (ours(item) ? item : { ...item, bytes: null, merged: true }));
  }

  *#series(
    group: ObjectNode,
    series: keyof typeof SERIES,
    count: number,
    read: boolean,
    earlier: readonly TierItem[],
    from = 0,
  ): Io<TierItem[]> {
    const prefix = SERIES[series];
    const items: TierItem[] = [];
    const missing: { into: Uint8Array; address: number }[] = [];
    const links: Link[] = [];
    for (let k = from; k < count; k++) {
      const link = group.links.get(`${prefix}${k}`);
      if (!link) break;
      links.push(link);
    }
    yield* this.run(this.structure.loader.together(links));
    for (let k = from; k < count; k++) {
      const link = links[k - from];
      const node = link && (yield* this.run(this.structure.loader.follow(link)));
      // Objects of the file never change. Whoever follows a writer has seen most of them.
      const seen = node && (earlier[k]?.node === node ? earlier[k] : earlier.find((item) => item.node === node));
      if (seen && (!read || seen.bytes)) {
        items.push(seen);
        continue;
      }
      const layout = node?.kind === 'dataset' ? this.structure.dataset(node).layout : null;
      if (layout?.kind === 'chunked') {
        this.isRewritten = true;
        return [];
      }
      if (layout?.kind !== 'contiguous' || layout.address < 0) {
        const offset = this.base + (node ?? group).address;
        throw formatError(`/${LOG_GROUP}/${prefix}${k} is missing or not contiguous`, offset);
      }
      const address = this.base + layout.address;
      // Nothing is ever overwritten: what was known of a place is still so, and whoever looks again need not read it again.
      const known = earlier.find((item) => item.address === address && item.size === layout.size);
      if (known && (!read || known.bytes)) {
        // One that a commit of this session wrote is where it was written.
        items.push(series === 'logs' ? { written: address, ...known } : known);
        continue;
      }
      let bytes: Uint8Array | null = null;
      if (read && (series === 'records' || layout.size <= SMALL)) {
        this.data.file.mustHold(address, layout.size, 'table');
        bytes = new Uint8Array(layout.size);
        missing.push({ into: bytes, address });
      }
      const written = series === 'logs' ? yield* this.run(readAddress(this.structure, node as ObjectNode)) : undefined;
      const { size } = layout;
      const item = { store: this.index, address, size, weight: size, bytes, node: node as ObjectNode };
      items.push(written === undefined ? item : { ...item, written });
    }
    yield* this.data.file.readMany(missing, 'table');
    return items;
  }

  /** Moves to a state of the file; without one, to what its superblock says. */
  *reload(storage: ByteStorage | null, state?: SubfileState): Io<void> {
    this.storage = storage;
    const { structure } = yield* this.run(openStructure(state?.root));
    const counts = yield* this.run(readCounts(structure));
    if (!counts) throw formatError('the counts of the log are missing');
    this.attach({ storage, structure, counts });
    if (state) this.end = state.end;
    yield* this.load();
  }

  /** Brings all tables into memory, so that the next flush can write them anew. */
  *loadTables(): Io<void> {
    const tables: TierItem[] = [];
    for (const item of this.state.tables) {
      if (item.merged) {
        tables.push(item); // it has no references
        continue;
      }
      const bytes = item.bytes ?? (yield* this.data.file.readCopy(item.address, item.size, 'metadata table'));
      tables.push({ ...item, bytes });
    }
    this.state = { ...this.state, tables };
  }

  /** The commits that the file knows of, oldest first. */
  history(): readonly CommitRecord[] {
    return this.#historyOf(this.recordMembers());
  }

  /** The members of the series of commit records, older ones that are yet to be read among them. */
  recordMembers(): readonly TierItem[] {
    const group = this.#olderRecords;
    if (!import.meta.page && group && this.#readLater) {
      const { records: known } = this.committed;
      const records = this.#readLater(this.#series(group, 'records', counted(group, 'records'), true, known));
      this.#olderRecords = null;
      this.committed = { ...this.committed, records };
      this.state = this.committed;
    }
    return this.committed.records;
  }

  /** The same of the present state, whenever it is asked for: commits go on, and most of them nobody asks about. */
  historyLater(): () => readonly CommitRecord[] {
    const records = this.recordMembers();
    return () => this.#historyOf(records);
  }

  #historyOf(records: readonly TierItem[]): readonly CommitRecord[] {
    if (this.#history?.of !== records) this.#history = { of: records, records: records.flatMap(recordsIn) };
    return this.#history.records;
  }

  /** Whether h5log made the last change to the file, as far as its end and its root say: others move the root, or leave gaps in it. */
  get isOurs(): boolean {
    const last = this.commit();
    return (
      last?.root === this.root && last.end === this.end && (import.meta.page || !this.#file?.structure.root.hasGaps)
    );
  }

  /** Bytes of the last commit record, and where they are in the file. */
  lastRecord(): { bytes: Uint8Array; offset: number } | undefined {
    const item = this.committed.records.at(-1);
    const record = item && recordsIn(item).at(-1);
    if (!item?.bytes || !record) return undefined;
    const size = recordSize(record.ranks.length);
    return { bytes: item.bytes.subarray(item.size - size), offset: item.address + item.size - size };
  }

  /** Commits with numbers above `sequence`, newest first, without a look at all of them. */
  commitsAfter(sequence: number): CommitRecord[] {
    const found: CommitRecord[] = [];
    const all = this.recordMembers();
    for (let i = all.length - 1; i >= 0; i--) {
      const records = recordsIn(all[i] as TierItem);
      for (let k = records.length - 1; k >= 0; k--) {
        const record = records[k] as CommitRecord;
        if (record.sequence <= sequence) return found;
        found.push(record);
      }
    }
    return found;
  }

  /** The last commit, or the one with that number, without a look at all of them. */
  commit(sequence?: number): CommitRecord | undefined {
    const records = sequence === undefined ? this.committed.records : this.recordMembers();
    for (let i = records.length - 1; i >= 0; i--) {
      const found = recordsIn(records[i] as TierItem);
      const record = sequence === undefined ? found.at(-1) : found.findLast((one) => one.sequence === sequence);
      if (record) return record;
    }
    return undefined;
  }

  #groupName(prefix: string): string {
    return prefix === SERIES.records ? recordsGroup(this.counts) : LOG_GROUP;
  }

  /** The group of a series in the structure, made if it is not there. */
  group(prefix: string): ObjectNode {
    return logGroup(this.structure, this.#groupName(prefix));
  }

  /** The same, if it is there. */
  known(prefix: string): ObjectNode | undefined {
    return knownGroup(this.structure, this.#groupName(prefix));
  }
}

/** How many members of a series a group has: their numbers follow one another. */
function counted(group: ObjectNode, series: keyof typeof SERIES): number {
  let count = 0;
  while (group.links.has(`${SERIES[series]}${count}`)) count++;
  return count;
}

function rangesOf(logs: readonly TierItem[]): LogRanges {
  return new LogRanges(logs.map((log) => ({ ...log, written: log.written ?? log.address })));
}

/** Log datasets merge by number, not by size: nothing of them is rewritten. */
export const LOG_WEIGHT = 64;

/** One dataset of a series `_md_0`, `_md_1` ... in the log group. */
export interface TierItem {
  /** Index into `log.stores`. */
  readonly store: number;
  readonly address: number;
  readonly size: number;
  /** What merging it would cost. */
  readonly weight: number;
  /** Its contents, for merging; null: they stay where they are and are never merged. */
  readonly bytes: Uint8Array | null;
  /** Of a log dataset: the file offset at which it was written; undefined in files of h5log 0.1 and of the original. */
  readonly written?: number;
  /** A table that the original wrote in merge mode; it stays as it is. */
  readonly merged?: boolean;
  /** The object that it was found in, unless this session wrote it. */
  readonly node?: ObjectNode;
}
