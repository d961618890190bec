// The data of ordinary datasets, as far as HDF5 lets anybody check it: where it lies, what its index says, the checksums of chunks
// that have them, and the heap objects that elements name.

import { lookup3 } from '../../base/checksum.ts';
import { formatError, isH5LogError } from '../../base/errors.ts';
import { decodeValues } from '../../dtype/decode.ts';
import { containsVlen } from '../../dtype/describe.ts';
import { visitHeapIds } from '../../dtype/heap-ids.ts';
import { checkFletcher32 } from '../../filter/fletcher32.ts';
import { PendingBytes, unfilter } from '../../filter/pipeline.ts';
import { UNDEFINED } from '../../hdf5/format/cursor.ts';
import { Budget } from '../../hdf5/format/file-bytes.ts';
import { collectionSize, GlobalHeap, readCollection } from '../../hdf5/format/global-heap.ts';
import type { DatasetParts } from '../../hdf5/graph/dataset-header.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import { readChunkIndex, type StoredChunk } from '../../hdf5/layouts/chunks/chunk-index.ts';
import { dataReader } from '../../hdf5/layouts/data-reader.ts';
import { readSlots } from '../../hdf5/layouts/external.ts';
import { elementCount } from '../../hdf5/messages/dataspace.ts';
import type { Layout } from '../../hdf5/messages/layout.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { sizeOf } from '../../space/shape.ts';
import { type Io, settle } from '../../storage/io.ts';
import { fullSlab, slabPieces } from '../values.ts';
import { mustBeDamage } from './commit-history.ts';

const DEFLATE = 1;
const FLETCHER32 = 3;
/** Elements with parts in heaps that are looked at together. */
const PIECE = 2 ** 14;
/** Problems of one kind that are listed of a dataset; a damaged index may have thousands. */
const MOST_LISTED = 10;

/** Something that is wrong with a file. */
export interface Problem {
  /** File offset. */
  readonly offset?: number;
  readonly what: string;
  readonly object?: string;
  /** Structure that does not match its checksum, though it can be read: damage, or a change by another program. */
  readonly mismatch?: true;
}

/** Where the data of a dataset lies in the file. */
export interface StoredRanges {
  readonly path: string;
  /** Addresses, in pairs of first byte and end. */
  readonly ranges: Float64Array;
  /** What a range is, by its number. */
  readonly what: (i: number) => string;
}

/** What a look at the data of a dataset found. */
interface CheckedData {
  readonly problems: readonly Problem[];
  readonly stored: StoredRanges | null;
  /** Where the heaps lie that its elements point into, which datasets may share. */
  readonly heaps: StoredRanges | null;
}

/**
 * Checks the data of an ordinary dataset. `onChunk` gets the size of each chunk whose checksum was compared. The chunks of datasets of a
 * log, of which every state has others, are in what the commit records have checksums of.
 */
export function* checkData(
  structure: Structure,
  node: ObjectNode,
  parts: DatasetParts,
  path: string,
  isLogged: boolean,
  onChunk: (bytes: number) => void,
): Io<CheckedData> {
  const { file } = structure.loader;
  const { layout, space, type } = parts;
  const external = node.message(MESSAGE.externalFiles);
  if (external) yield* readSlots(file, external);
  if (!layout || external) return { problems: [], stored: null, heaps: null };
  const needed = elementCount(space) * type.size;
  const problems: Problem[] = [];
  let stored: StoredRanges | null = null;
  let chunks: readonly StoredChunk[] | null = null;
  if (layout.kind === 'compact' && layout.data.length < needed)
    throw formatError(`${layout.data.length} bytes of data in the header, but its shape needs ${needed}`);
  if (layout.kind === 'virtual') yield* checkMappings(structure, layout);
  if (layout.kind === 'contiguous' && layout.address !== UNDEFINED) {
    const { address, size } = layout;
    if (size < needed) throw formatError(`${size} bytes of data, but its shape needs ${needed}`);
    if (address + size > file.end)
      throw formatError(`data of ${size} bytes reaches beyond the end of the file`, file.base + address);
    stored = { path, ranges: Float64Array.of(address, address + size), what: () => `the data of ${path}` };
  }
  if (layout.kind === 'chunked') {
    if (space.kind !== 'simple') throw formatError('it has chunks, but no dimensions');
    if (layout.chunk.length !== space.shape.length)
      throw formatError(`chunks of ${layout.chunk.length} dimensions, but its shape has ${space.shape.length}`);
    if (layout.elementSize !== type.size)
      throw formatError(`chunks of ${layout.elementSize}-byte elements, but its type has ${type.size} bytes`);
    const { chunk, elementSize, index } = layout;
    const grid = { maxShape: space.maxShape, chunk, elementSize, filtered: parts.filters.length > 0 };
    chunks = yield* readChunkIndex(file, index, grid);
    const checked = new CheckedChunks(file, parts, layout, path, chunks);
    problems.push(...checked.problems);
    problems.push(...(yield* checked.sums(isLogged, onChunk)));
    stored = checked.stored;
  }
  const heaps = problems.length === 0 ? yield* checkElements(structure, parts, path, chunks) : null;
  return { problems, stored, heaps };
}

