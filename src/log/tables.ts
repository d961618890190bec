import type { Io } from '../storage/drive.ts';
import { BlockIndex } from './block-index.ts';
import type { LogData } from './box-read.ts';
import type { LogDataset } from './log-dataset.ts';
import { Table } from './table-read.ts';
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
    for (const item of items) {
      const { table, entries } = yield* this.#table(item);
      for (const at of entries.get(dataset.id) ?? []) {
        const entry = table.entryAt(at);
        const part = box ? new BlockIndex(rank, entry.count) : index;
        addEntry(table, entry, dataset, part);
        if (!box) continue;
        for (const block of part.query(box.low, box.high)) copyBlock(part, block, index);
      }
    }
    index.sort();
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

function addEntry(table: Table, entry: ReturnType<Table['entryAt']>, dataset: LogDataset, index: BlockIndex): void {
  const { rank } = index;
  index.reserve(entry.count);
  const first = index.length;
  table.blocks(entry, { rank, starts: index.starts, counts: index.counts, at: first * rank });
  const filtered = dataset.filters.length > 0;
  let offset = entry.offset;
  for (let i = 0; i < entry.count; i++) {
    let volume = dataset.elements.size;
    for (let d = 0; d < rank; d++) volume *= index.counts[(first + i) * rank + d] as number;
    index.add(offset, filtered ? entry.size : 0);
    offset += volume;
  }
  table.checkSize(entry, filtered ? entry.size : offset - entry.offset, filtered);
}

function copyBlock(from: BlockIndex, block: number, to: BlockIndex): void {
  const { rank } = from;
  to.reserve(1);
  for (let d = 0; d < rank; d++) {
    to.starts[to.length * rank + d] = from.starts[block * rank + d] as number;
    to.counts[to.length * rank + d] = from.counts[block * rank + d] as number;
  }
  to.add(from.offsets[block] as number, from.stored ? (from.stored[block] as number) : 0);
}
