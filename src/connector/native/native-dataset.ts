import { H5LogError } from '../../base/errors.ts';
import { arrayKind } from '../../dtype/convert.ts';
import { decodeValues } from '../../dtype/decode.ts';
import { containsVlen } from '../../dtype/describe.ts';
import type { TypedArray } from '../../dtype/model.ts';
import type { DatasetParts } from '../../hdf5/graph/dataset-header.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import type { PostOptions } from '../../log/post/dataset.ts';
import { Elements, notData, wrongLength } from '../../log/post/elements.ts';
import { type InMemory, memoryBlocks, putInto, reordered, takeFrom } from '../../log/post/memory.ts';
import type { ReadRequest } from '../../log/read/reading.ts';
import { manyInto, manyLength } from '../../space/check-boxes.ts';
import { type Blocks, dataLength, resolve, type Where } from '../../space/select.ts';
import { type Coordinates, checkMaxShape, checkShape, sizeOf } from '../../space/shape.ts';
import { checkSource } from './data-source.ts';
import { readBlocks, type Transfer, writeBlocks } from './data-transfer.ts';
import { type Calls, libraryError } from './library.ts';
import { memoryForm } from './memory-form.ts';
import type { NativeFile } from './native-file.ts';
import { type Packed, packValues } from './packed.ts';
import { resolverFor } from './references.ts';

/** A dataset of a regular file: the structure says what it is, h5wasm moves its data. Blocking, and done when it returns. */
export class NativeDataset {
  readonly file: NativeFile;
  readonly path: string;
  readonly elements: Elements;
  #node: ObjectNode;
  #generation: number;
  #space: Uint8Array | undefined;
  #parts: DatasetParts;

  constructor(file: NativeFile, path: string, node: ObjectNode) {
    this.file = file;
    this.path = path;
    this.#node = node;
    this.#generation = file.generation;
    this.#space = node.message(MESSAGE.dataspace)?.content;
    this.#parts = withTrueShape(file, path, file.structure.dataset(node));
    this.elements = new Elements(this.#parts.dtype);
  }

  /** The object in the structure as it is now. */
  get node(): ObjectNode {
    const { file, path } = this;
    // It may be read anew by asking for it, so this comes first.
    const { root } = file.structure;
    if (file.generation === this.#generation) return this.#node;
    const found = file.find(path, { file, node: root, path: '/' });
    if (found?.node.kind !== 'dataset')
      throw new H5LogError('NOT_FOUND', `${path} is no longer a dataset`, { file: file.name, object: path });
    this.#node = found.node;
    this.#generation = file.generation;
    return this.#node;
  }

  get parts(): DatasetParts {
    const { node } = this;
    const space = node.message(MESSAGE.dataspace)?.content;
    if (space !== this.#space) {
      this.#parts = withTrueShape(this.file, this.path, this.file.structure.dataset(node));
      this.#space = space;
    }
    return this.#parts;
  }

  get shape(): readonly number[] {
    const { space } = this.parts;
    return space.kind === 'simple' ? space.shape : [];
  }

  get maxShape(): readonly (number | null)[] {
    const { space } = this.parts;
    return space.kind === 'simple' ? space.maxShape : [];
  }

  // ---------------------------------------------------------------- reading

  read(where?: Where, request: ReadRequest = {}): unknown {
    return this.#read(resolve(where, this.shape), request);
  }

  /** The blocks one after the other, in the caller's order. */
  readMany(starts: Coordinates, counts: Coordinates, request: ReadRequest = {}): unknown {
    return this.#read(this.#many(starts, counts), request);
  }

  #read(blocks: Blocks, request: ReadRequest): unknown {
    const { path, elements } = this;
    const { into, raw } = request;
    const memory = request.memory ? memoryBlocks(path, request.memory, dataLength(blocks)) : null;
    this.#checkInto(into, memory ? sizeOf(memory.shape) : dataLength(blocks));
    const transfer = this.#transfer(false);
    if (raw && transfer.vlen) {
      throw new H5LogError('UNSUPPORTED', `${path}: variable-length data has no raw bytes outside the file`, {
        object: path,
      });
    }
    const packed: Packed = { bytes: roomFor(path, blocks.size, elements.size), contents: [] };
    readBlocks(transfer, blocks, packed);
    let { bytes } = packed;
    let count = blocks.size;
    if (blocks.elementOf) {
      bytes = reordered(bytes, blocks.elementOf, elements.size);
      count = blocks.elementOf.length;
    }
    if (memory) {
      if (into) return this.#spreadInto(into, memory, bytes);
      const spread = new Uint8Array(sizeOf(memory.shape) * elements.size);
      putInto(spread, memory, orderedFor(memory, bytes, elements.size), elements.size);
      [bytes, count] = [spread, sizeOf(memory.shape)];
    }
    if (raw) return bytes;
    if (!into) return this.#decode(bytes, count, packed.contents);
    elements.decodeInto(bytes, count, into);
    return into;
  }

  #checkInto(into: TypedArray | undefined, total: number): void {
    if (into === undefined) return;
    if (arrayKind(into) === undefined)
      throw new H5LogError('DTYPE', `${this.path}: 'into' must be a typed array`, { object: this.path });
    if (into.length !== total) {
      throw new H5LogError('SHAPE', `${this.path}: an array of ${into.length} elements to read ${total} into`, {
        object: this.path,
      });
    }
  }

