import { inflate } from '#platform';
import { formatError } from '../../base/errors.ts';
import { Budget } from '../../hdf5/format/file-bytes.ts';
import { boxSize } from '../../space/box.ts';
import type { Io } from '../../storage/io.ts';
import { openTable } from '../format/classic.ts';
import type { MergedFit } from '../format/original.ts';
import { ENTRY } from '../format/table.ts';
import type { BlockSink, OpenedTable, RawEntry } from '../format/table-read.ts';
import type { Log } from '../log.ts';
import type { LogRanges } from '../log-ranges.ts';
import type { LogDataset } from '../post/dataset.ts';
import type { NumberedLogs, Series, TierItem } from '../store.ts';
import type { LogData } from './boxes.ts';
import { BlockIndex, type Coverage } from './index.ts';
import type { WriteOrder } from './write-order.ts';

/** Bytes of tables that stay cached after they were read. */
const TABLE_CACHE = 32 * 2 ** 20;
/** Bytes of small tables that the garbage collector is asked to leave: it takes nothing of them before a blocking caller returns. */
const WEAK_CACHE = 256 * 2 ** 20;

const NOTHING: Coverage = { ends: [] };
const FEW_ENTRIES = 1024;

/** What tables are read from: the file, and where the data is that they name. */
interface TableStore {
  readonly data: LogData;
  readonly ranges: LogRanges;
  readonly isRewritten: boolean;
  rangesWith(logs: readonly TierItem[]): LogRanges;
  series(number: number, of: NumberedLogs): Io<Series>;
}

/** The tables that may have entries of a dataset, and where the data is that they name, by store. */
interface TablesOf {
  readonly items: readonly TierItem[];
  readonly ranges: readonly LogRanges[];
}

/** The tables of one state of a file. They stay in the file when merged tables replace them, so a state can be read at any time. */
export interface Committed {
  readonly items: readonly TierItem[];
  /** The file offset at which the state ends, by store. */
  readonly ends: readonly number[];
  /** null with one store, where the file offset tells what is newer. */
  readonly order: WriteOrder | null;
  /** Marks indexes that have all of this state. */
  readonly coverage: Coverage;
  /** Numbered logs, by store; empty if the file has none. */
  readonly numbered: readonly NumberedLogs[];
}

/** Tables that were read. A table never changes, so that the states of a file share them. */
class TableCache {
  readonly #open = new Map<TierItem, OpenedTable>();
  readonly #weak = new WeakMap<TierItem, WeakRef<OpenedTable>>();
  /** Tables of the original's merge mode that were found to be readable. */
  readonly decoded = new WeakSet<TierItem>();
  readonly selections = new SelectionCache();
  #bytes = 0;
  #weakBytes = 0;

  get(item: TierItem): OpenedTable | undefined {
    return this.#open.get(item) ?? this.#weak.get(item)?.deref();
  }

