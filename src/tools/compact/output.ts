import { checksummer } from '#platform';
import { solo } from '../../comm/solo.ts';
import { type PendingHeap, PlacedHeap } from '../../hdf5/format/pending-heap.ts';
import { SUPERBLOCK_SIZE } from '../../hdf5/format/superblock.ts';
import { Appender } from '../../hdf5/write/appender.ts';
import { Committer } from '../../hdf5/write/commit.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { LogParts } from '../../log/flush/numbered.ts';
import { commitDone, nextOffset, planStore } from '../../log/flush/store-commit.ts';
import { writeRest } from '../../log/flush/write.ts';
import type { LogCounts } from '../../log/format/log-group.ts';
import { MOST_DATA_BYTES, type TableOptions } from '../../log/format/table.ts';
import { mostBlocks, newTable, type TableBuilder } from '../../log/format/table-write.ts';
import { Log } from '../../log/log.ts';
import type { LogDataset } from '../../log/post/dataset.ts';
import { LogStore } from '../../log/store.ts';
import { type Io, onStorage } from '../../storage/io.ts';
import type { ByteStorage } from '../../storage/storage.ts';
import { Output } from '../output.ts';

const NO_SUM = new Uint8Array(8);

/** A dataset that blocks are written to, as tables must know it. */
export interface OutputDataset {
  readonly id: number;
  readonly shape: readonly number[];
  readonly records: boolean;
  readonly elementSize: number;
  readonly filter: number;
  /** The number of its log, if logs have numbers. */
  readonly logNumber: number;
}

