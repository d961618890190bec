import { inflate } from '#platform';
import type { Io } from '../storage/drive.ts';
import { BlockIndex, blockBytes } from './block-index.ts';
import type { LogData } from './box-read.ts';
import type { LogDataset } from './log-dataset.ts';
import { type RawEntry, Table } from './table-read.ts';
import type { TierItem } from './tiers.ts';

/** Bytes of tables that are kept in memory after they were read. */
const KEPT = 32 * 2 ** 20;

interface OpenTable {
  readonly table: Table;
  readonly size: number;
  /** Where the entries of each dataset are. */
  readonly entries: ReadonlyMap<number, readonly number[]>;
}

/** The metadata tables of a file, read when they are first needed. */
export class Tables {
  readonly #data: LogData;
  items: readonly TierItem[];
  readonly #open = new Map<TierItem, OpenTable>();
  readonly #large = new WeakMap<TierItem, WeakRef<OpenTable>>();
  /** Datasets whose data the original deflated. */
  readonly #deflated = new WeakSet<LogDataset>();
  #bytes = 0;

  constructor(data: LogData, items: readonly TierItem[]) {
    this.#data = data;
    this.items = items;
  }

  *#table(item: TierItem): Io<OpenTable> {
    const known = this.#open.get(item) ?? this.#large.get(item)?.deref();
    if (known) return known;
    let { bytes } = item;
    if (!bytes) {
      bytes = new Uint8Array(item.size);
      yield* this.#data.file.readInto(bytes, item.address, 'metadata table');
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
   * The committed blocks of a dataset: all of them, or only those that meet the box [low, high), one entry at a time.
   * `items` are the tables as they were when somebody asked: they stay in the file when others take their place.
   */
  *index(
    dataset: LogDataset,
    box: { low: Float64Array; high: Float64Array } | null,
    items: readonly TierItem[],
  ): Io<BlockIndex> {
    const rank = dataset.shape.length;
    const index = new BlockIndex(rank);
    const known = this.#deflated.has(dataset);
    for (const item of items) {
      const { table, entries } = yield* this.#table(item);
      for (const at of entries.get(dataset.id) ?? []) {
        const entry = table.entryAt(at);
        const part = box ? new BlockIndex(rank, entry.count) : index;
        yield* this.#add(table, entry, dataset, part, item.merged === true);
        if (!box) continue;
        for (const block of part.query(box.low, box.high)) copyBlock(part, block, index);
      }
    }
    // Entries that came before the first that gave it away have to be looked at again.
    if (!known && this.#deflated.has(dataset)) return yield* this.index(dataset, box, items);
    index.sort();
    return index;
  }

  *#add(table: Table, entry: RawEntry, dataset: LogDataset, index: BlockIndex, merged: boolean): Io<void> {
    const { rank, length } = index;
    index.reserve(entry.count);
    const fit = { elements: entry.size / dataset.elements.size, limits: dataset.maxShape };
    const sink = { rank, starts: index.starts, counts: index.counts, at: length * rank };
    table.blocks(entry, sink, merged ? fit : undefined);
    const bytes = addEntry(entry, dataset, index);
    if (dataset.filters.length > 0) table.checkSize(entry, entry.size, true);
    else if (yield* this.#isStream(entry, dataset, bytes)) {
      index.length = length;
      addStream(entry, dataset, index, bytes);
    } else table.checkSize(entry, bytes, false);
  }

  /**
   * The original forgets which of its datasets are deflated: a size that is not that of the elements and a zlib header give it away.
   * Once it is known of a dataset, a stream that happens to be as long as what is in it is found by its own checksum.
   */
  *#isStream(entry: RawEntry, dataset: LogDataset, bytes: number): Io<boolean> {
    if (entry.size === bytes && !this.#deflated.has(dataset)) return false;
    if (entry.size < 2) return false;
    const [first, second] = yield* this.#data.file.read(entry.offset, 2, 'data of the log');
    if (first !== 0x78 || ((first << 8) | (second as number)) % 31 !== 0) return false;
    if (entry.size === bytes) return inflatesTo(yield* this.#data.file.read(entry.offset, bytes, 'data'), bytes);
    this.#deflated.add(dataset);
    return true;
  }

  /** The index of all blocks of a dataset, which it keeps from then on; null if it would take more memory than allowed. */
  *whole(dataset: LogDataset, items: readonly TierItem[]): Io<BlockIndex | null> {
    const bytes = (yield* this.count(dataset, items)) * (16 * dataset.shape.length + 16);
    if (bytes > dataset.log.options.indexLimit) return null;
    const index = yield* this.index(dataset, null, items);
    // A flush that ended meanwhile is not in it: then it serves only whoever asked.
    if (this.items === items && !dataset.index) dataset.index = index;
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
    at += blockBytes(index.counts, k, rank, size);
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
    at += blockBytes(index.counts, k, rank, size);
  }
}

function copyBlock(from: BlockIndex, block: number, to: BlockIndex): void {
  const { rank } = from;
  to.reserve(1);
  for (let d = 0; d < rank; d++) {
    to.starts[to.length * rank + d] = from.starts[block * rank + d] as number;
    to.counts[to.length * rank + d] = from.counts[block * rank + d] as number;
  }
  to.add(from.offsets[block] as number, from.stored ? (from.stored[block] as number) : 0);
  if (from.inner && from.whole) to.inStream(from.inner[block] as number, from.whole[block] as number);
}
