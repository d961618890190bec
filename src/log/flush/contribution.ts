import { PlacedHeap } from '../../hdf5/format/pending-heap.ts';
import { boxSize, halves } from '../../space/box.ts';
import { fittingChunks } from '../../space/chunk-shape.ts';
import { type EntryBlocks, MOST_DATA_BYTES } from '../format/table.ts';
import { mostBlocks, newTable, type TableBuilder } from '../format/table-write.ts';
import type { Log } from '../log.ts';
import { Arena } from '../post/arena.ts';
import type { LogDataset } from '../post/dataset.ts';
import type { DatasetStage, Stage } from '../post/stage.ts';
import { BlockFilter, isWorthCutting } from './filtered-pieces.ts';
import { LogParts } from './numbered.ts';
import type { Addition } from './store-commit.ts';

/** Pieces are copies, in memory until the flush has ended. */
const MOST_CUT = 2 ** 28;

/** Blocks of a dataset that extend its index in memory once they are committed. */
interface IndexedBlocks {
  readonly dataset: LogDataset;
  readonly blocks: EntryBlocks;
  readonly offset: number;
  readonly stored: number;
}

/** A buffer lent with `copy: false`: the dataset it was posted to, and its length then. */
export interface Lent {
  readonly path: string;
  readonly size: number;
}

/** The parts of all stages, datasets in the order of their first post, each dataset's posts in theirs. */
function inOrder(stages: readonly Stage[]): Iterable<DatasetStage> {
  const [only] = stages;
  if (stages.length === 1 && only) return only.datasets;
  const byDataset = new Map<LogDataset, DatasetStage[]>();
  for (const stage of stages) {
    for (const part of stage.datasets) {
      const list = byDataset.get(part.dataset);
      if (list) list.push(part);
      else byDataset.set(part.dataset, [part]);
    }
  }
  const lists = [...byDataset.values()];
  if (import.meta.page) return lists.flat();
  const [first] = lists[0] ?? [];
  if (first?.dataset.log.layout?.scope !== 'group') return lists.flat();
  // What goes into the same log lies together.
  const byLog = new Map<number, DatasetStage[]>();
  for (const list of lists) {
    const { logNumber } = (list[0] as DatasetStage).dataset;
    byLog.set(logNumber, [...(byLog.get(logNumber) ?? []), ...list]);
  }
  return [...byLog.values()].flat();
}

/** Bytes that lie together in the file, and the section of a table that is summed with them. */
export interface Contributed {
  readonly data: readonly Uint8Array[];
  readonly offset: number;
  readonly size: number;
  readonly lent: ReadonlyMap<Uint8Array, Lent>;
  readonly section: Section | null;
}

/** A rank's section of a table. */
interface Section {
  readonly bytes: Uint8Array;
  readonly offset: number;
  /** Rank 0 gets it and writes it, with those of the others. */
  readonly isSent: boolean;
}

/** What this rank adds to a flush: the posted data, one block after the other, and the section of the table that describes it. */
export class Contribution implements Contributed {
  readonly #log: Log;
  /** Of numbered logs: of the one that data is being laid out for. */
  table: TableBuilder;
  /** null: the file has one log for all datasets. */
  readonly numbered: LogParts | null;
  readonly data: Uint8Array[] = [];
  readonly indexed: IndexedBlocks[] = [];
  /** All blocks by dataset, if somebody wants them. */
  readonly collected = new Map<LogDataset, IndexedBlocks[]>();
  collects = false;
  /** Shapes of datasets when the flush was asked for, where they may have changed since. */
  shapes: ReadonlyMap<LogDataset, readonly number[]> | null = null;
  readonly lent = new Map<Uint8Array, Lent>();
  /** What filters made of posted data, and elements with their ids in the file: held besides the data until the flush has ended. */
  readonly filtered: Arena;
  /** What elements point to; null if none does. Its collections come before the data, of several ranks before that of all. */
  heap: { readonly placed: PlacedHeap; readonly offset: number } | null = null;
  /** Bytes of the heaps of all ranks. */
  heapsSize = 0;
  size = 0;
  blocks = 0;
  /** File offset of the first byte of data; of several ranks each learns its own after its data is laid out. */
  offset: number;
  /** Of several ranks: this rank's section of the table. */
  section: Section | null = null;

