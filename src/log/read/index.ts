import { boxSize, overlaps } from '../../space/box.ts';
import { NumberList, PackedTree } from './rtree.ts';

/** Up to this many blocks a query scans the list instead of a tree. */
const SCANNED_BLOCKS = 512;
/** A long list is scanned for its first query: one read of a large file should not pay for a tree. */
const SCANNED_QUERIES = 1;

/** By store, the file offset up to which an index has everything that was committed. All complete indexes share one object. */
export interface Coverage {
  ends: readonly number[];
}

/**
 * All committed blocks of a dataset in the order in which they were written: later ones hide earlier ones. Flat lists that only
 * grow, with trees over their older parts; a flush appends to the lists, and trees are merged as they grow.
 */
export class BlockIndex {
  readonly rank: number;
  starts: Float64Array;
  counts: Float64Array;
  /** File offset of each block's data; of the stored stream for filtered ones. */
  offsets: Float64Array;
  /** Stored size of filtered blocks, 0 for plain ones; null while all are plain. */
  stored: Float64Array | null = null;
  /** For several blocks in one filtered stream (the original's): where a block begins in it, and its unfiltered size. */
  inner: Float64Array | null = null;
  whole: Float64Array | null = null;
  /** The store that holds each block; null while there is one store only. */
  stores: Float64Array | null = null;
  /** When each block was written (see WriteOrder), only until the list is sorted. */
  orders: Float64Array | null = null;
  covered: Coverage = { ends: [] };
  length = 0;
  #trees: PackedTree[] = [];
  #queries = 0;

  constructor(rank: number, capacity = 16) {
    this.rank = rank;
    this.starts = new Float64Array(capacity * rank);
    this.counts = new Float64Array(capacity * rank);
    this.offsets = new Float64Array(capacity);
  }

  /** Makes room for `blocks` more; large lists grow by a quarter, to waste little memory. */
  reserve(blocks: number): void {
    const needed = this.length + blocks;
    if (needed <= this.offsets.length) return;
    const size = Math.max(
      needed,
      this.offsets.length < 65_536 ? this.offsets.length * 2 : Math.ceil(this.offsets.length * 1.25),
    );
    // A tree keeps the lists it was built on, in which its blocks stay unchanged.
    this.#replace((list, width) => grown(list, size * width));
  }