/** A new log file: data one after the other, and when there is enough of it a commit. */
export class CompactOutput {
  readonly #storage: ByteStorage;
  #options: TableOptions;
  readonly #hasSums: boolean;
  readonly #tableLimit: number;
  readonly #appender: Appender;
  readonly #store: LogStore;
  readonly #log: Log;
  #table: TableBuilder;
  /** Tables of numbered logs; null: there is one log for all datasets. */
  #numbered: LogParts | null;
  #sum: ReturnType<typeof checksummer> | null;
  readonly #data: Output;
  /** Where the data of the next commit begins. */
  #start: number;
  #requests = 0;
  /** What elements point to is among the data of the next commit. */
  #hasHeaps = false;
  #sequence = 0;
  /** Blocks of one dataset whose data lies together: one entry. */
  #run: {
    dataset: OutputDataset;
    from: number;
    end: number;
    starts: number[];
    counts: number[];
    length: number;
  } | null = null;

  constructor(
    storage: ByteStorage,
    structure: Structure,
    datasets: number,
    options: {
      readonly table: TableOptions;
      readonly checksum: boolean;
      readonly tableLimit: number;
      /** Of the commit records. */
      readonly version: number;
    },
  ) {
    this.#storage = storage;
    this.#options = options.table;
    this.#hasSums = options.checksum;
    this.#tableLimit = options.tableLimit;
    const superblock = { base: 0, end: SUPERBLOCK_SIZE, bytes: new Uint8Array(0) };
    this.#appender = new Appender({ name: storage.name, superblock, power: false });
    const counts: LogCounts = { datasets, logs: 0, tables: 0, config: 0, subfiles: 1 };
    this.#store = new LogStore(0, solo());
    this.#store.committer = new Committer(structure, this.#appender, null);
    this.#store.attach({ storage: null, structure, counts });
    const log = { table: options.table, checksum: options.checksum, bufferLimit: Infinity, indexLimit: Infinity };
    this.#log = new Log(structure, this.#store, [this.#store], 0, { ...log, flushWhenFull: false });
    if (!this.#log.layout) this.#log.version = options.version;
    this.#options = this.#log.options.table;
    this.#start = nextOffset(this.#store);
    const onBytes = (bytes: Uint8Array): void => this.#sum?.update(bytes);
    this.#data = new Output(this.#start, { on: storage, appender: this.#appender, onBytes });
    this.#table = newTable(this.#options);
    this.#numbered = this.#log.layout && new LogParts(this.#options);
    this.#sum = options.checksum ? checksummer() : null;
  }

  /** Bytes of data written so far, and the size of the file. */
  get size(): number {
    return this.#appender.committedEnd;
  }

  /** Writes bytes, which must stay as they are until the next ones are written; gives their offset. */
  *write(bytes: Uint8Array): Io<number> {
    return yield* this.#data.append(bytes);
  }

  /** Writes what elements point to, and gives them their ids. */
  *contents(heap: PendingHeap, { dtype, size }: LogDataset['elements'], bytes: Uint8Array): Io<void> {
    this.#endRun();
    this.#hasHeaps = true;
    const placed = new PlacedHeap([heap], this.#data.end, { reference: (number) => number });
    placed.patch(dtype, bytes, bytes.length / size);
    for (const image of placed.images) yield* this.write(image);
  }

  /** A block without filters. */
  *block(dataset: OutputDataset, start: Float64Array, count: Float64Array, bytes: Uint8Array): Io<void> {
    yield* this.#enter(dataset);
    const offset = yield* this.write(bytes);
    this.#numbered?.reach(offset + bytes.length);
    const run = this.#run;
    const rank = start.length;
    const fits =
      run?.dataset === dataset &&
      rank > 0 &&
      this.#options.merge &&
      run.length < mostBlocks(rank) &&
      offset + bytes.length - run.from <= MOST_DATA_BYTES;
    if (!fits) this.#endRun();
    this.#run ??= { dataset, from: offset, end: offset, starts: [], counts: [], length: 0 };
    this.#run.starts.push(...start);
    this.#run.counts.push(...count);
    this.#run.length++;
    this.#run.end = offset + bytes.length;
    this.#requests++;
    yield* this.#commitIfFull();
  }

  /** A block with filters, as they left it. */
  *stream(dataset: OutputDataset, start: Float64Array, count: Float64Array, bytes: Uint8Array): Io<void> {
    yield* this.#enter(dataset);
    const offset = yield* this.write(bytes);
    this.#numbered?.reach(offset + bytes.length);
    this.#endRun();
    const blocks = { rank: start.length, starts: start, counts: count, from: 0, to: 1 };
    this.#table.add({ ...dataset, blocks, key: null, offset, size: bytes.length });
    this.#requests++;
    yield* this.#commitIfFull();
  }

  #endRun(): void {
    const run = this.#run;
    if (!run) return;
    this.#run = null;
    const rank = run.dataset.shape.length;
    const blocks = {
      rank,
      starts: Float64Array.from(run.starts),
      counts: Float64Array.from(run.counts),
      from: 0,
      to: run.length,
    };
    this.#table.add({ ...run.dataset, blocks, key: null, offset: run.from, size: run.end - run.from });
  }

  /** Data of a dataset comes next, which may be in another log than what came before. */
  *#enter({ logNumber }: OutputDataset): Io<void> {
    const numbered = this.#numbered;
    const table = numbered?.begin(logNumber, this.#data.end);
    if (!table) return;
    this.#endRun();
    this.#table = table;
    if (numbered?.header) yield* this.write(numbered.header);
  }

  *#commitIfFull(): Io<void> {
    const waiting = this.#run ? this.#run.length * 16 * this.#run.dataset.shape.length : 0;
    const size = this.#numbered?.size ?? this.#table.size;
    if (size + waiting > this.#tableLimit) yield* this.commit();
  }

  /** What was written so far counts. The first commit brings the structure. */
  *commit(): Io<void> {
    this.#endRun();
    yield* this.#data.flush();
    const dataSize = this.#data.end - this.#start;
    const table = !this.#numbered && this.#table.entries > 0 ? this.#table.finish() : null;
    const numbered = this.#numbered?.finish();
    const addition = {
      dataSize,
      data: [],
      table,
      tableSize: table?.length ?? 0,
      header: null,
      parts: 1,
      ...(numbered && { numbered, heapSize: this.#hasHeaps ? dataSize : 0 }),
    };
    const planned = planStore(this.#log, this.#store, addition, false);
    const plan = { sequence: this.#sequence++, time: Date.now(), requests: this.#requests };
    const part = { rank: 0, end: this.#data.end, checksum: this.#sum?.digest() ?? NO_SUM };
    yield* onStorage(this.#storage, writeRest(this.#log, plan, planned, [part]));
    commitDone(planned);
    this.#start = this.#data.end = nextOffset(this.#store);
    this.#requests = 0;
    this.#hasHeaps = false;
    this.#table = newTable(this.#options);
    this.#numbered &&= new LogParts(this.#options);
    this.#sum = this.#hasSums ? checksummer() : null;
  }

  /** Commits what is left, and cuts the file to size. */
  *finish(): Io<void> {
    if (this.#sequence === 0 || this.#data.end > this.#start) yield* this.commit();
    yield* onStorage(this.#storage, this.#appender.close());
  }
}