  constructor(log: Log, offset: number) {
    this.#log = log;
    this.offset = offset;
    this.table = newTable(log.options.table);
    this.numbered = import.meta.page ? null : log.layout && new LogParts(log.options.table);
    this.filtered = new Arena(log.pool);
  }

  /** Puts the heaps of the stages at a file offset: before anything is added, because elements hold the ids. `base` is that of addresses. */
  place(stages: readonly Stage[], offset: number, base: number): void {
    const { own, pointers, stores } = this.#log;
    const heaps = stages.flatMap(({ heap }) => heap ?? []);
    // A read puts elements of several subfiles together, and must find the heap of each.
    const tag = stores.length > 1 ? own.index : 0;
    const placed = new PlacedHeap(heaps, offset - base, { reference: pointers.placed, tag });
    this.heap = { placed, offset };
  }

  /** What a single rank posted, and before it what its elements point to. */
  addAlone(stages: readonly Stage[]): void {
    const { own, pointers } = this.#log;
    if (stages.some(({ heap }) => heap)) {
      const objects = pointers.unnumbered();
      if (objects.length > 0) pointers.number(objects);
      this.place(stages, this.offset, own.base);
      this.size = this.heap?.placed.size ?? 0;
    }
    this.add(stages);
  }

  add(stages: readonly Stage[]): void {
    for (const part of inOrder(stages)) {
      if (part.dataset.deleted || part.runs.length === 0) continue;
      if (!import.meta.page && this.numbered) this.#enter(part.dataset.logNumber, this.numbered);
      const isFiltered = part.dataset.filters.length > 0;
      const chunks = isFiltered || this.#publishes ? chunksOf(part.dataset) : null;
      // Others can be shown whole chunks where they are.
      if (isFiltered || (chunks && hasChunksInside(part, chunks))) this.#addPieces(part, chunks);
      else this.#addPlain(part);
      this.numbered?.reach(this.offset + this.size);
    }
  }

  /** Whether this flush is published, or one that has its blocks will be. */
  get #publishes(): boolean {
    return this.collects || (this.#log.publishState?.policy ?? 'never') !== 'never';
  }

