import { inflate } from '#platform';
import { boxSize } from '../../space/box.ts';
import type { Io } from '../../storage/io.ts';
import type { MergedFit } from '../format/original.ts';
import { ENTRY } from '../format/table.ts';
import { type BlockSink, type RawEntry, Table } from '../format/table-read.ts';
import type { Log } from '../log.ts';
import type { LogDataset } from '../post/dataset.ts';
import type { TierItem } from '../store.ts';
import type { LogData } from './boxes.ts';
import { BlockIndex, type Coverage } from './index.ts';
import type { WriteOrder } from './write-order.ts';

/** Bytes of tables that are kept in memory after they were read. */
const KEPT = 32 * 2 ** 20;

const NOTHING: Coverage = { ends: [] };

interface OpenTable {
  readonly table: Table;
  readonly size: number;
  /** Where the entries of each dataset are. */
  readonly entries: ReadonlyMap<number, readonly number[]>;
}

/** The tables of one state of a file. They stay in the file when others take their place. */
export interface Committed {
  readonly items: readonly TierItem[];
  /** By store, the file offset where the state ends. */
  readonly ends: readonly number[];
  /** null: the file offset alone tells what is newer. */
  readonly order: WriteOrder | null;
  /** For indexes that are complete. */
  readonly coverage: Coverage;
}

/** The metadata tables of a file, read when they are first needed. */
export class Tables {
  readonly #stores: readonly { readonly data: LogData }[];
  /** What is in the file now. */
  committed: Committed = { items: [], ends: [], order: null, coverage: { ends: [] } };
  readonly #open = new Map<TierItem, OpenTable>();
  readonly #large = new WeakMap<TierItem, WeakRef<OpenTable>>();
  /** Tables of the original's merge mode that were found to be readable. */
  readonly #decoded = new WeakSet<TierItem>();
  /** Datasets whose data the original deflated. */
  readonly #deflated = new WeakSet<LogDataset>();
  readonly #shared = new SharedSelections();
  #bytes = 0;

  constructor(stores: readonly { readonly data: LogData }[]) {
    this.#stores = stores;
  }

