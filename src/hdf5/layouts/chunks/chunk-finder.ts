// Finding some chunks of a dataset in its chunk index. Of a large index only the nodes and pages on the way to those chunks are read;
// those that were used lately stay in memory, decoded.

import { formatError } from '../../../base/errors.ts';
import { gridOf } from '../../../space/grid.ts';
import { sizeOf } from '../../../space/shape.ts';
import type { Io } from '../../../storage/io.ts';
import { UNDEFINED } from '../../format/cursor.ts';
import type { FileBytes } from '../../format/file-bytes.ts';
import type { ChunkIndex } from '../../messages/layout.ts';
import { readBtree1Node, readTreeHeader, readTreeNode, TreeShape } from '../../read/btree.ts';
import { type ChunkGrid, chunkBytes, fixedCounts, readChunkIndex, type StoredChunk } from './chunk-index.ts';
import { ExtensibleArray } from './extensible-array.ts';
import { type ElementRun, FixedArray, readRun } from './fixed-array.ts';

/** Chunks that are wanted, by their numbers in the grid of the shape, ascending; and what the index says of them. */
export class WantedChunks {
  readonly numbers: Float64Array;
  /** Flat: the cell of chunk i begins at `i * rank`. */
  readonly cells: Float64Array;
  /** UNDEFINED where there is no chunk. */
  readonly addresses: Float64Array;
  readonly sizes: Float64Array;
  readonly masks: Uint32Array;

  constructor(numbers: Float64Array, grid: readonly number[]) {
    const { length } = numbers;
    const rank = grid.length;
    this.numbers = numbers;
    this.cells = new Float64Array(length * rank);
    this.addresses = new Float64Array(length).fill(UNDEFINED);
    this.sizes = new Float64Array(length);
    this.masks = new Uint32Array(length);
    for (let i = 0; i < length; i++) {
      let rest = numbers[i] as number;
      for (let d = rank - 1; d >= 0; d--) {
        const count = grid[d] as number;
        const above = Math.floor(rest / count);
        this.cells[i * rank + d] = rest - above * count;
        rest = above;
      }
    }
  }

  set(i: number, address: number, size: number, mask: number): void {
    this.addresses[i] = address;
    this.sizes[i] = size;
    this.masks[i] = mask;
  }
}

/** Finds chunks in an index. */
export interface ChunkFinder {
  find(wanted: WantedChunks): Io<void>;
}

/** Chunks in an index that is read whole: on a disk, and over a network, where nodes cost a request each. */
const SMALL = 4096;
const SMALL_REMOTE = 32;

/** A finder for the index of a dataset; null if it has no chunks. Indexes of up to `small` chunks are read whole. */
export function chunkFinder(
  file: FileBytes,
  index: ChunkIndex,
  grid: ChunkGrid,
  shape: readonly number[],
  small = file.remote ? SMALL_REMOTE : SMALL,
): ChunkFinder | null {
  if (index.address === UNDEFINED) return null;
  const now = gridOf(shape, grid.chunk);
  if (index.kind === 'implicit') return new ImplicitFinder(file, index.address, grid);
  if (index.kind === 'single' || sizeOf(now) <= small) return new WholeFinder(file, index, grid, now);
  switch (index.kind) {
    case 'fixedArray':
    case 'extensibleArray':
      return new ArrayFinder(file, index, grid);
    default:
      return new TreeFinder(file, index, grid);
  }
}

// ------------------------------------------------------------------ small indexes

/** Reads all of an index at the first call. */
class WholeFinder implements ChunkFinder {
  readonly #read: () => Io<StoredChunk[]>;
  readonly #grid: readonly number[];
  #chunks: readonly StoredChunk[] | null = null;
  #numbers = new Float64Array(0);

  constructor(file: FileBytes, index: ChunkIndex, grid: ChunkGrid, now: readonly number[]) {
    this.#read = () => readChunkIndex(file, index, grid);
    this.#grid = now;
  }

