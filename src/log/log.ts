import { formatError, H5LogError } from '../errors.ts';
import type { Committer } from '../hdf5/commit.ts';
import type { ObjectNode } from '../hdf5/object-node.ts';
import type { Structure } from '../hdf5/structure.ts';
import { complete, type Io } from '../storage/drive.ts';
import { ID, readAnchor } from './anchor.ts';
import { ArenaPool } from './arena.ts';
import { LogData } from './box-read.ts';
import { type CommitRecord, parseRecords } from './commit-record.ts';
import { CONFIG, LOG_GROUP, type LogCounts } from './layout.ts';
import { LogDataset } from './log-dataset.ts';
import { logNames } from './names.ts';
import { DatasetStage, Stage } from './stage.ts';
import type { TableOptions } from './table-format.ts';
import { Tables } from './tables.ts';
import { LOG_WEIGHT, type TierItem } from './tiers.ts';

/** The series of datasets in the log group. */
export const SERIES = { logs: '_ld_', tables: '_md_', records: '_cr_' } as const;

/** Tables and records up to this size are kept in memory when a file is opened for writing, so that they can be merged. */
export const SMALL = 2 ** 20;

const NOTHING = new Uint8Array(0);

export interface LogOptions {
  readonly table: TableOptions;
  readonly checksum: boolean;
  readonly bufferLimit: number;
  readonly indexLimit: number;
  /** Whether a post that finds no room may flush by itself. */
  readonly flushWhenFull: boolean;
}

/** The three series as they are, or will be when the commits under way have succeeded. */
export interface LogState {
  readonly logs: readonly TierItem[];
  readonly tables: readonly TierItem[];
  readonly records: readonly TierItem[];
}

/** The log of an open file: what was posted, what is committed, and which datasets there are. */
export class Log {
  readonly structure: Structure;
  readonly committer: Committer | null;
  readonly options: LogOptions;
  readonly pool = new ArenaPool();
  readonly data: LogData;
  readonly tables: Tables;
  counts: LogCounts;
  state: LogState = { logs: [], tables: [], records: [] };
  /** Commit records that are in the file. */
  records: readonly TierItem[] = [];
  #history: { of: readonly TierItem[]; records: CommitRecord[] } | null = null;
  /** A dataset was deleted: entries that others refer to may be its own, so the tables are written anew. */
  rewrite = false;
  /** Flushes, for posts that find no room. */
  makeRoom: (() => void) | null = null;
  /** Posts since the last flush; those of flushes that failed, oldest first; those of flushes under way. */
  current = new Stage();
  waiting: Stage[] = [];
  underWay: Stage[] = [];
  readonly #datasets = new Map<ObjectNode, LogDataset>();
  readonly #byId = new Map<number, LogDataset>();
  /** Of the numbers below this, those that are not known belong to datasets that are gone. */
  #searched = 0;
  #held = 0;

  constructor(structure: Structure, committer: Committer | null, counts: LogCounts, options: LogOptions) {
    this.structure = structure;
    this.committer = committer;
    this.counts = counts;
    this.options = options;
    const { base, end } = structure.loader.file;
    // Entries name file offsets, not addresses.
    this.data = new LogData(0, base + end);
    this.tables = new Tables(this.data, []);
    structure.released = (node) => {
      if (node.kind === 'dataset' && node.attributes.has(ID)) this.rewrite = true;
    };
  }

  /** Finds logs, tables and commit records in the structure. */
  *load(): Io<void> {
    const group = this.structure.root.links.get(LOG_GROUP);
    const node = group && (yield* this.structure.loader.follow(group));
    if (!node) return;
    // How many flushes a log dataset stands for is not known any more; merging them costs nothing anyway.
    const found = yield* this.#series(node, SERIES.logs, this.counts.logs, false);
    const logs = found.map((item) => ({ ...item, weight: LOG_WEIGHT, bytes: NOTHING }));
    const tables = yield* this.#series(node, SERIES.tables, this.counts.tables, this.committer !== null);
    let recordCount = 0;
    while (node.links.has(`${SERIES.records}${recordCount}`)) recordCount++;
    const records = yield* this.#series(node, SERIES.records, recordCount, true);
    this.records = records;
    this.state = { logs, tables: this.#marked(tables), records };
    this.tables.items = this.state.tables;
    if (this.committer) this.#passNumbers();
  }

  /** The original counts datasets when it closes a file; if it did not get so far, there are some beyond the count. */
  #passNumbers(): void {
    const records = this.history();
    if (records[records.length - 1]?.root === this.structure.root.address) return;
    let { datasets } = this.counts;
    for (const [node] of this.#objects()) {
      const id = node.kind === 'dataset' ? complete(this.structure.attribute(node, ID)) : undefined;
      if (id instanceof Int32Array) datasets = Math.max(datasets, (id[0] ?? -1) + 1);
    }
    this.counts = { ...this.counts, datasets };
  }