  /** Data of a numbered log comes next. */
  #enter(number: number, parts: LogParts): void {
    if (import.meta.page) return;
    const table = parts.begin(number, this.offset + this.size);
    if (!table) return;
    this.table = table;
    if (!parts.header) return;
    this.data.push(parts.header);
    this.size += parts.header.length;
  }

  /** What one of several ranks writes: its heap, if any rank has one, and its data. */
  parts(): Contributed[] {
    if (!this.heap || this.heapsSize === 0) return [this];
    const { placed, offset } = this.heap;
    return [{ data: placed.images, offset, size: placed.size, lent: new Map(), section: null }, this];
  }

  /** What the store gets from a single rank. */
  asAddition(): Addition {
    const { data } = this;
    // Posts to datasets that were deleted since may be all that had contents.
    if (this.table.entries === 0) this.size = 0;
    else data.unshift(...(this.heap?.placed.images ?? []));
    const { size } = this;
    const addition = { dataSize: size, data, table: null, tableSize: 0, header: null, parts: 1 };
    if (size === 0) return addition;
    if (!import.meta.page && this.numbered) {
      const numbered = this.numbered.finish();
      return {
        ...addition,
        tableSize: numbered.reduce((sum, { table }) => sum + table.length, 0),
        numbered,
        heapSize: this.heap?.placed.size ?? 0,
      };
    }
    const table = this.table.finish();
    return { ...addition, table, tableSize: table.length };
  }

  #addPlain(stage: DatasetStage): void {
    const { dataset } = stage;
    const rank = dataset.shape.length;
    const { merge } = this.#log.options.table;
    let offset = this.offset + this.size;
    for (const run of stage.runs) {
      const starts = run.shared ? run.shared.starts : stage.starts;
      const counts = run.shared ? run.shared.counts : stage.counts;
      // Blocks of a scalar take no bytes in a table: a list of them could not be told from damage.
      const single = rank === 0 || (!merge && !run.shared);
      const most = mostBlocks(rank);
      // Most selections are one entry: their blocks, which many datasets may share, are not counted again for each of them.
      if (run.shared && run.bytes <= MOST_DATA_BYTES && run.to - run.from <= most && !single) {
        const blocks = { rank, starts, counts, from: run.from, to: run.to };
        this.#entry(dataset, blocks, run.shared, offset, run.bytes, 0, run.shared.points);
        offset += run.bytes;
        continue;
      }
      for (let from = run.from; from < run.to; ) {
        let to = from;
        let bytes = 0;
        for (; to < run.to; to++) {
          const next = boxSize(counts, to * rank, rank, dataset.elements.size);
          if (to > from && (single || bytes + next > MOST_DATA_BYTES || to - from === most)) break;
          bytes += next;
        }
        const blocks = { rank, starts, counts, from, to };
        const whole = from === run.from && to === run.to;
        if (to - from === 1 && bytes > MOST_DATA_BYTES) this.#addLarge(dataset, blocks, offset);
        else this.#entry(dataset, blocks, whole ? run.shared : null, offset, bytes, 0, run.shared?.points);
        offset += bytes;
        from = to;
      }
    }
    const { elements, path } = dataset;
    for (const { bytes, lent } of stage.arena.contents()) {
      if (elements.points) {
        this.#place(elements, this.#putFiltered(bytes));
        continue;
      }
      this.data.push(bytes);
      if (lent) this.lent.set(bytes, { path, size: bytes.length });
      this.size += bytes.length;
    }
  }

  /** Gives elements their ids in the file. */
  #place({ dtype, size }: LogDataset['elements'], bytes: Uint8Array): void {
    this.heap?.placed.patch(dtype, bytes, bytes.length / size);
  }

  /** A block of more than 2 GiB: cut along its slowest dimension, which leaves its data in the same order. */
  #addLarge(dataset: LogDataset, { rank, starts, counts, from }: EntryBlocks, offset: number): void {
    const start = starts.slice(from * rank, (from + 1) * rank);
    const count = counts.slice(from * rank, (from + 1) * rank);
    const bytes = boxSize(count, 0, rank, dataset.elements.size);
    if (bytes <= MOST_DATA_BYTES) {
      this.#entry(dataset, { rank, starts: start, counts: count, from: 0, to: 1 }, null, offset, bytes, 0);
      return;
    }
    const { first, later, second } = halves(start, count);
    this.#addLarge(dataset, { rank, starts: start, counts: first, from: 0, to: 1 }, offset);
    const behind = offset + boxSize(first, 0, rank, dataset.elements.size);
    this.#addLarge(dataset, { rank, starts: later, counts: second, from: 0, to: 1 }, behind);
  }

  /** Cuts blocks at the chunk grid; null: at that of default chunks. */
  #addPieces(stage: DatasetStage, chunks: readonly number[] | null): void {
    const { dataset, arena } = stage;
    const { maxShape, elements, filters } = dataset;
    const shape = this.#shapeOf(dataset);
    const filter = new BlockFilter(
      { shape, maxShape, chunks, elementSize: elements.size },
      filters,
      dataset.layout.codecs,
    );
    const rank = shape.length;
    const reader = arena.reader();
    const next = (bytes: number): Uint8Array => {
      if (!elements.points) return reader(bytes);
      const copy = reader(bytes).slice();
      this.#place(elements, copy);
      return copy;
    };
    for (const run of stage.runs) {
      const starts = run.shared ? run.shared.starts : stage.starts;
      const counts = run.shared ? run.shared.counts : stage.counts;
      for (let i = run.from; i < run.to; i++) {
        const start = starts.slice(i * rank, (i + 1) * rank);
        const count = counts.slice(i * rank, (i + 1) * rank);
        if (filters.length === 0) {
          this.#addParts(dataset, filter.pieces(start, count, next));
          continue;
        }
        for (const piece of filter.pieces(start, count, next)) {
          const blocks = { rank, starts: piece.start, counts: piece.count, from: 0, to: 1 };
          const size = piece.bytes.length;
          this.#entry(dataset, blocks, null, this.offset + this.size, size, size);
          this.#putFiltered(piece.bytes);
        }
      }
    }
  }

  /** Pieces of one block, which are not filtered: as few entries as there is room for in one. */
  #addParts(
    dataset: LogDataset,
    pieces: Iterable<{ start: Float64Array; count: Float64Array; bytes: Uint8Array }>,
  ): void {
    const rank = dataset.shape.length;
    const most = this.#log.options.table.merge ? mostBlocks(rank) : 1;
    let [starts, counts]: [number[], number[]] = [[], []];
    let from = this.offset + this.size;
    const end = (): void => {
      const blocks = {
        rank,
        starts: Float64Array.from(starts),
        counts: Float64Array.from(counts),
        from: 0,
        to: starts.length / rank,
      };
      const behind = this.offset + this.size;
      if (blocks.to > 0) this.#entry(dataset, blocks, null, from, behind - from, 0);
      [starts, counts, from] = [[], [], behind];
    };
    const before = this.blocks;
    for (const { start, count, bytes } of pieces) {
      if (starts.length === most * rank) end();
      starts.push(...start);
      counts.push(...count);
      this.#putFiltered(bytes);
    }
    end();
    // To others it is one block as before.
    this.blocks = before + 1;
  }

  /** Copies data behind the last, and returns the copy; what lies together is written together. */
  #putFiltered(bytes: Uint8Array): Uint8Array {
    const { filtered, data } = this;
    const { length } = bytes;
    filtered.reserve(length);
    const { chunk, used } = filtered;
    chunk.set(bytes, used);
    filtered.advance(length);
    const last = data.at(-1);
    const continues = last?.buffer === chunk.buffer && last.byteOffset + last.length === chunk.byteOffset + used;
    const from = continues ? used - last.length : used;
    if (continues) data.pop();
    data.push(chunk.subarray(from, used + length));
    this.size += length;
    return chunk.subarray(used, used + length);
  }

  #entry(
    dataset: LogDataset,
    blocks: EntryBlocks,
    key: object | null,
    offset: number,
    size: number,
    stored: number,
    points = false,
  ): void {
    const shape = this.#shapeOf(dataset);
    const { id, records, elements, filterCode: filter } = dataset;
    this.table.add({ id, shape, records, blocks, key, offset, size, elementSize: elements.size, filter, points });
    this.blocks += blocks.to - blocks.from;
    if (dataset.index) this.indexed.push({ dataset, blocks, offset, stored });
    if (!this.collects) return;
    const list = this.collected.get(dataset);
    if (list) list.push({ dataset, blocks, offset, stored });
    else this.collected.set(dataset, [{ dataset, blocks, offset, stored }]);
  }

  #shapeOf(dataset: LogDataset): readonly number[] {
    return this.shapes?.get(dataset) ?? dataset.shape;
  }
}