  /** Puts the elements where the memory selection says; the rest of the caller's array stays as it is. */
  #spreadInto(into: TypedArray, memory: InMemory, bytes: Uint8Array): TypedArray {
    const { elements } = this;
    const { size } = memory.blocks;
    const values = new (into.constructor as new (n: number) => TypedArray)(size);
    elements.decodeInto(orderedFor(memory, bytes, elements.size), size, values);
    const target = new Uint8Array(into.buffer, into.byteOffset, into.byteLength);
    const source = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    putInto(target, memory, source, values.BYTES_PER_ELEMENT);
    return into;
  }

  #decode(bytes: Uint8Array<ArrayBuffer>, count: number, contents: readonly Uint8Array[]): unknown {
    const { dtype } = this.parts;
    if (this.elements.native !== undefined) return this.elements.decode(bytes, count);
    return decodeValues(dtype, bytes, count, resolverFor(this.file, dtype, bytes, count, contents));
  }

  // ---------------------------------------------------------------- writing

  write(data: unknown, where?: Where, options: PostOptions = {}): void {
    const blocks = resolve(where, this.shape);
    const wanted = dataLength(blocks);
    this.#write(data, blocks, options.memory ? memoryBlocks(this.path, options.memory, wanted) : null);
  }

  writeMany(data: unknown, starts: Coordinates, counts: Coordinates): void {
    this.#write(data, this.#many(starts, counts), null, true);
  }

  #write(data: unknown, blocks: Blocks, memory: InMemory | null, alone = false): void {
    const { path, elements, file } = this;
    file.writable();
    if (data === undefined || data === null) throw notData(path, data);
    const transfer = this.#transfer(true);
    const wanted = memory ? sizeOf(memory.shape) : dataLength(blocks);
    const have = elements.count(data);
    if (have !== wanted) throw wrongLength(path, have, wanted);
    if (blocks.size === 0) return;
    const packed = this.#pack(data, wanted);
    let { bytes } = packed;
    if (memory) bytes = takeFrom(bytes, memory, elements.size) as Uint8Array<ArrayBuffer>;
    if (blocks.itemOf) bytes = reordered(bytes, blocks.itemOf, elements.size);
    writeBlocks(transfer, blocks, { bytes, contents: packed.contents }, alone);
  }

  #pack(data: unknown, count: number): Packed {
    const { dtype } = this.parts;
    const { elements } = this;
    if (elements.canWait(data)) {
      const bytes = new Uint8Array(count * elements.size);
      elements.encode(data, count, bytes, 0);
      return { bytes, contents: [] };
    }
    return packValues(dtype, data, count, (path) => this.file.referenceTo(path));
  }

  /** Changes the shape, within maxShape. */
  resize(shape: readonly number[]): void {
    this.file.writable();
    const sizes = checkShape(shape);
    checkMaxShape(this.maxShape, sizes);
    this.file.resize(this.path, this.node, this.parts, sizes);
  }

  #many(starts: Coordinates, counts: Coordinates): Blocks {
    const rank = this.shape.length;
    const n = Math.max(0, Math.floor(manyLength(starts, rank)));
    const [flatStarts, flatCounts] = [new Float64Array(n * rank), new Float64Array(n * rank)];
    const { length, size } = manyInto(starts, counts, this.shape, flatStarts, flatCounts, 0);
    return { rank, length, size, starts: flatStarts, counts: flatCounts, itemOf: null, elementOf: null };
  }

  #transfer(writing: boolean): Transfer {
    const { file, path, parts, node } = this;
    checkSource(file, path, parts, { externalFiles: node.message(MESSAGE.externalFiles) !== undefined, writing });
    const { layout, dtype } = parts;
    return {
      file,
      path,
      scalar: parts.space.kind === 'scalar',
      form: memoryForm(dtype, path, () => factsOf(file, path)),
      vlen: containsVlen(dtype),
      filters: parts.filters,
      cost: { size: this.elements.size, chunk: layout?.kind === 'chunked' ? layout.chunk : null },
    };
  }
}

/** Memory for so many elements. A damaged file may claim more than there can be. */
function roomFor(path: string, count: number, size: number): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(count * size);
  } catch (cause) {
    throw new H5LogError('SELECTION', `${path}: ${count} elements of ${size} bytes are too many to read at once`, {
      object: path,
      cause,
    });
  }
}

/** An unlimited virtual dataset is as long as its sources are now; its header says how long they were once. */
function withTrueShape(file: NativeFile, path: string, parts: DatasetParts): DatasetParts {
  const { space, layout } = parts;
  if (layout?.kind !== 'virtual' || space.kind !== 'simple' || file.alone || !space.maxShape.includes(null))
    return parts;
  const { shape } = factsOf(file, path);
  return shape ? { ...parts, space: { ...space, shape } } : parts;
}

function factsOf(file: NativeFile, path: string): ReturnType<Calls['get_dataset_metadata']> {
  const failure = libraryError('STORAGE', `${path} could not be looked at`, file.name, path);
  return file.reading((id) => file.library.call((calls) => calls.get_dataset_metadata(id, path), failure));
}

function orderedFor(memory: InMemory, bytes: Uint8Array, size: number): Uint8Array {
  return memory.blocks.itemOf ? reordered(bytes, memory.blocks.itemOf, size) : bytes;
}
