import { H5LogError } from '../../base/errors.ts';
import { PENDING } from '../../dtype/heap-ids.ts';
import { applyLate, lateLength } from '../../filter/apply.ts';
import { PendingHeap, PlacedHeap } from '../../hdf5/format/pending-heap.ts';
import { FileExtent, type ObjectNode } from '../../hdf5/graph/object-node.ts';
import type { ChunkEntry } from '../../hdf5/layouts/chunks/chunk-index.ts';
import { contiguous, type NewLayout } from '../../hdf5/layouts/new-dataset.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { copyBox, fillWith } from '../../space/copy.ts';
import { sizeOf } from '../../space/shape.ts';
import type { Io } from '../../storage/io.ts';
import type { LogDataset } from '../post/dataset.ts';
import type { LogData } from '../read/boxes.ts';
import type { ChunkSurvey, SurveyedChunk } from './chunk-survey.ts';

/** The most bytes of data with references that wait in memory for the addresses of objects. */
const MOST_REFERENCES = 64 * 2 ** 20;

/** What the data of a dataset with references needs. */
interface Referring {
  /** Reads a box as the commit leaves it. */
  read(start: Float64Array, count: Float64Array, packed: Uint8Array): Io<void>;
  readonly structure: Structure;
  /** Objects by the numbers by which logged data refers to them. */
  readonly targets: ReadonlyMap<number, ObjectNode>;
  readonly shape: readonly number[];
  /** The files of the log, with the data of the commit. */
  readonly files: readonly LogData[];
  /** Its chunks that have values; null: contiguous. */
  readonly chunks: (Pick<ChunkSurvey, 'chunk' | 'chunkBytes'> & { readonly all: readonly SurveyedChunk[] }) | null;
  /** Makes a layout of chunks, which are in extents that are appended with the dataset. */
  chunked(chunk: readonly number[], chunks: readonly ChunkEntry[], data: readonly FileExtent[]): Io<NewLayout>;
}

/**
 * Data with references, which hold the addresses of objects: the commit assigns those, and the data is made then, so it waits in
 * memory. Its chunks are filtered as far as their sizes are known before.
 */
export function* referringLayout(
  { elements, filters, fill, log }: LogDataset,
  { read, structure, targets, shape, files, chunks, chunked }: Referring,
): Io<{ layout: NewLayout; moved: number; pieces: number; targets: readonly ObjectNode[] }> {
  const { dtype, size } = elements;
  const nodes: ObjectNode[] = [];
  const heap = new PendingHeap(0, () => 0);
  const source = log.pointers.heapIn(files);
  const parts: { readonly cell: number[]; readonly bytes: Uint8Array }[] = [];
  const number = (given: number): number => {
    const node = log.pointers.objectOf(given) ?? targets.get(given);
    return node && node.linkCount > 0 ? PENDING + nodes.push(node) - 1 : 0;
  };
  let moved = 0;
  const origin = new Float64Array(shape.length);
  for (const { cell, start, count } of chunks?.all ?? [{ cell: [], start: origin, count: Float64Array.from(shape) }]) {
    const inside = new Uint8Array(size * sizeOf(count));
    moved += inside.length;
    if (moved + heap.size > MOST_REFERENCES)
      throw new H5LogError('UNSUPPORTED', `more than ${MOST_REFERENCES} bytes of references; replay can copy them`);
    yield* read(start, count, inside);
    yield* log.pointers.contents(elements, inside, number, heap, source);
    parts.push({ cell, bytes: chunks ? wholeChunk(inside, count, chunks, size, fill) : inside });
  }
  let placed: PlacedHeap | null = null;
  const place = (): PlacedHeap => {
    if (placed) return placed;
    const reference = (pending: number): number => (nodes[pending - PENDING] as ObjectNode).address;
    placed = new PlacedHeap([heap], contents.address, { reference });
    for (const { bytes } of parts) placed.patch(dtype, bytes, bytes.length / size);
    return placed;
  };
  const contents = new FileExtent(heap.size, () => place().images);
  if (heap.size > 0) structure.extents.add(contents);
  const used = chunks ? filters : [];
  const extents = parts.map(({ bytes }) => {
    return new FileExtent(lateLength(used, bytes.length).length, () => {
      place();
      return [applyLate(bytes, used)];
    });
  });
  const entries = parts.map(({ cell, bytes }, i): ChunkEntry => {
    const { length, mask } = lateLength(used, bytes.length);
    return { cell, address: extents[i] as FileExtent, size: length, mask };
  });
  const layout = chunks ? yield* chunked(chunks.chunk, entries, extents) : contiguous(extents[0] as FileExtent);
  return { layout, moved: moved + heap.size, pieces: extents.length, targets: nodes };
}

/** A chunk of which a part lies in the dataset. */
export function wholeChunk(
  inside: Uint8Array,
  count: Float64Array,
  { chunk, chunkBytes }: Pick<ChunkSurvey, 'chunk' | 'chunkBytes'>,
  size: number,
  fill: Uint8Array | null,
): Uint8Array {
  if (inside.length === chunkBytes) return inside;
  const bytes = new Uint8Array(chunkBytes);
  fillWith(bytes, 0, chunkBytes / size, size, fill);
  const origin = new Float64Array(chunk.length);
  copyBox(inside, 0, count, origin, bytes, 0, chunk, origin, count, size);
  return bytes;
}