  /** Puts another in the place of each list, which has `width` numbers for a block. */
  #replace(by: (list: Float64Array, width: number) => Float64Array): void {
    this.starts = by(this.starts, this.rank);
    this.counts = by(this.counts, this.rank);
    this.offsets = by(this.offsets, 1);
    if (this.stored) this.stored = by(this.stored, 1);
    if (this.inner) this.inner = by(this.inner, 1);
    if (this.whole) this.whole = by(this.whole, 1);
    if (this.orders) this.orders = by(this.orders, 1);
    if (this.stores) this.stores = by(this.stores, 1);
  }

  /** Adds block number `length`, whose start and count are in the lists already. */
  add(offset: number, stored: number): void {
    if (stored > 0 && !this.stored) this.stored = new Float64Array(this.offsets.length);
    if (this.stored) this.stored[this.length] = stored;
    this.offsets[this.length++] = offset;
  }

  /** Adds blocks whose data of elements of `size` bytes lies one after the other from a file offset on, each stored as add() says. */
  addRun(
    { rank, starts, counts, from, to }: Pick<BlockIndex, 'rank' | 'starts' | 'counts'> & { from: number; to: number },
    offset: number,
    stored: number,
    size: number,
  ): void {
    this.reserve(to - from);
    this.starts.set(starts.subarray(from * rank, to * rank), this.length * rank);
    this.counts.set(counts.subarray(from * rank, to * rank), this.length * rank);
    for (let i = from, at = offset; i < to; i++) {
      this.add(at, stored);
      at += boxSize(counts, i * rank, rank, size);
    }
  }

  /** The block added last begins at byte `at` of a filtered stream that inflates to `whole` bytes. */
  inStream(at: number, whole: number): void {
    this.inner ??= new Float64Array(this.offsets.length);
    this.whole ??= new Float64Array(this.offsets.length);
    this.inner[this.length - 1] = at;
    this.whole[this.length - 1] = whole;
  }

  /** The block added last is in store number `store`. */
  inStore(store: number): void {
    this.stores ??= new Float64Array(this.offsets.length);
    this.stores[this.length - 1] = store;
  }

  /** The block added last has this place in the order of writing. */
  wasWritten(order: number): void {
    this.orders ??= new Float64Array(this.offsets.length);
    this.orders[this.length - 1] = order;
  }

  /** Sorts the blocks by the order of writing where it is known, then by file offset. */
  sort(): void {
    const { offsets, orders, length } = this;
    const compare = (a: number, b: number): number =>
      (orders ? (orders[a] as number) - (orders[b] as number) : 0) || (offsets[a] as number) - (offsets[b] as number);
    let next = 1;
    if (import.meta.page || orders) while (next < length && compare(next - 1, next) <= 0) next++;
    // Most lists by far: no call for each of a million blocks.
    else while (next < length && (offsets[next - 1] as number) <= (offsets[next] as number)) next++;
    if (next >= length) return;
    const order = Array.from({ length }, (_, i) => i).sort((a, b) => compare(a, b) || a - b);
    this.#replace((list, width) => permuted(list, order, width));
    this.#trees = [];
  }

  /** Adds block `i` of another list. */
  take(from: BlockIndex, i: number): void {
    const { rank } = this;
    this.reserve(1);
    for (let d = 0; d < rank; d++) {
      this.starts[this.length * rank + d] = from.starts[i * rank + d] as number;
      this.counts[this.length * rank + d] = from.counts[i * rank + d] as number;
    }
    this.add(from.offsets[i] as number, from.stored ? (from.stored[i] as number) : 0);
    if (from.inner && from.whole) this.inStream(from.inner[i] as number, from.whole[i] as number);
    if (from.stores) this.inStore(from.stores[i] as number);
    if (from.orders) this.wasWritten(from.orders[i] as number);
  }

  /** Numbers of the first `limit` blocks that share an element with the box [low, high), ascending. */
  query(low: Float64Array, high: Float64Array, limit = this.length): Uint32Array {
    const found = new NumberList();
    this.#prepare();
    let from = 0;
    for (const tree of this.#trees) {
      tree.query(low, high, found);
      from = tree.to;
    }
    const { starts, counts, rank } = this;
    for (let i = from; i < this.length; i++) if (overlaps(starts, counts, i * rank, rank, low, high)) found.push(i);
    const all = found.sorted();
    let end = all.length;
    while (end > 0 && (all[end - 1] as number) >= limit) end--;
    return all.subarray(0, end);
  }

  /** Builds a tree over blocks that have none, once they are many and were queried often. */
  #prepare(): void {
    this.#queries++;
    const covered = this.#trees.length > 0 ? (this.#trees[this.#trees.length - 1] as PackedTree).to : 0;
    const loose = this.length - covered;
    if (loose <= SCANNED_BLOCKS || this.#queries <= SCANNED_QUERIES || this.rank === 0) return;
    let from = covered;
    // A tree is merged with those before it that are not more than twice as large: their number stays logarithmic.
    while (this.#trees.length > 0) {
      const last = this.#trees[this.#trees.length - 1] as PackedTree;
      if (last.to - last.from > 2 * (this.length - from)) break;
      from = last.from;
      this.#trees.pop();
    }
    this.#trees.push(new PackedTree(this, from, this.length));
  }

  get bytes(): number {
    const lists =
      this.starts.byteLength + this.counts.byteLength + this.offsets.byteLength + (this.stored?.byteLength ?? 0);
    return this.#trees.reduce((sum, tree) => sum + tree.bytes, lists);
  }
}

function grown(list: Float64Array, size: number): Float64Array {
  const larger = new Float64Array(size);
  larger.set(list);
  return larger;
}

function permuted(list: Float64Array, order: readonly number[], width: number): Float64Array {
  const out = new Float64Array(list.length);
  order.forEach((from, to) => {
    for (let d = 0; d < width; d++) out[to * width + d] = list[from * width + d] as number;
  });
  return out;
}