  *#table(item: TierItem): Io<OpenTable> {
    const known = this.#open.get(item) ?? this.#large.get(item)?.deref();
    if (known) return known;
    let { bytes } = item;
    if (!bytes) {
      bytes = new Uint8Array(item.size);
      yield* this.#data(item.store).file.readInto(bytes, item.address, 'metadata table');
    }
    const table = new Table(bytes, item.address);
    const entries = new Map<number, number[]>();
    for (const { id, at } of table.entries()) {
      const list = entries.get(id);
      if (list) list.push(at);
      else entries.set(id, [at]);
    }
    const opened = { table, size: item.size, entries };
    this.#keep(item, opened);
    return opened;
  }

  #data(place: number): LogData {
    return (this.#stores[place] as { data: LogData }).data;
  }

  /** Small tables stay; a large one is kept only as long as memory is not needed otherwise. */
  #keep(item: TierItem, opened: OpenTable): void {
    if (item.size > KEPT / 4) {
      this.#large.set(item, new WeakRef(opened));
      return;
    }
    for (const [oldest, { size }] of this.#open) {
      if (this.#bytes + item.size <= KEPT) break;
      this.#open.delete(oldest);
      this.#bytes -= size;
    }
    this.#open.set(item, opened);
    this.#bytes += item.size;
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
    const { items, ends, order } = state;
    const rank = dataset.shape.length;
    const index = new BlockIndex(rank);
    const several = this.#stores.length > 1;
    const known = this.#deflated.has(dataset);
    for (const item of items) {
      const floor = covered.ends[item.store] ?? 0;
      // A table that was there when the list was made holds nothing new. One that was merged since may hold both.
      if (item.address < floor) continue;
      const { table, entries } = yield* this.#table(item);
      if (item.merged && entries.has(dataset.id)) yield* this.#mustDecode(item, table, dataset.log);
      for (const at of entries.get(dataset.id) ?? []) {
        const entry = table.entryAt(at);
        if (entry.offset < floor) continue;
        const part = box || several ? new BlockIndex(rank, entry.count) : index;
        yield* this.#add(item, table, entry, dataset, part);
        if (part === index) continue;
        const found = box ? part.query(box.low, box.high) : everyBlock(part);
        for (const block of found) {
          index.take(part, block);
          if (several) index.inStore(item.store);
          if (order) index.wasWritten(order.of(item.store, entry.offset));
        }
      }
    }
    // Entries that came before the first that gave it away have to be looked at again.
    if (!known && this.#deflated.has(dataset)) return yield* this.index(dataset, box, state, covered);
    index.sort();
    order?.mustTell(index, dataset.path);
    index.orders = null;
    index.covered = { ends };
    return index;
  }

  *#add(item: TierItem, table: Table, entry: RawEntry, dataset: LogDataset, index: BlockIndex): Io<void> {
    const { rank, length } = index;
    index.reserve(entry.count);
    const fit = { elements: entry.size / dataset.elements.size, limits: dataset.maxShape };
    const sink = { rank, starts: index.starts, counts: index.counts, at: length * rank };
    this.#shared.blocks(item, table, entry, sink, item.merged ? fit : undefined);
    const bytes = addEntry(entry, dataset, index);
    if (dataset.filters.length > 0) table.checkSize(entry, entry.size, true);
    else if (yield* this.#isStream(item.store, entry, dataset, bytes)) {
      index.length = length;
      addStream(entry, dataset, index, bytes);
    } else table.checkSize(entry, bytes, false);
  }

  /** A table of the original's merge mode is read only if every entry of it, whoever asks, can be read in exactly one way. */
  *#mustDecode(item: TierItem, table: Table, log: Log): Io<void> {
    if (this.#decoded.has(item)) return;
    const datasets = yield* log.everyDataset();
    for (const entry of table.entries()) {
      const dataset = datasets.get(entry.id);
      if (dataset) yield* this.#add(item, table, entry, dataset, new BlockIndex(dataset.shape.length, entry.count));
    }
    this.#decoded.add(item);
  }

  /**
   * The original forgets which of its datasets are deflated: a size that is not that of the elements and a zlib header give it away.
   * Once it is known of a dataset, a stream that happens to be as long as what is in it is found by its own checksum.
   */
  *#isStream(place: number, entry: RawEntry, dataset: LogDataset, bytes: number): Io<boolean> {
    if (entry.size === bytes && !this.#deflated.has(dataset)) return false;
    if (entry.size < 2) return false;
    const [first, second] = yield* this.#data(place).file.read(entry.offset, 2, 'data of the log');
    if (first !== 0x78 || ((first << 8) | (second as number)) % 31 !== 0) return false;
    if (entry.size === bytes) return inflatesTo(yield* this.#data(place).file.read(entry.offset, bytes, 'data'), bytes);
    this.#deflated.add(dataset);
    return true;
  }

  /**
   * The index of all blocks of a dataset in a state, null if it would take more memory than allowed. The one of the present
   * state is kept by the dataset; later it only has to take in what is new.
   */
  *whole(dataset: LogDataset, state: Committed): Io<BlockIndex | null> {
    const { indexLimit } = dataset.log.options;
    if (indexLimit < Infinity) {
      const bytes = (yield* this.count(dataset, state.items)) * (16 * dataset.shape.length + 16);
      if (bytes > indexLimit) return null;
    }
    const known = dataset.index;
    if (known?.covered === state.coverage) return known;
    const covered = known?.covered ?? NOTHING;
    const isBehind = covered.ends.every((end, place) => end <= (state.ends[place] as number));
    const before = { ends: isBehind ? covered.ends : [] };
    const added = yield* this.index(dataset, null, state, before);
    if (!isBehind) return added;
    // A flush that ended meanwhile is not in it: then it serves only whoever asked.
    if (this.committed !== state || dataset.index !== known)
      return before.ends.length === 0 ? added : yield* this.index(dataset, null, state);
    if (known) for (const block of everyBlock(added)) known.take(added, block);
    const index = known ?? added;
    index.covered = state.coverage;
    dataset.index = index;
    return index;
  }

  /** How many blocks of a dataset the tables hold. */
  *count(dataset: LogDataset, items: readonly TierItem[]): Io<number> {
    let blocks = 0;
    for (const item of items) {
      const { table, entries } = yield* this.#table(item);
      for (const at of entries.get(dataset.id) ?? []) blocks += table.entryAt(at).count;
    }
    return blocks;
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
  // Of elements that were written one over the other the last one counts.
  let at = (entry.times - 1) * size;
  for (let i = 0; i < entry.count; i++) {
    const k = index.length * rank;
    index.add(entry.offset + at, filtered ? entry.size : 0);
    at += boxSize(index.counts, k, rank, size);
  }
  return at;
}

/** The same for a request that the original deflated as a whole. */
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

/** Selections that are kept, and how large one may be in blocks times dimensions. */
const KEPT = 16;
const MOST = 2 ** 17;

interface Kept {
  /** Not the table itself, which may be large and forgotten meanwhile. */
  readonly item: TierItem;
  /** Where the selection is in the table, and how it was read. */
  readonly at: number;
  readonly rank: number;
  readonly isRecord: boolean;
  readonly starts: Float64Array;
  readonly counts: Float64Array;
}

/** Blocks of selections that several entries refer to: a simulation writes hundreds of variables cut in the same few ways. */
export class SharedSelections {
  readonly #kept: Kept[] = [];
  #next = 0;

  /** Works out the blocks of an entry, as the table does. */
  blocks(item: TierItem, table: Table, entry: RawEntry, sink: BlockSink, merged: MergedFit | undefined): void {
    const { rank, starts, counts, at } = sink;
    const length = entry.count * rank;
    if (merged || (entry.flags & ENTRY.reference) === 0 || length > MOST) {
      table.blocks(entry, sink, merged);
      return;
    }
    const isRecord = entry.record >= 0;
    const known = this.#kept.find(
      (kept) => kept.at === entry.body.at && kept.item === item && kept.rank === rank && kept.isRecord === isRecord,
    );
    if (known) {
      starts.set(known.starts, at);
      counts.set(known.counts, at);
      // The same selection in another record.
      if (isRecord) for (let i = 0, k = at; i < entry.count; i++, k += rank) starts[k] = entry.record;
      return;
    }
    table.blocks(entry, sink);
    const kept = { starts: starts.slice(at, at + length), counts: counts.slice(at, at + length) };
    this.#kept[this.#next] = { item, at: entry.body.at, rank, isRecord, ...kept };
    this.#next = (this.#next + 1) % KEPT;
  }
}
