import { formatError } from '../../base/errors.ts';
import { BlockFilter, isWorthCutting } from '../../log/flush/filtered-pieces.ts';
import { numberOf } from '../../log/pointers.ts';
import type { LogDataset } from '../../log/post/dataset.ts';
import type { LogData } from '../../log/read/boxes.ts';
import type { BlockIndex } from '../../log/read/index.ts';
import { boxAt, countOf, halves } from '../../space/box.ts';
import { sizeOf } from '../../space/shape.ts';
import type { Io } from '../../storage/io.ts';
import { CommittedBlocks, type ReadableBlocks } from '../committed-blocks.ts';
import { TwoBuffers } from '../output.ts';
import { type LivePieces, liveCells, liveFiltered, livePlain, type Window } from './live-pieces.ts';
import type { CompactOutput, OutputDataset } from './output.ts';

/** The most bytes of data that are read at once. */
const MOST_BYTES = 16 * 2 ** 20;
/** A block of an index: starts, counts, and what lies beside them; in memory twice while boxes are put together. */
const bytesPerBlock = (rank: number): number => 48 * rank + 16;

interface CopiedDataset {
  readonly blocksBefore: number;
  readonly blocks: number;
  readonly kept: number;
}

/** Writes what can be seen of a dataset of the log, as a dataset of the output. */
export function* copyDataset(
  dataset: LogDataset,
  target: Pick<OutputDataset, 'id' | 'logNumber'>,
  output: CompactOutput,
  memory: number,
  done: (bytes: number) => void,
): Io<CopiedDataset> {
  const committed = yield* CommittedBlocks.of(dataset);
  const { tables } = dataset.log;
  const blocksBefore = dataset.base ? yield* tables.count(dataset, tables.committed) : committed.length;
  if (committed.length === 0 || dataset.shape.includes(0)) return { blocksBefore, blocks: 0, kept: 0 };
  const copy = new DatasetCopy(committed, target, output, memory, done);
  // Too many blocks for the memory: one slab after the other, each with the blocks that reach into it.
  const needed = committed.length * bytesPerBlock(dataset.shape.length);
  const windows = committed.isWhole ? [everything(dataset)] : slabs(dataset, Math.ceil(needed / (memory / 4)));
  for (const window of windows)
    yield* copy.window(yield* committed.intersecting(window.lo, countOf(window.lo, window.hi)), window);
  dataset.index = null;
  return { blocksBefore, blocks: copy.blocks, kept: copy.kept };
}

function everything({ shape }: LogDataset): Window {
  return { lo: new Float64Array(shape.length), hi: Float64Array.from(shape) };
}

/** Cut along the first dimension, between chunks if there are any. */
function* slabs(dataset: LogDataset, wanted: number): Iterable<Window> {
  const { shape, chunks } = dataset;
  const unit = chunks?.[0] ?? 1;
  const length = shape[0] ?? 1;
  const thickness = Math.max(1, Math.floor(length / unit / wanted)) * unit;
  for (let from = 0; from < length; from += thickness) {
    const { lo, hi } = everything(dataset);
    lo[0] = from;
    hi[0] = Math.min(length, from + thickness);
    yield { lo, hi };
  }
}

class DatasetCopy {
  blocks = 0;
  kept = 0;
  readonly #committed: CommittedBlocks;
  readonly #dataset: LogDataset;
  readonly #target: OutputDataset;
  readonly #output: CompactOutput;
  readonly #done: (bytes: number) => void;
  readonly #limit: number;
  readonly #filter: BlockFilter;
  readonly #buffers = new TwoBuffers();

