import { H5LogError } from '../../base/errors.ts';
import { PENDING, PendingHeap, PlacedHeap } from '../../hdf5/format/pending-heap.ts';
import { FileExtent, type ObjectNode } from '../../hdf5/graph/object-node.ts';
import type { ChunkEntry } from '../../hdf5/layouts/chunks/chunk-index.ts';
import { contiguous, type NewLayout } from '../../hdf5/layouts/new-dataset.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { copyBox, fillWith } from '../../space/copy.ts';
import { sizeOf } from '../../space/shape.ts';
import type { Io } from '../../storage/io.ts';
import type { LogDataset } from '../post/dataset.ts';
import type { BoxReader, LogData } from '../read/boxes.ts';
import type { ChunkSurvey } from './chunk-survey.ts';

/** The most bytes of data with references that wait in memory for the addresses of objects. */
const MOST_REFERENCES = 64 * 2 ** 20;

/** What the data of a dataset with references needs. */
interface Referring {
  readonly structure: Structure;
  /** Objects by the numbers by which logged data refers to them. */
  readonly targets: ReadonlyMap<number, ObjectNode>;
  readonly shape: readonly number[];
  /** The files of the log, with the data of the commit. */
  readonly files: readonly LogData[];
  /** Its chunks; null: contiguous. */
  readonly survey: ChunkSurvey | null;
  /** Makes a layout of chunks, which are in extents that are appended with the dataset. */
  chunked(chunk: readonly number[], chunks: readonly ChunkEntry[], data: readonly FileExtent[]): Io<NewLayout>;
}

/**
 * Data with references, which hold the addresses of objects: the commit assigns those, and the data is made then, so it waits in
 * memory. Chunks are not filtered, because their sizes must be known before.
 */
export function* referringLayout(
  { elements, filters, fill, log }: LogDataset,
  reader: BoxReader,
  { structure, targets, shape, files, survey, chunked }: Referring,
): Io<{ layout: NewLayout; moved: number; pieces: number }> {
  const { dtype, size } = elements;
  const nodes: ObjectNode[] = [];
  const heap = new PendingHeap(0, () => 0);
  const source = log.pointers.heapIn(files);
  const parts: { readonly cell: number[]; readonly bytes: Uint8Array }[] = [];
  const number = (given: number): number => {
    const node = targets.get(given);
    return node ? PENDING + nodes.push(node) - 1 : 0;
  };
  let moved = 0;
  const origin = new Float64Array(shape.length);
  for (const { cell, start, count } of survey?.all() ?? [
    { cell: [], start: origin, count: Float64Array.from(shape) },
  ]) {
    const inside = new Uint8Array(size * sizeOf(count));
    moved += inside.length;
    if (moved + heap.size > MOST_REFERENCES)
      throw new H5LogError('UNSUPPORTED', `more than ${MOST_REFERENCES} bytes of references; replay can copy them`);
    yield* reader.read(start, count, inside, 0);
    yield* log.pointers.contents(elements, inside, number, heap, source);
    parts.push({ cell, bytes: survey ? wholeChunk(inside, count, survey, size, fill) : inside });
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
  const extents = parts.map(({ bytes }) => {
    return new FileExtent(bytes.length, () => {
      place();
      return [bytes];
    });
  });
  const mask = 2 ** filters.length - 1;
  const chunks = parts.map(({ cell, bytes }, i): ChunkEntry => {
    return { cell, address: extents[i] as FileExtent, size: bytes.length, mask };
  });
  const layout = survey ? yield* chunked(survey.chunk, chunks, extents) : contiguous(extents[0] as FileExtent);
  return { layout, moved: moved + heap.size, pieces: extents.length };
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