  *find(wanted: WantedChunks): Io<void> {
    const chunks = this.#chunks ?? (yield* this.#load());
    const known = this.#numbers;
    const { numbers } = wanted;
    let low = 0;
    for (let i = 0; i < numbers.length; i++) {
      const number = numbers[i] as number;
      let high = known.length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if ((known[middle] as number) < number) low = middle + 1;
        else high = middle;
      }
      if (known[low] !== number) continue;
      const { address, size, mask } = chunks[low] as StoredChunk;
      wanted.set(i, address, size, mask);
    }
  }

  *#load(): Io<readonly StoredChunk[]> {
    const grid = this.#grid;
    const numberOf = ({ cell }: StoredChunk): number => cell.reduce((sum, c, d) => sum * (grid[d] as number) + c, 0);
    // Chunks beyond the shape are left over from a larger one.
    const inside = (yield* this.#read()).filter(({ cell }) => cell.every((c, d) => c < (grid[d] as number)));
    inside.sort((a, b) => numberOf(a) - numberOf(b));
    this.#numbers = Float64Array.from(inside, numberOf);
    this.#chunks = inside;
    return inside;
  }
}

/** All chunks of the maximum shape lie one after the other, in row-major order. */
class ImplicitFinder implements ChunkFinder {
  readonly #address: number;
  readonly #size: number;
  readonly #counts: readonly number[];