/** The mappings of a virtual dataset end with a checksum. */
function* checkMappings(structure: Structure, layout: Layout & { kind: 'virtual' }): Io<void> {
  const { file } = structure.loader;
  if (layout.heap === UNDEFINED) return;
  const { objects } = yield* readCollection(file, layout.heap);
  const content = objects.get(layout.index);
  if (!content)
    throw formatError(`its mappings, object ${layout.index} of the heap, are missing`, file.base + layout.heap);
  const at = content.length - 4;
  const view = new DataView(content.buffer, content.byteOffset, content.length);
  if (at < 0 || view.getUint32(at, true) !== lookup3(content, 0, at))
    throw formatError('the checksum of its mappings is wrong', file.base + layout.heap);
}

/** Every heap object that a stored element names must be there, and must hold what the element's type says. Gives the heaps. */
function* checkElements(
  structure: Structure,
  parts: DatasetParts,
  path: string,
  chunks: readonly StoredChunk[] | null,
): Io<StoredRanges | null> {
  const { dtype, type, space, layout } = parts;
  if (!containsVlen(dtype) || !layout || layout.kind === 'virtual') return null;
  if (layout.kind === 'contiguous' && layout.address === UNDEFINED) return null;
  const { file } = structure.loader;
  const reader = dataReader(file, parts, { cache: structure.chunks });
  const shape = space.kind === 'simple' ? space.shape : [];
  const heap = new GlobalHeap(file);
  const collections = new Set<number>();
  const look = function* (start: readonly number[], part: readonly number[], count: number): Io<void> {
    const bytes = new Uint8Array(count * type.size);
    const boxes = { starts: Float64Array.from(start), counts: Float64Array.from(part), rank: start.length, length: 1 };
    yield* reader.read(boxes, bytes);
    decodeValues(dtype, bytes, count, { heap: yield* heap.lookup(dtype, bytes, count), path: () => '' });
    visitHeapIds(dtype, bytes, count, (address, index) => {
      collections.add(address);
      return heap.get(address, index);
    });
  };
  try {
    if (shape.length === 0) yield* look([], [], elementCount(space));
    else if (layout.kind === 'chunked') {
      // Not what was never written, of which there may be more than anybody can look at.
      for (const { cell } of chunks ?? []) {
        const start = cell.map((k, d) => k * (layout.chunk[d] as number));
        const part = start.map((from, d) => Math.min(layout.chunk[d] as number, (shape[d] as number) - from));
        if (part.every((n) => n > 0)) yield* look(start, part, sizeOf(part));
      }
    } else
      for (const { where, size } of slabPieces(fullSlab({}, shape, path), PIECE))
        yield* look(where.start, where.count, size);
  } catch (error) {
    // A filter that nobody here knows.
    if (!isH5LogError(error, 'UNSUPPORTED')) throw error;
  }
  const ranges: number[] = [];
  for (const address of collections) ranges.push(address, address + (yield* collectionSize(file, address)));
  return { path, ranges: Float64Array.from(ranges), what: () => `a heap with what ${path} points to` };
}

/** The chunks of a dataset, as its index has them. */
class CheckedChunks {
  readonly problems: Problem[] = [];
  readonly stored: StoredRanges;
  readonly #file: Structure['loader']['file'];
  readonly #parts: DatasetParts;
  readonly #layout: Layout & { kind: 'chunked' };
  readonly #path: string;
  readonly #chunks: readonly StoredChunk[];
  readonly #whole: number;

  constructor(
    file: Structure['loader']['file'],
    parts: DatasetParts,
    layout: Layout & { kind: 'chunked' },
    path: string,
    chunks: readonly StoredChunk[],
  ) {
    this.#file = file;
    this.#parts = parts;
    this.#layout = layout;
    this.#path = path;
    this.#chunks = chunks;
    this.#whole = layout.elementSize * sizeOf(layout.chunk);
    const ranges = new Float64Array(2 * chunks.length);
    const seen = new Set<string>();
    for (const [i, { cell, address, size }] of chunks.entries()) {
      ranges[2 * i] = address;
      ranges[2 * i + 1] = address + size;
      const why = this.#why(chunks[i] as StoredChunk) ?? (seen.has(cell.join()) ? 'it is in the index twice' : null);
      seen.add(cell.join());
      if (why !== null) this.#note(i, why);
    }
    this.stored = { path, ranges, what: (i) => this.#name(i) };
  }

  #name(i: number): string {
    const start = this.#chunks[i]?.cell.map((k, d) => k * (this.#layout.chunk[d] as number)) ?? [];
    return `chunk at (${start.join(', ')}) of ${this.#path}`;
  }

