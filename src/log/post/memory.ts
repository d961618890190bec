import { H5LogError } from '../../base/errors.ts';
import { checkNames } from '../../base/options.ts';
import { gather, scatter } from '../../space/copy.ts';
import { type Blocks, dataLength, resolve, type Where } from '../../space/select.ts';
import { checkShape } from '../../space/shape.ts';

/** An array in memory, and which of its elements are meant. */
export interface MemoryLayout {
  readonly shape: readonly number[];
  readonly where?: Where;
}

/** The same, worked out. */
export interface InMemory {
  readonly blocks: Blocks;
  readonly shape: readonly number[];
}

/** Works a memory selection out; it must hold as many elements as the selection in the dataset at `path`. */
export function memoryBlocks(path: string, memory: MemoryLayout, wanted: number): InMemory {
  checkNames('memory', memory, { shape: true, where: true });
  const { shape, where } = memory;
  const blocks = resolve(where, checkShape(shape));
  if (dataLength(blocks) !== wanted) {
    throw new H5LogError(
      'SELECTION',
      `${path}: ${dataLength(blocks)} elements selected in memory, ${wanted} in the dataset`,
      { object: path },
    );
  }
  return { blocks, shape };
}

/** The elements that the selection picks from the array, in the selection's order. */
export function takeFrom(array: Uint8Array, { blocks, shape }: InMemory, size: number): Uint8Array {
  const packed = new Uint8Array(blocks.size * size);
  let at = 0;
  for (let i = 0; i < blocks.length; i++)
    at = gather(array, 0, shape, blocks.starts, blocks.counts, size, packed, at, i * blocks.rank);
  return blocks.elementOf ? reordered(packed, blocks.elementOf, size) : packed;
}

/** Puts packed elements where the selection says; the rest of the array stays as it is. */
export function putInto(array: Uint8Array, { blocks, shape }: InMemory, packed: Uint8Array, size: number): void {
  let at = 0;
  for (let i = 0; i < blocks.length; i++)
    at = scatter(packed, at, array, 0, shape, blocks.starts, blocks.counts, size, i * blocks.rank);
}

/** Element `order[i]` of some bytes for each i. */
export function reordered(bytes: Uint8Array, order: Float64Array, size: number): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(order.length * size);
  for (let i = 0; i < order.length; i++) {
    const from = (order[i] as number) * size;
    out.set(bytes.subarray(from, from + size), i * size);
  }
  return out;
}