  constructor(file: FileBytes, address: number, grid: ChunkGrid) {
    this.#address = address;
    this.#size = chunkBytes(grid);
    this.#counts = fixedCounts(grid);
    file.mustHold(address, sizeOf(this.#counts) * this.#size, 'chunks');
  }

  // biome-ignore lint/correctness/useYield: other indexes read from the file
  *find(wanted: WantedChunks): Io<void> {
    for (let i = 0; i < wanted.numbers.length; i++)
      wanted.set(i, this.#address + numberIn(this.#counts, wanted.cells, i) * this.#size, this.#size, 0);
  }
}

/** The row-major number of cell `i` of a flat list. */
function numberIn(counts: readonly number[], cells: Float64Array, i: number): number {
  let number = 0;
  for (let d = 0, k = i * counts.length; d < counts.length; d++, k++)
    number = number * (counts[d] as number) + (cells[k] as number);
  return number;
}

// ------------------------------------------------------------------ parts that are kept

/** Chunks in the parts of an index that stay in memory. */
const KEPT = 2 ** 18;
/** Parts that are read at once. */
const TOGETHER = 64;

/** Decoded parts of an index, by address. The oldest go when there are too many chunks in them. */
class Parts<T extends { readonly count: number }> {
  readonly #parts = new Map<number, T>();
  #chunks = 0;

  get(address: number): T | undefined {
    return this.#parts.get(address);
  }

  add(address: number, part: T): void {
    this.#chunks += part.count - (this.#parts.get(address)?.count ?? 0);
    this.#parts.set(address, part);
    for (const [oldest, { count }] of this.#parts) {
      if (this.#chunks <= KEPT || oldest === address) break;
      this.#parts.delete(oldest);
      this.#chunks -= count;
    }
  }
}

/** Chunks in a part of an index, as flat lists. */
class ChunkEntries {
  readonly count: number;
  readonly addresses: Float64Array;
  readonly sizes: Float64Array;
  readonly masks: Uint32Array;

  constructor(count: number) {
    this.count = count;
    this.addresses = new Float64Array(count);
    this.sizes = new Float64Array(count);
    this.masks = new Uint32Array(count);
  }

  put(i: number, address: number, size: number, mask: number): void {
    this.addresses[i] = address;
    this.sizes[i] = size;
    this.masks[i] = mask;
  }

  copy(from: number, wanted: WantedChunks, to: number): void {
    wanted.set(to, this.addresses[from] as number, this.sizes[from] as number, this.masks[from] as number);
  }
}

// ------------------------------------------------------------------ arrays

/** Fixed and extensible arrays: the place of a chunk follows from its number. */
class ArrayFinder implements ChunkFinder {
  readonly #file: FileBytes;
  readonly #address: number;
  readonly #grid: ChunkGrid;
  readonly #isFixed: boolean;
  /** Dimensions in the order in which chunks are numbered, and the counts of all but the first. */
  readonly #order: readonly number[];
  readonly #counts: readonly number[];
  #array: FixedArray | ExtensibleArray | null = null;
  readonly #parts = new Parts<ChunkEntries>();

  constructor(file: FileBytes, { kind, address }: ChunkIndex, grid: ChunkGrid) {
    this.#file = file;
    this.#address = address;
    this.#grid = grid;
    this.#isFixed = kind === 'fixedArray';
    const dimensions = grid.chunk.map((_, d) => d);
    const unlimited = grid.maxShape.indexOf(null);
    if (!this.#isFixed && unlimited < 0)
      throw formatError('an extensible array of chunks, although no dimension is unlimited');
    // Extensible arrays number chunks as if the unlimited dimension came first.
    this.#order = this.#isFixed ? dimensions : [unlimited, ...dimensions.filter((d) => d !== unlimited)];
    const slow = this.#order[0] as number;
    const others = { maxShape: grid.maxShape.map((n, d) => (d === slow && !this.#isFixed ? 0 : n)), chunk: grid.chunk };
    this.#counts = fixedCounts(others);
  }

  *find(wanted: WantedChunks): Io<void> {
    const array = this.#array ?? (yield* this.#open());
    const rank = this.#counts.length;
    const elements = new Float64Array(wanted.numbers.length);
    for (let i = 0; i < elements.length; i++) {
      let number = 0;
      for (const d of this.#order)
        number = number * (this.#counts[d] as number) + (wanted.cells[i * rank + d] as number);
      elements[i] = number;
    }
    const runs = yield* array.runsOf(this.#file, elements);
    for (let i = 0; i < runs.length; i += TOGETHER) {
      const some = runs.slice(i, i + TOGETHER);
      const parts = yield* this.#load(array.entry, some);
      some.forEach((run, k) => {
        const part = parts[k];
        if (part) part.copy((elements[i + k] as number) - (run as ElementRun).first, wanted, i + k);
      });
    }
  }

  *#open(): Io<FixedArray | ExtensibleArray> {
    const { filtered } = this.#grid;
    this.#array = this.#isFixed
      ? yield* FixedArray.open(this.#file, this.#address, filtered, sizeOf(this.#counts))
      : yield* ExtensibleArray.open(this.#file, this.#address, filtered);
    return this.#array;
  }

  /** The parts that hold some elements; null where there are none. */
  *#load(entry: number, runs: readonly (ElementRun | null)[]): Io<(ChunkEntries | null)[]> {
    const missing = runs.filter((run) => run !== null && !this.#parts.get(run.address)) as ElementRun[];
    const spans = missing.map(({ address, prefix, count }) => ({ address, length: prefix + count * entry + 4 }));
    yield* this.#file.ahead(spans);
    const parts: (ChunkEntries | null)[] = [];
    for (const run of runs) parts.push(run && (this.#parts.get(run.address) ?? (yield* this.#decode(entry, run))));
    return parts;
  }

  *#decode(entry: number, run: ElementRun): Io<ChunkEntries> {
    const { filtered } = this.#grid;
    const { addressSize } = this.#file;
    const cursor = yield* readRun(this.#file, run, entry);
    const part = new ChunkEntries(run.count);
    const whole = chunkBytes(this.#grid);
    for (let i = 0; i < run.count; i++) {
      const next = cursor.at + entry;
      const address = cursor.address(addressSize);
      if (address === UNDEFINED || !filtered) part.put(i, address, whole, 0);
      else part.put(i, address, cursor.uint(entry - addressSize - 4), cursor.u32());
      cursor.at = next;
    }
    this.#parts.add(run.address, part);
    return part;
  }
}

// ------------------------------------------------------------------ trees

/** A node of a tree. Children of version 1 begin with the chunk of the same place; in version 2, chunks lie between children. */
interface TreeNode {
  readonly count: number;
  /** Flat: cells of chunks, or of the first chunks of children. */
  readonly cells: Float64Array;
  /** null in nodes of version 1 that have children. */
  readonly chunks: ChunkEntries | null;
  readonly children: readonly NodePlace[] | null;
}

interface NodePlace {
  readonly address: number;
  /** 0 for leaves; -1 for the root of a tree of version 1, which says it itself. */
  readonly level: number;
  /** Records in it, in trees of version 2. */
  readonly records: number;
}

/** Nodes of version 1 do not say how long they are before they are read; most are shorter. */
const NODE_BYTES = 8192;

class TreeFinder implements ChunkFinder {
  readonly #file: FileBytes;
  readonly #address: number;
  readonly #grid: ChunkGrid;
  readonly #isOld: boolean;
  #tree: TreeShape | null = null;
  #root: NodePlace | null = null;
  readonly #nodes = new Parts<TreeNode>();

  constructor(file: FileBytes, { kind, address }: ChunkIndex, grid: ChunkGrid) {
    this.#file = file;
    this.#address = address;
    this.#grid = grid;
    this.#isOld = kind === 'btree1';
  }

  /** Goes down as far as nodes are in memory, then level by level, so that the nodes of a level are read together. */
  *find(wanted: WantedChunks): Io<void> {
    const root = this.#root ?? (yield* this.#open());
    if (root.address === UNDEFINED) return;
    const left: number[] = [];
    const places: NodePlace[] = [];
    for (let i = 0; i < wanted.numbers.length; i++) {
      const place = this.#descend(root, wanted, i);
      if (!place) continue;
      left.push(i);
      places.push(place);
    }
    while (left.length > 0) {
      const nodes = yield* this.#load(places);
      let kept = 0;
      for (let k = 0; k < places.length; k++) {
        const i = left[k] as number;
        const child = this.#step(nodes.get(places[k] as NodePlace) as TreeNode, wanted, i);
        const place = child && this.#descend(child, wanted, i);
        if (!place) continue;
        left[kept] = i;
        places[kept++] = place;
      }
      left.length = places.length = kept;
    }
  }

  /** Looks for a chunk from a node on. Gives the first node on the way that is not in memory; null at the end of the way. */
  #descend(from: NodePlace, wanted: WantedChunks, i: number): NodePlace | null {
    for (let place: NodePlace | null = from; place; ) {
      const node = this.#known(place);
      if (!node) return place;
      place = this.#step(node, wanted, i);
    }
    return null;
  }

  *#open(): Io<NodePlace> {
    if (this.#isOld) this.#root = { address: this.#address, level: -1, records: 0 };
    else {
      const header = yield* readTreeHeader(this.#file, this.#address, [this.#grid.filtered ? 11 : 10]);
      this.#tree = new TreeShape(header, this.#file.addressSize);
      const { root, rootCount, depth } = header;
      this.#root = { address: root, level: depth, records: rootCount };
    }
    return this.#root;
  }

  /** Takes a chunk out of a node, or gives the child that may have it; null if none has. */
  #step({ count, cells, chunks, children }: TreeNode, wanted: WantedChunks, i: number): NodePlace | null {
    const rank = this.#grid.chunk.length;
    // The last cell that is not behind the wanted one.
    let low = 0;
    let high = count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareCells(cells, middle, wanted.cells, i, rank) <= 0) low = middle + 1;
      else high = middle;
    }
    if (chunks && low > 0 && compareCells(cells, low - 1, wanted.cells, i, rank) === 0) {
      chunks.copy(low - 1, wanted, i);
      return null;
    }
    const child = children?.[this.#isOld ? low - 1 : low];
    return child && child.address !== UNDEFINED ? child : null;
  }

  /** Nodes that are not in memory, read together where that is better. */
  *#load(places: readonly NodePlace[]): Io<Map<NodePlace, TreeNode>> {
    const nodes = new Map<NodePlace, TreeNode>();
    const distinct = [...new Set(places)];
    const length = this.#tree?.nodeSize ?? NODE_BYTES;
    for (let i = 0; i < distinct.length; i += TOGETHER) {
      const some = distinct.slice(i, i + TOGETHER);
      yield* this.#file.ahead(some.map(({ address }) => ({ address, length })));
      for (const place of some) nodes.set(place, yield* this.#decode(place));
    }
    return nodes;
  }

  /** A node that is in memory. A damaged tree may lead to it from places where it would mean something else. */
  #known({ address, level, records }: NodePlace): TreeNode | undefined {
    const node = this.#nodes.get(address);
    const isSame = node && (level < 0 || (node.children?.[0]?.level ?? -1) === level - 1);
    return isSame && (this.#isOld || node.count === records) ? node : undefined;
  }

  *#decode(place: NodePlace): Io<TreeNode> {
    const node = this.#isOld ? yield* this.#decodeOld(place) : yield* this.#decodeNew(place);
    this.#nodes.add(place.address, node);
    return node;
  }

  *#decodeOld({ address, level: expected }: NodePlace): Io<TreeNode> {
    const { chunk } = this.#grid;
    const { addressSize } = this.#file;
    const rank = chunk.length;
    const { level, count, body } = yield* readBtree1Node(this.#file, address, 1, 8 + 8 * (rank + 1), expected);
    const cells = new Float64Array(count * rank);
    const chunks = level === 0 ? new ChunkEntries(count) : null;
    const children: NodePlace[] | null = chunks ? null : [];
    for (let i = 0; i < count; i++) {
      const stored = body.u32();
      const mask = body.u32();
      for (let d = 0; d < rank; d++) {
        const cell = body.u64() / (chunk[d] as number);
        if (!Number.isInteger(cell)) body.fail('a chunk that is not on the grid');
        cells[i * rank + d] = cell;
      }
      body.skip(8);
      const child = body.address(addressSize);
      chunks?.put(i, child, stored, mask);
      children?.push({ address: child, level: level - 1, records: 0 });
    }
    return { count, cells, chunks, children };
  }

  *#decodeNew({ address, level, records: count }: NodePlace): Io<TreeNode> {
    const tree = this.#tree as TreeShape;
    const { filtered, chunk } = this.#grid;
    const { addressSize } = this.#file;
    const rank = chunk.length;
    const whole = chunkBytes(this.#grid);
    const { cursor: node, from, children: places } = yield* readTreeNode(this.#file, tree, address, count, level);
    node.at = from;
    const cells = new Float64Array(count * rank);
    const chunks = new ChunkEntries(count);
    const sizeBytes = tree.recordSize - addressSize - 4 - 8 * rank;
    if (sizeBytes + (filtered ? 0 : 4) < (filtered ? 1 : 0)) node.fail(`chunk records of ${tree.recordSize} bytes`);
    for (let i = 0; i < count; i++) {
      const next = node.at + tree.recordSize;
      const at = node.address(addressSize);
      if (filtered) chunks.put(i, at, node.uint(sizeBytes), node.u32());
      else chunks.put(i, at, whole, 0);
      for (let d = 0; d < rank; d++) cells[i * rank + d] = node.u64();
      node.at = next;
    }
    const children =
      level > 0 ? places.map(([child, records]) => ({ address: child, level: level - 1, records })) : null;
    return { count, cells, chunks, children };
  }
}

/** Compares cell `i` of `a` with cell `k` of `b` in row-major order. */
function compareCells(a: Float64Array, i: number, b: Float64Array, k: number, rank: number): number {
  for (let d = 0, x = i * rank, y = k * rank; d < rank; d++, x++, y++) {
    const difference = (a[x] as number) - (b[y] as number);
    if (difference !== 0) return difference;
  }
  return 0;
}
