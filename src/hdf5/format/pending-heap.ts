// Values of variable length on their way into a file. The interface, for whoever writes data:
//
//   const heap = new PendingHeap(0, (path) => number);         // the number that stands for a reference until it is placed
//   encodeValues(dtype, values, count, heap)                   // element bytes, whose heap ids and references are temporary
//   heap.get(address, index)                                   // looks a temporary id up: for reads before the flush
//   const placed = new PlacedHeap([heap], address, { ... });   // once it is known where the collections will be
//   placed.patch(dtype, bytes, count)                          // element bytes (a copy: heap and elements stay pending if the
//                                                              // flush fails) get the ids of the file
//   placed.images                                              // the collections, to be written at `address`, one after the other
//
// Contents are packed into images of collections as they will be in the file: no object is kept for a value.

import { formatError } from '../../base/errors.ts';
import type { ValueSink } from '../../dtype/encode.ts';
import { PENDING, pointersOf, readAddress, readUint32, visitPointers } from '../../dtype/heap-ids.ts';
import { type DType, fullType } from '../../dtype/model.ts';
import { COLLECTION_HEADER, FULL_COLLECTION, type HeapLookup, paddedSize, putCollectionHeader } from './global-heap.ts';

/** Bytes before the content of an object. */
const OBJECT_HEADER = 16;
/** Most values of a post are small, and many files have few: an image grows from this size. */
const FIRST_IMAGE = 4096;

interface Image {
  bytes: Uint8Array;
  used: number;
  objects: number;
}

/** A state of a pending heap, to which it can be taken back. */
interface HeapMark {
  readonly collections: number;
  readonly used: number;
  readonly objects: number;
  readonly held: number;
}

/** Contents that wait for the next commit. A temporary id has the number of a collection, and in place of the index the position in it. */
export class PendingHeap implements ValueSink {
  readonly #images: Image[] = [];
  /** Bytes that all but the last take in a file. */
  #before = 0;
  readonly #reference: (path: string) => number;
  /** Number of the first collection. Heaps that are read together must not share numbers. */
  readonly first: number;
  /** Bytes of the contents, each with its header. */
  held = 0;
  chunk: Uint8Array = new Uint8Array(0);
  at = 0;

  /** `reference` gives the number that stands for the object at a path; it throws if there is none. */
  constructor(first: number, reference: (path: string) => number) {
    this.first = first;
    this.#reference = reference;
  }

  /** The number behind those of its collections. */
  get next(): number {
    return this.first + this.#images.length;
  }

  /** Bytes that the collections take in a file. */
  get size(): number {
    const last = this.#images.at(-1);
    return this.#before + (last ? paddedSize(last.used) : 0);
  }

  open(size: number): void {
    const needed = OBJECT_HEADER + Math.ceil(size / 8) * 8;
    let last = this.#images.at(-1);
    if (!last || (last.used + needed > FULL_COLLECTION && last.objects > 0)) {
      this.#before = this.size;
      last = {
        bytes: new Uint8Array(Math.max(FIRST_IMAGE, COLLECTION_HEADER + needed)),
        used: COLLECTION_HEADER,
        objects: 0,
      };
      this.#images.push(last);
    }
    if (last.used + needed > last.bytes.length) {
      const larger = new Uint8Array(Math.max(last.used + needed, Math.min(FULL_COLLECTION, last.bytes.length * 4)));
      larger.set(last.bytes);
      last.bytes = larger;
    }
    this.chunk = last.bytes;
    this.at = last.used + OBJECT_HEADER;
  }

  close(size: number, length: number, to: Uint8Array, idAt: number): void {
    const last = this.#images.at(-1) as Image;
    const { bytes, used } = last;
    last.objects++;
    bytes.fill(0, used, used + OBJECT_HEADER);
    bytes[used] = last.objects;
    bytes[used + 1] = last.objects >>> 8;
    bytes[used + 2] = 1; // reference count
    putNumber(bytes, used + 8, size);
    const end = used + OBJECT_HEADER + size;
    last.used = Math.ceil(end / 8) * 8;
    this.held += last.used - used;
    bytes.fill(0, end, last.used);
    putId(to, idAt, length, PENDING + this.next - 1, used);
  }

  reference(path: string, to: Uint8Array, at: number): void {
    putNumber(to, at, this.#reference(path));
  }

  mark(): HeapMark {
    const last = this.#images.at(-1);
    return { collections: this.#images.length, used: last?.used ?? 0, objects: last?.objects ?? 0, held: this.held };
  }

  /** Forgets what was added since. */
  rollback({ collections, used, objects, held }: HeapMark): void {
    this.held = held;
    this.#images.length = collections;
    const last = this.#images.at(-1);
    if (last) Object.assign(last, { used, objects });
    this.#before = this.#images.slice(0, -1).reduce((sum, image) => sum + paddedSize(image.used), 0);
  }

  /** The content of a temporary id; undefined if it is not of this heap. */
  get(address: number, position: number): Uint8Array | undefined {
    const image = this.#images[address - PENDING - this.first];
    if (!image) return undefined;
    const size = readAddress(image.bytes, position + 8);
    return image.bytes.subarray(position + OBJECT_HEADER, position + OBJECT_HEADER + size);
  }

  /** The collections as they will be in a file, but for ids in their contents. */
  images(): Uint8Array[] {
    return this.#images.map(({ bytes, used }) => {
      const image = bytes.subarray(0, paddedSize(used));
      image.fill(0, used);
      putCollectionHeader(image, used);
      return image;
    });
  }
}