  /** Marks tables of the original's merge mode: those of a file in that mode that none of our commits wrote. */
  #marked(tables: readonly TierItem[]): readonly TierItem[] {
    if ((this.counts.config & CONFIG.merge) === 0) return tables;
    const ours = ({ address }: TierItem): boolean =>
      this.history().some(({ start, end }) => address >= start && address < end);
    return tables.map((item) => (ours(item) ? item : { ...item, bytes: null, merged: true }));
  }

  /** Brings all tables into memory, so that the next flush can write them anew. */
  *loadTables(): Io<void> {
    const tables: TierItem[] = [];
    for (const item of this.state.tables) {
      if (item.merged) {
        tables.push(item); // it has no references
        continue;
      }
      const bytes = item.bytes ?? (yield* this.data.file.read(item.address, item.size, 'metadata table')).slice();
      tables.push({ ...item, bytes });
    }
    this.state = { ...this.state, tables };
  }

  /** The commits that the file knows of, oldest first. */
  history(): readonly CommitRecord[] {
    if (this.#history?.of !== this.records) {
      const records = this.records.flatMap(({ bytes, address }) => (bytes ? parseRecords(bytes, address) : []));
      this.#history = { of: this.records, records };
    }
    return this.#history.records;
  }

  *#series(group: ObjectNode, prefix: string, count: number, read: boolean): Io<TierItem[]> {
    const items: TierItem[] = [];
    for (let k = 0; k < count; k++) {
      const link = group.links.get(`${prefix}${k}`);
      const node = link && (yield* this.structure.loader.follow(link));
      const layout = node?.kind === 'dataset' ? this.structure.dataset(node).layout : null;
      if (layout?.kind !== 'contiguous' || layout.address < 0) {
        const offset = this.structure.loader.file.base + (node ?? group).address;
        throw formatError(`/${LOG_GROUP}/${prefix}${k} is missing or not contiguous`, offset);
      }
      const address = this.structure.loader.file.base + layout.address;
      let bytes: Uint8Array | null = null;
      if (read && (prefix === SERIES.records || layout.size <= SMALL)) {
        bytes = (yield* this.data.file.read(address, layout.size, 'table')).slice();
      }
      items.push({ address, size: layout.size, weight: layout.size, bytes });
    }
    return items;
  }

  /** What a dataset node is in the log, or undefined for a dataset of another kind. */
  *dataset(node: ObjectNode, path: string): Io<LogDataset | undefined> {
    const known = this.#datasets.get(node);
    if (known) return known;
    const anchor = yield* readAnchor(this.structure, node);
    if (!anchor) return undefined;
    const dataset = new LogDataset(this, node, path, anchor);
    this.#datasets.set(node, dataset);
    this.#byId.set(dataset.id, dataset);
    return dataset;
  }

  /** What tables must know of a dataset; undefined if it is gone. */
  shapeOf(id: number): { shape: readonly number[]; records: boolean } | undefined {
    if (id >= this.#searched && !this.#byId.has(id)) this.#findAll();
    const dataset = this.#byId.get(id);
    return dataset && !dataset.deleted ? dataset : undefined;
  }

  /** Gets to know every dataset; a file that is being written has its whole structure in memory. */
  #findAll(): void {
    for (const [node, path] of this.#objects()) if (node.kind === 'dataset') complete(this.dataset(node, path));
    this.#searched = this.counts.datasets;
  }

  /** Every object with a path to it. */
  *#objects(): Generator<[ObjectNode, string], void, undefined> {
    const paths = new Map<ObjectNode, string>([[this.structure.root, '']]);
    for (const [node, path] of paths) {
      yield [node, path];
      for (const { name, node: target } of node.links.values()) {
        if (target && !paths.has(target)) paths.set(target, `${path}/${logNames.shownInside(name)}`);
      }
    }
  }

  /** Throws if the data is not in this file, or nobody can say where. */
  mustHoldData(): void {
    if (this.counts.config & CONFIG.aligned)
      throw new H5LogError('UNSUPPORTED', 'the aligned data layout of the original does not keep where the data is');
    if ((this.counts.config & CONFIG.subfiling) === 0) return;
    throw new H5LogError(
      'UNSUPPORTED',
      'the data of this file is in subfiles, which this version cannot read or write',
    );
  }

  // ---------------------------------------------------------------- posting

  isCurrent(stage: DatasetStage): boolean {
    return stage.owner === this.current;
  }

  begin(dataset: LogDataset): DatasetStage {
    this.mustHoldData();
    // After a resize the dataset's stage is a new object of the same flush.
    const known = this.current.of(dataset);
    if (known) return known;
    const stage = new DatasetStage(dataset, this.current, this.pool);
    this.current.set(stage);
    return stage;
  }

  /** Makes sure that so many bytes more may be kept; they count once they are {@link posted}. */
  claim(bytes: number, dataset: LogDataset): void {
    const { bufferLimit, flushWhenFull } = this.options;
    const makeRoom = flushWhenFull ? this.makeRoom : null;
    if (this.#held + bytes > bufferLimit && this.#held > 0 && makeRoom) makeRoom();
    if (this.#held + bytes > bufferLimit && !(makeRoom && this.#held === 0)) {
      const text = `${dataset.path}: ${bytes} bytes more than the ${this.#held} pending exceed the bufferLimit of ${bufferLimit}; flush and try again`;
      throw new H5LogError('BUFFER_FULL', text, { object: dataset.path });
    }
  }

  /** Kept bytes were replaced by others. */
  exchange(old: number, now: number): void {
    this.#held += now - old;
  }

  /** Requests were added to the current stage, with so many bytes that are kept here. */
  posted(requests: number, bytes: number): void {
    this.current.requests += requests;
    this.#held += bytes;
  }

  /** Bytes of a stage were committed. Memory that a write may still be reading from is not used again. */
  release(stage: Stage, reuse: boolean): void {
    for (const part of stage.datasets) {
      this.#held -= part.arena.held;
      if (reuse) part.arena.release();
      part.dataset.forgetStage(part);
    }
  }

  get pending(): { requests: number; bytes: number } {
    let requests = 0;
    let bytes = 0;
    for (const stage of [...this.waiting, this.current]) {
      requests += stage.requests;
      bytes += stage.bytes;
    }
    return { requests, bytes };
  }

  /** Everything posted to a dataset that is not committed, oldest first. */
  stagesOf(dataset: LogDataset): DatasetStage[] {
    const found: DatasetStage[] = [];
    for (const stage of [...this.underWay, ...this.waiting, this.current]) {
      const part = stage.of(dataset);
      if (part) found.push(part);
    }
    return found;
  }
}
