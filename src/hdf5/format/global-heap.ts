// The global heap, which holds values of variable length: collections are read and built (HDF5 file format specification,
// III.E).

import { formatError } from '../../base/errors.ts';
import { visitHeapIds } from '../../dtype/heap-ids.ts';
import type { DType } from '../../dtype/model.ts';
import type { Io } from '../../storage/io.ts';
import { putU64 } from './byte-writer.ts';
import { Budget, type FileBytes } from './file-bytes.ts';

/** libhdf5 refuses smaller collections. */
const MIN_COLLECTION = 4096;
/** A collection of this size is not added to: reading one value means to read its collection. */
const FULL_COLLECTION = 64 * 1024;
/** Bytes before the objects of a collection, and before each object. */
const HEADER = 16;

/** Reads the objects of a collection by their index, and the size of the collection. */
export function* readCollection(
  file: FileBytes,
  address: number,
): Io<{ objects: Map<number, Uint8Array>; size: number }> {
  const head = yield* file.cursor(address, 8 + file.lengthSize, 'global heap');
  head.signature('GCOL');
  head.expect(1, 'version of the global heap');
  head.skip(3);
  const size = head.uint(file.lengthSize);
  const cursor = yield* file.cursor(address, size, 'global heap');
  // The headers of a collection and of its objects are padded to 8 bytes, where lengths are short.
  const padding = (8 - (file.lengthSize % 8)) % 8;
  cursor.at = 8 + file.lengthSize + padding;
  const objects = new Map<number, Uint8Array>();
  while (cursor.left >= 8 + file.lengthSize + padding) {
    const index = cursor.u16();
    cursor.skip(6);
    const length = cursor.uint(file.lengthSize);
    if (index === 0) break; // the free space, which comes last
    cursor.skip(padding);
    objects.set(index, cursor.take(length, 'global heap object'));
    cursor.skip(Math.min(cursor.left, (8 - (length % 8)) % 8));
  }
  return { objects, size };
}

type Collection = Map<number, Uint8Array>;
/** The heap object with an index in the collection at an address, if it is known. */
export type HeapLookup = (address: number, index: number) => Uint8Array | undefined;

/** The global heap of a file. Collections are read once; `load` reads those that some values need, then they can be looked up. */
export class GlobalHeap {
  readonly #file: FileBytes;
  readonly #collections = new Map<number, Collection>();
  readonly #collectionBytes: Budget;

  constructor(file: FileBytes) {
    this.#file = file;
    this.#collectionBytes = new Budget(file);
  }

  /** Reads every collection that some elements need, also for nested values. `pending` has objects that are not in the file yet. */
  *load(dtype: DType, data: Uint8Array, count: number, pending?: HeapLookup): Io<void> {
    for (;;) {
      const missing = new Set<number>();
      const contentOf = this.contents(pending);
      visitHeapIds(dtype, data, count, (address, index) => {
        const content = contentOf(address, index);
        if (!content && !this.#collections.has(address)) missing.add(address);
        return content;
      });
      if (missing.size === 0) return;
      for (const address of missing) yield* this.#read(address);
    }
  }

  *#read(address: number): Io<void> {
    const { objects, size } = yield* readCollection(this.#file, address);
    this.#collectionBytes.spend(size, address, 'global heap collections');
    this.#collections.set(address, objects);
  }

  /** The object at an address and index. */
  *object(address: number, index: number): Io<Uint8Array> {
    if (!this.#collections.has(address)) yield* this.#read(address);
    const content = this.get(address, index);
    if (!content) throw formatError(`object ${index} of the heap at ${address} is missing`);
    return content;
  }

  get(address: number, index: number): Uint8Array | undefined {
    return this.#collections.get(address)?.get(index);
  }

  /**
   * Looks objects up for one walk through nested values. No object is used twice, so a walk that meets more bytes than the file
   * holds is in a cycle and throws.
   */
  contents(pending?: HeapLookup): HeapLookup {
    const budget = new Budget(this.#file);
    return (address, index) => {
      const own = pending?.(address, index);
      if (own) return own;
      const content = this.get(address, index);
      if (content) budget.spend(content.length, address, 'heap objects');
      return content;
    };
  }
}

/** An object in a heap that is being built: the number of its collection, and its index there. */
export interface HeapId {
  readonly collection: number;
  readonly index: number;
}

/** Packs the heap objects of one commit into collections. */
export class GlobalHeapWriter {
  readonly #collections: { size: number; objects: Uint8Array[] }[] = [];

  /** Adds an object. Its bytes are copied when the collection is encoded, so they may be patched until then. */
  add(bytes: Uint8Array): HeapId {
    const needed = HEADER + Math.ceil(bytes.length / 8) * 8;
    let last = this.#collections[this.#collections.length - 1];
    if (!last || last.objects.length >= 0xffff || (last.size + needed > FULL_COLLECTION && last.objects.length > 0)) {
      last = { size: HEADER, objects: [] };
      this.#collections.push(last);
    }
    last.objects.push(bytes);
    last.size += needed;
    return { collection: this.#collections.length - 1, index: last.objects.length };
  }

  /** The size of each collection in the file. */
  sizes(): number[] {
    return this.#collections.map(({ size }) => paddedSize(size));
  }

  /** Encodes a collection. */
  encode(collection: number): Uint8Array {
    const { size, objects } = this.#collections[collection] as { size: number; objects: Uint8Array[] };
    const total = paddedSize(size);
    const bytes = new Uint8Array(total);
    const view = new DataView(bytes.buffer);
    bytes.set([0x47, 0x43, 0x4f, 0x4c, 1]);
    putU64(view, 8, total);
    let at = HEADER;
    objects.forEach((object, i) => {
      view.setUint16(at, i + 1, true);
      view.setUint16(at + 2, 1, true); // reference count
      putU64(view, at + 8, object.length);
      bytes.set(object, at + HEADER);
      at += HEADER + Math.ceil(object.length / 8) * 8;
    });
    // The free space is object 0, whose size includes its header.
    if (total - at >= HEADER) putU64(view, at + 8, total - at);
    return bytes;
  }
}

function paddedSize(size: number): number {
  return Math.max(MIN_COLLECTION, Math.ceil(size / 8) * 8);
}