/**
 * Moves what elements of a file point to into a heap: the elements get temporary ids. References get the numbers that `reference`
 * gives for those they have.
 */
export function takeContents(
  dtype: DType,
  bytes: Uint8Array,
  count: number,
  contentOf: HeapLookup,
  heap: PendingHeap,
  reference: (number: number) => number,
): void {
  visitPointers(dtype, bytes, count, (at, { kind, base }) => {
    const address = readAddress(bytes, kind === 'heap' ? at + 4 : at);
    if (address === 0) return;
    if (kind !== 'heap') {
      putNumber(bytes, at, reference(address));
      return;
    }
    const length = readUint32(bytes, at);
    const size = length * fullType(base).size;
    const index = readUint32(bytes, at + 12);
    let content = length === 0 ? NOTHING : contentOf(address, index)?.subarray(0, size);
    if (content?.length !== size) throw formatError(`heap object ${index} at ${address} has no ${size} bytes`);
    if (pointersOf(base).length > 0) {
      content = content.slice();
      takeContents(base, content, length, contentOf, heap, reference);
    }
    heap.open(size);
    heap.chunk.set(content, heap.at);
    heap.close(size, length, bytes, at);
  });
}

const NOTHING = new Uint8Array(0);

/** Finds what temporary ids stand for; heaps in the order of their numbers. */
export function pendingContents(heaps: readonly PendingHeap[]): HeapLookup {
  return (address, index) => {
    if (address < PENDING) return undefined;
    for (const heap of heaps) if (address < PENDING + heap.next) return heap.get(address, index);
    return undefined;
  };
}

/** How temporary ids become those of a file. */
interface Placing {
  /** The address of the object that a number stands for. */
  reference(number: number): number;
  /** Upper 16 bits of every index; 0 in ordinary files. */
  readonly tag?: number;
}

/** Heaps whose collections have addresses. */
export class PlacedHeap {
  /** The collections, to be written one after the other. They are final when all elements are patched. */
  readonly images: Uint8Array[];
  readonly size: number;
  /** Which image has the number of a collection. */
  readonly #places = new Map<number, number>();
  readonly #addresses: number[] = [];
  readonly #copied: boolean[];
  readonly #tag: number;
  readonly #reference: (number: number) => number;

  /** `address` is where the first collection will be. */
  constructor(heaps: readonly PendingHeap[], address: number, { reference, tag = 0 }: Placing) {
    this.images = heaps.flatMap((heap) => heap.images());
    for (const { first, next } of heaps)
      for (let number = first; number < next; number++) this.#places.set(PENDING + number, this.#places.size);
    this.#copied = this.images.map(() => false);
    this.#reference = reference;
    this.#tag = tag * 2 ** 16;
    let end = address;
    for (const { length } of this.images) {
      this.#addresses.push(end);
      end += length;
    }
    this.size = end - address;
  }

  /** Gives the elements in `bytes`, and the contents that they lead to, the ids of the file. */
  patch(dtype: DType, bytes: Uint8Array, count: number): void {
    visitPointers(dtype, bytes, count, (at, { kind, base }) => {
      const pending = readAddress(bytes, kind === 'heap' ? at + 4 : at);
      if (pending < PENDING) return; // null, or fill
      if (kind !== 'heap') {
        putNumber(bytes, at, this.#reference(pending));
        return;
      }
      const number = this.#places.get(pending) as number;
      const position = readUint32(bytes, at + 12);
      const length = readUint32(bytes, at);
      const image = this.images[number] as Uint8Array;
      const index = (image[position] as number) | ((image[position + 1] as number) << 8);
      putId(bytes, at, length, this.#addresses[number] as number, this.#tag + index);
      if (pointersOf(base).length > 0) this.#patchContent(base, number, position, length);
    });
  }

  /** The image stays pending as it is until the commit is in the file: its copy is patched. */
  #patchContent(base: DType, number: number, position: number, length: number): void {
    if (!this.#copied[number]) this.images[number] = (this.images[number] as Uint8Array).slice();
    this.#copied[number] = true;
    const image = this.images[number] as Uint8Array;
    const size = readAddress(image, position + 8);
    this.patch(base, image.subarray(position + OBJECT_HEADER, position + OBJECT_HEADER + size), length);
  }
}

/** Byte by byte: a view for each id would be garbage. */
function putUint32(bytes: Uint8Array, at: number, number: number): void {
  bytes[at] = number;
  bytes[at + 1] = number >>> 8;
  bytes[at + 2] = number >>> 16;
  bytes[at + 3] = number >>> 24;
}

function putNumber(bytes: Uint8Array, at: number, number: number): void {
  putUint32(bytes, at, number % 2 ** 32);
  putUint32(bytes, at + 4, Math.floor(number / 2 ** 32));
}

function putId(bytes: Uint8Array, at: number, length: number, address: number, index: number): void {
  putUint32(bytes, at, length);
  putNumber(bytes, at + 4, address);
  putUint32(bytes, at + 12, index);
}