  constructor(
    committed: CommittedBlocks,
    target: Pick<OutputDataset, 'id' | 'logNumber'>,
    output: CompactOutput,
    memory: number,
    done: (bytes: number) => void,
  ) {
    const { dataset } = committed;
    this.#committed = committed;
    this.#dataset = dataset;
    const { records, filterCode: filter } = dataset;
    this.#target = { ...target, shape: dataset.shape, records, elementSize: dataset.elements.size, filter };
    this.#output = output;
    this.#done = done;
    const { shape, maxShape, chunks, elements, filters } = dataset;
    this.#filter = new BlockFilter(
      { shape, maxShape, chunks, elementSize: elements.size },
      filters,
      dataset.layout.codecs,
    );
    this.#limit = Math.min(MOST_BYTES, Math.floor(memory / 8));
  }

  *window(blocks: ReadableBlocks, window: Window): Io<void> {
    const { index } = blocks;
    if (index.length === 0) return;
    const { elements, filters, chunks } = this.#dataset;
    // A stream whose elements point elsewhere cannot be kept: what they point to moves.
    const mayKeep = filters.length > 0 && !elements.points;
    for (const pieces of livePieces(index, window, mayKeep || this.#isCut, chunks, elements.size)) {
      for (const block of pieces.kept) yield* this.#keep(index, block);
      const boxes = pieces.boxes.toBoxes();
      for (let i = 0; i < boxes.length; i++) {
        const { start, count } = boxAt(boxes, i);
        yield* this.#box(blocks, start, count);
      }
    }
  }

  /** Whether the output will be published, in chunks that should be in its log as they are. */
  get #isCut(): boolean {
    const { filters, chunks, elements, log } = this.#dataset;
    const publishes = (log.publishState?.policy ?? 'never') !== 'never';
    return publishes && filters.length === 0 && chunks !== null && isWorthCutting(chunks, elements.size);
  }

  /** A stream as it is stored. */
  *#keep(index: BlockIndex, block: number): Io<void> {
    const { offsets, stored, stores } = index;
    const { file } = this.#dataset.log.files[stores?.[block] ?? 0] as LogData;
    const bytes = yield* file.readCopy(offsets[block] as number, stored?.[block] ?? 0, 'data of the log');
    const { start, count } = boxAt(index, block);
    yield* this.#output.stream(this.#target, start, count, bytes);
    this.kept++;
    this.blocks++;
    this.#done(bytes.length);
  }

  /** The number of the object at an address; 0 of a null reference. */
  #numberAt(address: number): number {
    const { structure } = this.#dataset.log;
    const node = structure.loader.nodes.get(address);
    const number = node ? numberOf(structure, node) : 0;
    if (number > 0 || address === 0) return number;
    throw formatError('a reference to an object that has no number', address);
  }

  /** A box is read, newest values first, and written as one block; a large one in parts. */
  *#box(blocks: ReadableBlocks, start: Float64Array, count: Float64Array): Io<void> {
    const { elements, filters, chunks } = this.#dataset;
    const size = elements.size * sizeOf(count);
    if (size > this.#limit && size > elements.size && !(chunks && filters.length > 0)) {
      const { first, later, second } = halves(start, count);
      yield* this.#box(blocks, start, first);
      yield* this.#box(blocks, later, second);
      return;
    }
    const bytes = this.#buffers.next(size);
    yield* blocks.read(start, count, bytes, 0);
    if (elements.points) {
      const { heap: source, isRewritten } = this.#committed;
      const { pointers } = this.#dataset.log;
      const reference = isRewritten ? (address: number) => this.#numberAt(address) : undefined;
      const heap = yield* pointers.contents(elements, bytes, reference, undefined, source);
      yield* this.#output.contents(heap, elements, bytes);
    }
    if (filters.length === 0) {
      yield* this.#output.block(this.#target, start, count, bytes);
      this.blocks++;
    } else {
      let at = 0;
      const next = (length: number): Uint8Array => {
        at += length;
        return bytes.subarray(at - length, at);
      };
      for (const piece of this.#filter.pieces(start, count, next)) {
        yield* this.#output.stream(this.#target, piece.start, piece.count, piece.bytes.slice());
        this.blocks++;
      }
    }
    this.#done(size);
  }
}

function* livePieces(
  index: BlockIndex,
  window: Window,
  isCut: boolean,
  chunks: readonly number[] | null,
  elementSize: number,
): Iterable<LivePieces> {
  if (!isCut) yield livePlain(index, window);
  else if (chunks && chunks.length > 0) yield* liveCells(index, window, chunks);
  else yield liveFiltered(index, window, elementSize);
}
