import { checksummer } from '#platform';
import { solo } from '../../comm/solo.ts';
import { SUPERBLOCK_SIZE } from '../../hdf5/format/superblock.ts';
import { Appender } from '../../hdf5/write/appender.ts';
import { Committer } from '../../hdf5/write/commit.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { commitDone, nextOffset, planStore } from '../../log/flush/store-commit.ts';
import { writeRest } from '../../log/flush/write.ts';
import type { LogCounts } from '../../log/format/log-group.ts';
import { MOST_DATA_BYTES, type TableOptions } from '../../log/format/table.ts';
import { mostBlocks, TableWriter } from '../../log/format/table-write.ts';
import { Log } from '../../log/log.ts';
import { LogStore } from '../../log/store.ts';
import { driveAsync, type Io } from '../../storage/io.ts';
import type { ByteStorage } from '../../storage/storage.ts';

const NO_SUM = new Uint8Array(8);
/** Pieces up to this size wait for others. */
const HELD = 2 ** 20;

/** A dataset that blocks are written to, as tables must know it. */
export interface OutputDataset {
  readonly id: number;
  readonly shape: readonly number[];
  readonly records: boolean;
}

/** A new log file: data one after the other, and when there is enough of it a commit. */
export class CompactOutput {
  readonly #storage: ByteStorage;
  readonly #options: TableOptions;
  readonly #hasSums: boolean;
  readonly #tableLimit: number;
  readonly #appender: Appender;
  readonly #store: LogStore;
  readonly #log: Log;
  #table: TableWriter;
  #sum: ReturnType<typeof checksummer> | null;
  /** Where the data of the commit under way began, and where the next goes. */
  #start: number;
  #at: number;
  /** So far it is in the file; what follows is held back. */
  #written: number;
  readonly #holding = new Uint8Array(HELD);
  #held = 0;
  #requests = 0;
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
    options: { readonly table: TableOptions; readonly checksum: boolean; readonly tableLimit: number },
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
    this.#start = this.#at = this.#written = nextOffset(this.#store);
    this.#table = new TableWriter(options.table);
    this.#sum = options.checksum ? checksummer() : null;
  }

  /** Bytes of data written so far, and the size of the file. */
  get size(): number {
    return this.#appender.committedEnd;
  }

  /** Writes bytes and says where. They may be changed when it is done. */
  async write(bytes: Uint8Array): Promise<number> {
    const offset = this.#at;
    this.#at += bytes.length;
    if (this.#held + bytes.length > HELD) await this.#release();
    if (bytes.length > HELD) await this.#put(bytes, offset);
    else {
      this.#holding.set(bytes, this.#held);
      this.#held += bytes.length;
    }
    return offset;
  }

  /** Small pieces are written together. */
  async #release(): Promise<void> {
    const bytes = this.#holding.subarray(0, this.#held);
    this.#held = 0;
    if (bytes.length > 0) await this.#put(bytes, this.#written);
  }

  async #put(bytes: Uint8Array, offset: number): Promise<void> {
    // The appender would take a size that it did not give the file for the work of a stranger.
    await driveAsync(this.#storage, this.#appender.reserve(offset + bytes.length));
    await driveAsync(
      this.#storage,
      put(bytes, offset, () => this.#sum?.update(bytes)),
    );
    this.#written = offset + bytes.length;
  }

  /** A block without filters. */
  async block(dataset: OutputDataset, start: Float64Array, count: Float64Array, bytes: Uint8Array): Promise<void> {
    const offset = await this.write(bytes);
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
    await this.#commitIfFull();
  }

  /** A block with filters, as they left it. */
  async stream(dataset: OutputDataset, start: Float64Array, count: Float64Array, bytes: Uint8Array): Promise<void> {
    const offset = await this.write(bytes);
    this.#endRun();
    const blocks = { rank: start.length, starts: start, counts: count, from: 0, to: 1 };
    const { id, shape, records } = dataset;
    this.#table.add({ id, shape, records, blocks, key: null, offset, size: bytes.length });
    this.#requests++;
    await this.#commitIfFull();
  }

  #endRun(): void {
    const run = this.#run;
    if (!run) return;
    this.#run = null;
    const { id, shape, records } = run.dataset;
    const rank = shape.length;
    const blocks = {
      rank,
      starts: Float64Array.from(run.starts),
      counts: Float64Array.from(run.counts),
      from: 0,
      to: run.length,
    };
    this.#table.add({ id, shape, records, blocks, key: null, offset: run.from, size: run.end - run.from });
  }

  async #commitIfFull(): Promise<void> {
    const waiting = this.#run ? this.#run.length * 16 * this.#run.dataset.shape.length : 0;
    if (this.#table.size + waiting > this.#tableLimit) await this.commit();
  }

  /** What was written so far counts. The first commit brings the structure. */
  async commit(): Promise<void> {
    this.#endRun();
    await this.#release();
    const dataSize = this.#at - this.#start;
    const table = this.#table.entries > 0 ? this.#table.finish() : null;
    const addition = {
      dataSize,
      data: [],
      table,
      tableSize: table?.length ?? 0,
      header: null,
      parts: 1,
    };
    const planned = planStore(this.#log, this.#store, addition, false);
    const plan = { sequence: this.#sequence++, time: Date.now(), requests: this.#requests };
    const part = { rank: 0, end: this.#at, checksum: this.#sum?.digest() ?? NO_SUM };
    await driveAsync(this.#storage, writeRest(this.#log, plan, planned, [part]));
    commitDone(planned);
    this.#start = this.#at = this.#written = nextOffset(this.#store);
    this.#requests = 0;
    this.#table = new TableWriter(this.#options);
    this.#sum = this.#hasSums ? checksummer() : null;
  }

  /** Commits what is left, and cuts the file to size. */
  async finish(): Promise<void> {
    if (this.#sequence === 0 || this.#at > this.#start) await this.commit();
    await driveAsync(this.#storage, this.#appender.close());
  }
}

function* put(bytes: Uint8Array, offset: number, meanwhile: () => void): Io<void> {
  yield { op: 'write', parts: [bytes], offset, meanwhile };
}
