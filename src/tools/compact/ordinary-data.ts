import { H5LogError } from '../../base/errors.ts';
import { containsReference, containsVlen } from '../../dtype/describe.ts';
import { UNDEFINED } from '../../hdf5/format/cursor.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import { readChunkIndex } from '../../hdf5/layouts/chunks/chunk-index.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import type { Io } from '../../storage/io.ts';
import type { MovedStructure } from './moved-structure.ts';
import type { CompactOutput } from './output.ts';

/** Bytes that are copied at a time. */
const COPY_BYTES = 4 * 2 ** 20;

/** Copies the data of a dataset that is not of the log, as it is stored, and tells the structure where it is now. */
export function* copyOrdinary(
  moved: MovedStructure,
  node: ObjectNode,
  path: string,
  output: CompactOutput,
  done: (bytes: number) => void,
): Io<void> {
  const { structure } = moved;
  const parts = structure.dataset(node);
  const { layout, dtype, space } = parts;
  if (!layout || layout.kind === 'compact') {
    if (layout && layout.data.length > 0) refusePointers();
    return;
  }
  if (layout.kind === 'virtual') {
    yield* moved.takeMappings(node, layout);
    return;
  }
  if (layout.kind === 'contiguous') {
    if (layout.address === UNDEFINED || layout.size === 0) return;
    refusePointers();
    moved.placeContiguous(node, yield* copy(layout.address, layout.size), layout.size);
    return;
  }
  const [version = 0, , flags = 0] = node.message(MESSAGE.layout)?.content ?? [];
  if (version >= 4 && flags & 1) throw unsupported('its chunks at the edge are stored without filters');
  if (space.kind !== 'simple') throw unsupported('it has chunks but no dimensions');
  const { chunk, elementSize, index } = layout;
  const grid = { maxShape: space.maxShape, chunk, elementSize, filtered: parts.filters.length > 0 };
  const chunks = yield* readChunkIndex(structure.loader.file, index, grid);
  if (chunks.length > 0) refusePointers();
  const placed = [];
  for (const each of chunks) placed.push({ ...each, address: yield* copy(each.address, each.size) });
  moved.placeChunks(node, parts, placed);

  function* copy(address: number, size: number): Io<number> {
    let first = -1;
    for (let at = 0; at < size; at += COPY_BYTES) {
      const bytes = new Uint8Array(Math.min(COPY_BYTES, size - at));
      yield* structure.loader.file.readInto(bytes, address + at, 'data');
      const offset = yield* output.write(bytes);
      if (first < 0) first = offset;
      done(bytes.length);
    }
    return first;
  }

  function refusePointers(): void {
    if (containsVlen(dtype) || containsReference(dtype))
      throw unsupported('its elements point into the file: variable-length data or references');
  }

  function unsupported(why: string): H5LogError {
    return new H5LogError('UNSUPPORTED', `${path} cannot be copied: ${why}`, { object: path });
  }
}