/** The chunks that others see a dataset in, or will. Pieces that are whole chunks need not be copied when they are published. */
function chunksOf({ published, chunks, maxShape }: LogDataset): readonly number[] | null {
  const layout = published?.data.parts.layout;
  if (layout?.kind === 'chunked') return layout.chunk;
  return chunks && fittingChunks(chunks, maxShape);
}

/** Whether a block holds whole chunks side by side, whose elements alternate in it. */
function hasChunksInside({ dataset, runs, starts, counts, arena }: DatasetStage, chunks: readonly number[]): boolean {
  const rank = chunks.length;
  if (!isWorthCutting(chunks, dataset.elements.size) || arena.size > MOST_CUT) return false;
  return runs.some(({ shared, from, to }) => {
    const lists = shared ?? { starts, counts };
    for (let k = from * rank; k < to * rank; k += rank) {
      let slow = 0;
      while (slow < rank - 1 && lists.counts[k + slow] === 1) slow++;
      let [isWhole, isSideBySide] = [true, false];
      for (let d = 0; d < rank && isWhole; d++) {
        const chunk = chunks[d] as number;
        const low = lists.starts[k + d] as number;
        const high = low + (lists.counts[k + d] as number);
        isWhole = (Math.ceil(low / chunk) + 1) * chunk <= high;
        if (d > slow && Math.floor(low / chunk) < Math.floor((high - 1) / chunk)) isSideBySide = true;
      }
      if (isWhole && isSideBySide) return true;
    }
    return false;
  });
}