  #note(i: number, why: string): void {
    if (this.problems.length >= MOST_LISTED) return;
    const { address } = this.#chunks[i] as StoredChunk;
    const what = `${this.#name(i)}: ${why}`;
    this.problems.push({ object: this.#path, offset: this.#file.base + address, what });
  }

  /** Says what is wrong with the place of a chunk, in the dataset or in the file; null: nothing is. */
  #why({ cell, address, size, mask }: StoredChunk): string | null {
    const { space, filters } = this.#parts;
    const maxShape = space.kind === 'simple' ? space.maxShape : [];
    if (cell.some((k, d) => maxShape[d] !== null && k * (this.#layout.chunk[d] as number) >= (maxShape[d] as number)))
      return `it lies outside the maximum shape (${maxShape.map((n) => n ?? 'unlimited').join(', ')})`;
    if (address + size > this.#file.end) return `its ${size} bytes reach beyond the end of the file`;
    const all = 2 ** filters.length - 1;
    if ((mask & all) === all && size !== this.#whole) return `it has ${size} bytes instead of ${this.#whole}`;
    return null;
  }

  /** Compares the checksums of fletcher32 and of deflate, which has one of its own; filters that were applied after it are undone first. */
  *sums(isLogged: boolean, onChunk: (bytes: number) => void): Io<Problem[]> {
    const problems: Problem[] = [];
    const { filters, space } = this.#parts;
    const { chunk, elementSize, edgesUnfiltered } = this.#layout;
    const at = filters.findIndex(({ id }) => id === FLETCHER32);
    const deflated = isLogged ? -1 : filters.findIndex(({ id }) => id === DEFLATE);
    if ((at < 0 && deflated < 0) || space.kind !== 'simple') return problems;
    const isUsed = (filter: number, mask: number): boolean => filter >= 0 && (mask & (1 << filter)) === 0;
    const isEdge = (cell: readonly number[]): boolean =>
      cell.some((k, d) => (k + 1) * (chunk[d] as number) > (space.shape[d] as number));
    const whole = { size: this.#whole, elementSize, shape: chunk };
    const budget = new Budget(this.#file);
    for (const [i, { cell, address, size, mask }] of this.#chunks.entries()) {
      if (!isUsed(at, mask) && !isUsed(deflated, mask)) continue;
      if ((edgesUnfiltered && isEdge(cell)) || this.#why(this.#chunks[i] as StoredChunk)) continue;
      budget.spend(size, address, 'chunks');
      const isOutermost = isUsed(at, mask) && filters.every((_, k) => k <= at || mask & (1 << k));
      try {
        const bytes = yield* this.#file.read(address, size, 'chunk');
        if (isOutermost) checkFletcher32(bytes);
        else {
          const plain = unfilter(bytes, filters, mask, whole);
          if (plain instanceof PendingBytes) yield* settle(plain);
        }
      } catch (error) {
        // A filter of others around the checksum: nobody here can compare it.
        if (isH5LogError(error, 'UNSUPPORTED')) continue;
        const { message } = mustBeDamage(error);
        problems.push({ object: this.#path, offset: this.#file.base + address, what: `${this.#name(i)}: ${message}` });
      }
      onChunk(size);
    }
    return problems;
  }
}

/** Data that lies in the same bytes as other data: one of the two was overwritten. */
export function overlaps(all: readonly StoredRanges[], base: number): Problem[] {
  const total = all.reduce((sum, { ranges }) => sum + ranges.length / 2, 0);
  const starts = new Float64Array(total);
  const owners = new Uint32Array(total);
  const numbers = new Uint32Array(total);
  let n = 0;
  for (const [owner, { ranges }] of all.entries()) {
    for (let i = 0; i < ranges.length; i += 2) {
      if (ranges[i] === ranges[i + 1]) continue;
      starts[n] = ranges[i] as number;
      owners[n] = owner;
      numbers[n++] = i / 2;
    }
  }
  const order = Uint32Array.from({ length: n }, (_, i) => i).sort(
    (a, b) => (starts[a] as number) - (starts[b] as number),
  );
  const problems: Problem[] = [];
  const named = (k: number): string => {
    const { what } = all[owners[k] as number] as StoredRanges;
    return what(numbers[k] as number);
  };
  let [end, last] = [0, -1];
  for (const k of order) {
    const { ranges, path } = all[owners[k] as number] as StoredRanges;
    const start = starts[k] as number;
    if (last >= 0 && start < end && problems.length < MOST_LISTED)
      problems.push({ object: path, offset: base + start, what: `${named(k)} overlaps ${named(last)} in the file` });
    const to = ranges[2 * (numbers[k] as number) + 1] as number;
    if (to > end) [end, last] = [to, k];
  }
  return problems;
}