  /** Keeps the small tables that were read last; others only as long as the garbage collector leaves them. */
  add(item: TierItem, opened: OpenedTable): void {
    const isLarge = item.size > TABLE_CACHE / 4;
    this.#weakBytes += item.size;
    if (isLarge || this.#weakBytes <= WEAK_CACHE) this.#weak.set(item, new WeakRef(opened));
    if (isLarge) return;
    for (const [oldest] of this.#open) {
      if (this.#bytes + item.size <= TABLE_CACHE) break;
      this.#open.delete(oldest);
      this.#bytes -= oldest.size;
    }
    this.#open.set(item, opened);
    this.#bytes += item.size;
  }
}

/** The metadata tables of a file, read when they are first needed. */
export class Tables {
  readonly #stores: readonly TableStore[];
  /** The newest committed state. */
  committed: Committed = { items: [], ends: [], order: null, coverage: { ends: [] }, numbered: [] };
  #cache = new TableCache();

  constructor(stores: readonly TableStore[]) {
    this.#stores = stores;
  }

  /** Uses what was read of the tables of another state of the same file. */
  share(other: Tables): void {
    this.#cache = other.#cache;
  }

  *#table(item: TierItem): Io<OpenedTable> {
    const known = this.#cache.get(item);
    if (known) return known;
    const { file } = this.#data(item.store);
    const bytes = item.bytes ?? (yield* file.readCopy(item.address, item.size, 'metadata table'));
    const table = openTable(bytes, item.address);
    this.#cache.add(item, table);
    return table;
  }

  /** The tables that may have entries behind covered offsets. Small ones of them are read together. */
  *#behind(covered: Coverage, items: readonly TierItem[], ranges: readonly LogRanges[]): Io<readonly TierItem[]> {
    // A table from before the covered offset holds nothing new. One that was merged since may hold old and new entries.
    const needed = items.filter(
      ({ address, store }) => address >= (covered.ends[store] ?? 0) || (ranges[store] as LogRanges).isMoved,
    );
    const wanted: { item: TierItem; into: Uint8Array; address: number }[] = [];
    let room = TABLE_CACHE / 4;
    for (const item of needed) {
      if (item.bytes || item.size > room || item.store !== needed[0]?.store || this.#cache.get(item)) continue;
      room -= item.size;
      const { file } = this.#data(item.store);
      file.mustHold(item.address, item.size, 'metadata table');
      wanted.push({ item, into: new Uint8Array(item.size), address: item.address });
    }
    if (wanted.length < 2) return needed;
    yield* this.#data((wanted[0] as { item: TierItem }).item.store).file.readMany(wanted, 'metadata table');
    for (const { item, into } of wanted) this.#cache.add(item, openTable(into, item.address));
    return needed;
  }

  /** The tables of a dataset: those of its own log, and those that all datasets share. */
  *#of(dataset: LogDataset, { items, numbered }: Committed): Io<TablesOf> {
    if (this.#stores.some(({ isRewritten }) => isRewritten))
      throw formatError(
        `${dataset.path} was never published, and another program has rewritten the log that has its data`,
        dataset.log.main.base + dataset.node.address,
      );
    if (!dataset.log.layout) return { items, ranges: this.#stores.map(({ ranges }) => ranges) };
    const own: Series[] = [];
    for (const [i, store] of this.#stores.entries())
      own.push(yield* store.series(dataset.logNumber, numbered[i] as NumberedLogs));
    const ranges = this.#stores.map((store, i) => store.rangesWith((own[i] as Series).logs));
    return { items: [...items, ...own.flatMap(({ tables }) => tables)], ranges };
  }

  #data(store: number): LogData {
    return (this.#stores[store] as TableStore).data;
  }

  /**
   * The committed blocks of a dataset: all of them, or only those that meet the box [low, high), one entry at a time. With
   * `covered`, only those that were committed behind these file offsets.
   */
  *index(
    dataset: LogDataset,
    box: { low: Float64Array; high: Float64Array } | null,
    state: Committed,
    covered: Coverage = NOTHING,
  ): Io<BlockIndex> {
    const { ends, order } = state;
    const { items, ranges: all } = yield* this.#of(dataset, state);
    const rank = dataset.shape.length;
    const index = new BlockIndex(rank);
    const several = this.#stores.length > 1;
    // No data belongs to two entries. Where references repeat a selection without end, this bounds the index by the file.
    const budgets = this.#stores.map(({ data }) => new Budget(data.file));
    const known = dataset.isDeflated;
    const wanted = yield* this.#behind(covered, items, all);
    const bytes = { seen: 0, all: wanted.reduce((sum, { size }) => sum + size, 0) };
    for (const item of wanted) {
      bytes.seen += item.size;
      const floor = covered.ends[item.store] ?? 0;
      const ranges = all[item.store] as LogRanges;
      const table = yield* this.#table(item);
      const places = table.placesOf(dataset.id);
      if (item.merged && places.length > 0) yield* this.#mustDecode(item, table, dataset.log);
      // To grow a list of a million blocks again and again takes longer than to decode them.
      if (!import.meta.page && !box && !several && places.length < FEW_ENTRIES)
        this.#reserve(index, item, table, places, floor, bytes.all / bytes.seen);
      for (const at of places) {
        const entry = table.entryAt(at);
        if (entry.offset < floor) continue;
        ranges.locate(entry.offset, entry.size);
        const part = box || several ? new BlockIndex(rank, entry.count) : index;
        yield* this.#add(item, table, entry, dataset, part, ranges);
        const blocks = part.whole ? 0 : entry.count; // a stream may hold more blocks than it has bytes
        budgets[item.store]?.spend(Math.max(entry.size, blocks), item.address + at, 'entries of a table');
        if (part === index) continue;
        const found = box ? part.query(box.low, box.high) : everyBlock(part);
        for (const block of found) {
          index.take(part, block);
          if (several) index.inStore(item.store);
          if (order) index.wasWritten(order.of(item.store, entry.offset));
        }
      }
    }
    // The dataset turned out to be deflated: entries before the first stream have to be decoded again.
    if (!known && dataset.isDeflated) return yield* this.index(dataset, box, state, covered);
    index.sort();
    order?.mustTell(index, dataset.path);
    index.orders = null;
    followMoves(index, all);
    index.covered = { ends };
    return index;
  }

  /** Makes room for the blocks of some entries, and for as many times more as other tables may have, if the file can have so many. */
  #reserve(
    index: BlockIndex,
    { store }: TierItem,
    table: OpenedTable,
    places: readonly number[],
    floor: number,
    times: number,
  ): void {
    if (import.meta.page) return;
    let blocks = 0;
    for (const at of places) {
      const entry = table.entryAt(at);
      if (entry.offset < floor) continue;
      table.checkRoom(entry, index.rank);
      blocks += entry.count;
    }
    const expected = Math.ceil((index.length + blocks) * times) - index.length;
    if (index.length + expected <= this.#data(store).file.end) index.reserve(expected);
  }

  *#add(
    item: TierItem,
    table: OpenedTable,
    entry: RawEntry,
    dataset: LogDataset,
    index: BlockIndex,
    ranges: LogRanges,
  ): Io<void> {
    const { rank, length } = index;
    table.checkRoom(entry, rank);
    index.reserve(entry.count);
    const fit = { elements: entry.size / dataset.elements.size, limits: dataset.maxShape };
    const sink = { rank, starts: index.starts, counts: index.counts, at: length * rank };
    this.#cache.selections.blocks(item, table, entry, sink, item.merged ? fit : undefined);
    const bytes = addEntry(entry, dataset, index);
    if (dataset.filters.length > 0) table.checkSize(entry, entry.size, true);
    else if (yield* this.#isStream(item.store, entry, dataset, bytes, ranges)) {
      index.length = length;
      addStream(entry, dataset, index, bytes);
    } else table.checkSize(entry, bytes, false);
  }

  /** A table of the original's merge mode is read only if every entry of it, whoever asks, can be read in exactly one way. */
  *#mustDecode(item: TierItem, table: OpenedTable, log: Log): Io<void> {
    if (this.#cache.decoded.has(item)) return;
    const datasets = yield* log.everyDataset();
    for (const entry of table.entries()) {
      const dataset = datasets.get(entry.id);
      const { ranges } = this.#stores[item.store] as TableStore;
      if (dataset)
        yield* this.#add(item, table, entry, dataset, new BlockIndex(dataset.shape.length, entry.count), ranges);
    }
    this.#cache.decoded.add(item);
  }

  /**
   * The original forgets which of its datasets are deflated: a size that is not that of the elements and a zlib header give it away.
   * Once it is known of a dataset, a stream that happens to be as long as what is in it is found by its own checksum.
   */
  *#isStream(store: number, entry: RawEntry, dataset: LogDataset, bytes: number, ranges: LogRanges): Io<boolean> {
    if (entry.size === bytes && !dataset.isDeflated) return false;
    if (entry.size < 2) return false;
    const { file } = this.#data(store);
    const at = ranges.locate(entry.offset, entry.size);
    const [first, second] = yield* file.read(at, 2, 'data of the log');
    if (first !== 0x78 || ((first << 8) | (second as number)) % 31 !== 0) return false;
    if (entry.size === bytes) return inflatesTo(yield* file.read(at, bytes, 'data'), bytes);
    dataset.isDeflated = true;
    return true;
  }

  /**
   * The index of all blocks of a dataset in a state; null if it would exceed the index limit. The dataset caches the index of the
   * newest state, to which later calls add only what is new. `floor` is what its layout has, which was published before that state.
   */
  *whole(dataset: LogDataset, state: Committed, floor: Coverage = NOTHING): Io<BlockIndex | null> {
    const { indexLimit } = dataset.log.options;
    if (indexLimit < Infinity) {
      const bytes = (yield* this.count(dataset, state, floor)) * (16 * dataset.shape.length + 16);
      if (bytes > indexLimit) return null;
    }
    // The dataset was published again since the read was asked for, and its index has only what is newer.
    if (floor !== (dataset.base?.floor ?? NOTHING)) return yield* this.index(dataset, null, state, floor);
    const known = dataset.index;
    if (known?.covered === state.coverage) return known;
    const covered = known?.covered ?? floor;
    const isBehind = covered.ends.every((end, store) => end <= (state.ends[store] as number));
    const before = isBehind ? covered : floor;
    const added = yield* this.index(dataset, null, state, before);
    if (!isBehind) return added;
    // Another flush ended meanwhile: this index is complete for the state asked for only, and must not be cached.
    if (this.committed !== state || dataset.index !== known)
      return before.ends === floor.ends ? added : yield* this.index(dataset, null, state, floor);
    if (known) for (const block of everyBlock(added)) known.take(added, block);
    const index = known ?? added;
    index.covered = state.coverage;
    dataset.index = index;
    return index;
  }

  /** How many blocks the tables that datasets share hold. */
  *total(): Io<number> {
    let blocks = 0;
    for (const item of this.committed.items)
      for (const { count, times } of (yield* this.#table(item)).entries()) blocks += count * times;
    return blocks;
  }

  /** How many blocks of a dataset the tables hold, but for those that `covered` has. */
  *count(dataset: LogDataset, state: Committed, covered: Coverage = NOTHING): Io<number> {
    const { items, ranges } = yield* this.#of(dataset, state);
    let blocks = 0;
    for (const item of yield* this.#behind(covered, items, ranges)) {
      const floor = covered.ends[item.store] ?? 0;
      const table = yield* this.#table(item);
      for (const at of table.placesOf(dataset.id)) {
        const { offset, count } = table.entryAt(at);
        if (offset >= floor) blocks += count;
      }
    }
    return blocks;
  }
}

/** Offsets tell the order of blocks, as they were written; where a log has moved they are now exchanged for where the data is. */
function followMoves({ offsets, stores, length }: BlockIndex, all: readonly LogRanges[]): void {
  if (!all.some(({ isMoved }) => isMoved)) return;
  for (let i = 0; i < length; i++) {
    const ranges = all[stores?.[i] ?? 0] as LogRanges;
    offsets[i] = ranges.locate(offsets[i] as number, 1);
  }
}

function inflatesTo(stream: Uint8Array, size: number): boolean {
  try {
    return inflate(stream, size).length === size;
  } catch {
    return false;
  }
}

/** Adds the blocks of an entry and returns how many bytes they are unfiltered. */
function addEntry(entry: RawEntry, dataset: LogDataset, index: BlockIndex): number {
  const { rank } = index;
  const { size } = dataset.elements;
  const filtered = dataset.filters.length > 0;
  // Where elements were written to the same block repeatedly, the last one counts.
  let at = (entry.times - 1) * size;
  if (!import.meta.page && !filtered && !index.stored) {
    // Most blocks by far: no call for each of them.
    const { counts, offsets, length } = index;
    for (let i = length, k = length * rank; i < length + entry.count; i++) {
      offsets[i] = entry.offset + at;
      let bytes = size;
      for (const end = k + rank; k < end; k++) bytes *= counts[k] as number;
      at += bytes;
    }
    index.length += entry.count;
    return at;
  }
  for (let i = 0; i < entry.count; i++) {
    const k = index.length * rank;
    index.add(entry.offset + at, filtered ? entry.size : 0);
    at += boxSize(index.counts, k, rank, size);
  }
  return at;
}

/** Adds the blocks of an entry whose data the original deflated as one stream. */
function addStream(entry: RawEntry, dataset: LogDataset, index: BlockIndex, whole: number): void {
  const { rank } = index;
  const { size } = dataset.elements;
  let at = (entry.times - 1) * size;
  for (let i = 0; i < entry.count; i++) {
    const k = index.length * rank;
    index.add(entry.offset, entry.size);
    index.inStream(at, whole);
    at += boxSize(index.counts, k, rank, size);
  }
}

function* everyBlock(index: BlockIndex): Iterable<number> {
  for (let i = 0; i < index.length; i++) yield i;
}

/** Cached selections, and how large one may be in blocks times dimensions. */
const CACHED_SELECTIONS = 16;
const LARGEST_SELECTION = 2 ** 17;

interface CachedSelection {
  /** Identifies the table, without holding it in memory. */
  readonly item: TierItem;
  /** Where the selection is in the table, and how it was read. */
  readonly at: number;
  readonly rank: number;
  readonly isRecord: boolean;
  readonly starts: Float64Array;
  readonly counts: Float64Array;
}

/** Decoded blocks of selections that several entries refer to: a simulation writes hundreds of variables cut in the same few ways. */
class SelectionCache {
  readonly #cached: CachedSelection[] = [];
  #next = 0;

  /** Decodes the blocks of an entry, or copies them from the cache. */
  blocks(item: TierItem, table: OpenedTable, entry: RawEntry, sink: BlockSink, merged: MergedFit | undefined): void {
    const { rank, starts, counts, at } = sink;
    const length = entry.count * rank;
    if (merged || (entry.flags & ENTRY.reference) === 0 || length > LARGEST_SELECTION) {
      table.blocks(entry, sink, merged);
      return;
    }
    const isRecord = entry.record >= 0;
    const known = this.#cached.find(
      (one) => one.at === entry.body.at && one.item === item && one.rank === rank && one.isRecord === isRecord,
    );
    if (known) {
      starts.set(known.starts, at);
      counts.set(known.counts, at);
      // A selection may be used in other records than the one it was cached for.
      if (isRecord) for (let i = 0, k = at; i < entry.count; i++, k += rank) starts[k] = entry.record;
      return;
    }
    table.blocks(entry, sink);
    const coordinates = { starts: starts.slice(at, at + length), counts: counts.slice(at, at + length) };
    this.#cached[this.#next] = { item, at: entry.body.at, rank, isRecord, ...coordinates };
    this.#next = (this.#next + 1) % CACHED_SELECTIONS;
  }
}
