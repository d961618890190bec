// The global heap, which holds values of variable length: collections are read and built (HDF5 file format specification,
// III.E).

import { formatError } from '../../base/errors.ts';
import type { HeapObjects, HeapPlace } from '../../dtype/decode.ts';
import { type Pointer, pointersOf, readAddress, visitHeapIds } from '../../dtype/heap-ids.ts';
import { type DType, fullType, HEAP_ID_SIZE } from '../../dtype/model.ts';
import type { Io } from '../../storage/io.ts';
import { putU64 } from './byte-writer.ts';
import { Cursor } from './cursor.ts';
import { Budget, type FileBytes } from './file-bytes.ts';

/** libhdf5 refuses smaller collections. */
const MIN_COLLECTION = 4096;
/** A collection of this size is not added to: reading one value means to read its collection. */
export const FULL_COLLECTION = 64 * 1024;
/** Bytes before the objects of a collection, and before each object. */
export const COLLECTION_HEADER = 16;
const HEADER = COLLECTION_HEADER;

/** Of ASCII bytes, and of no others, it gives what they say; of all it gives a character a byte. */
const latin = new TextDecoder('latin1');

/** Scratch: the objects of a collection that is being read. */
let triples = new Float64Array(3 * 256);

/** A collection of heap objects: its bytes, and where each object is in them. No object is made for a value before it is asked for. */
class Collection {
  readonly size: number;
  readonly #bytes: Uint8Array;
  /** Triples of index, start and length, in ascending order of indexes. */
  readonly #objects: Float64Array;
  #text: string | null = null;

  constructor(bytes: Uint8Array, offset: number, lengthSize: number) {
    this.#bytes = bytes;
    this.size = bytes.length;
    const cursor = new Cursor(bytes, offset);
    // The headers of a collection and of its objects are padded to 8 bytes, where lengths are short.
    const header = 8 + Math.ceil(lengthSize / 8) * 8;
    cursor.at = header;
    let found = 0;
    let last = 0;
    let isSorted = true;
    while (cursor.left >= header) {
      const { at } = cursor;
      const index = (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
      if (index === 0) break; // the free space, which comes last
      // Most objects are short: two bytes of their length are enough.
      let length = (bytes[at + 8] as number) | ((bytes[at + 9] as number) << 8);
      for (let i = 2; i < lengthSize && length >= 0; i++) if (bytes[at + 8 + i] !== 0) length = -1;
      if (length < 0 || lengthSize < 2) {
        cursor.at = at + 8;
        length = cursor.uint(lengthSize);
      }
      cursor.at = at + header;
      if (found === triples.length) {
        const smaller = triples;
        triples = new Float64Array(found * 2);
        triples.set(smaller);
      }
      triples[found] = index;
      triples[found + 1] = cursor.need(length, 'global heap object');
      triples[found + 2] = length;
      found += 3;
      cursor.at = Math.min(cursor.end, cursor.at + ((8 - (length % 8)) % 8));
      if (index <= last) isSorted = false;
      last = index;
    }
    const objects = triples.slice(0, found);
    this.#objects = isSorted ? objects : Float64Array.from(sorted([...objects]));
  }

  get(index: number): Uint8Array | undefined {
    const at = this.#find(index);
    if (at < 0) return undefined;
    const start = this.#objects[at + 1] as number;
    return this.#bytes.subarray(start, start + (this.#objects[at + 2] as number));
  }

  /** Tells where an object is; false if there is none. */
  locate(index: number, place: HeapPlace): boolean {
    const at = this.#find(index);
    if (at < 0) return false;
    place.bytes = this.#bytes;
    place.start = this.#objects[at + 1] as number;
    place.length = this.#objects[at + 2] as number;
    return true;
  }

  text(): string {
    this.#text ??= latin.decode(this.#bytes);
    return this.#text;
  }

  /** Where the triple of an object is; -1 for none. */
  #find(index: number): number {
    const objects = this.#objects;
    // Nearly always index 1 is the first object, 2 the second.
    let at = 3 * (index - 1);
    if (objects[at] !== index) {
      let [low, high] = [0, objects.length / 3];
      while (low < high) {
        const middle = (low + high) >>> 1;
        if ((objects[middle * 3] as number) < index) low = middle + 1;
        else high = middle;
      }
      at = low * 3;
      if (objects[at] !== index) return -1;
    }
    return at;
  }

  *indexes(): Iterable<number> {
    for (let i = 0; i < this.#objects.length; i += 3) yield this.#objects[i] as number;
  }
}

/** Sorts triples of heap objects by index, for look-ups; of two objects with the same index the last counts. */
function sorted(triples: readonly number[]): number[] {
  const byIndex = new Map<number, number>();
  for (let i = 0; i < triples.length; i += 3) byIndex.set(triples[i] as number, i);
  const order = [...byIndex].sort(([a], [b]) => a - b);
  return order.flatMap(([, i]) => triples.slice(i, i + 3));
}

/** Reads the objects of a collection by their index, and the size of the collection. */
export function* readCollection(
  file: FileBytes,
  address: number,
): Io<{ objects: Map<number, Uint8Array>; size: number }> {
  const collection = yield* openCollection(file, address);
  const objects = new Map<number, Uint8Array>();
  for (const index of collection.indexes()) objects.set(index, collection.get(index) as Uint8Array);
  return { objects, size: collection.size };
}

function* openCollection(file: FileBytes, address: number): Io<Collection> {
  const size = yield* collectionSize(file, address);
  return new Collection(yield* file.read(address, size, 'global heap'), file.base + address, file.lengthSize);
}

/** The size of a collection, without a look at its objects. */
export function* collectionSize(file: FileBytes, address: number): Io<number> {
  return sizeIn(yield* file.cursor(address, 8 + file.lengthSize, 'global heap'), file.lengthSize);
}

/** The size that the header of a collection gives. */
function sizeIn(head: Cursor, lengthSize: number): number {
  head.signature('GCOL');
  head.expect(1, 'version of the global heap');
  head.skip(3);
  return head.uint(lengthSize);
}

/** The heap object with an index in the collection at an address, if it is known. */
export type HeapLookup = HeapObjects;

/** A file with heap collections. */
interface HeapSource {
  readonly file: FileBytes;
  /** Where something is that was written at an address; throws if it cannot be there. Without it, it is where it was. */
  readonly locate?: (address: number, size: number) => number;
}

const NOTHING = new Uint8Array(0);

/** Bytes of collections that were read for data and stay cached. */
const CACHED = 16 * 2 ** 20;
/** Contents of more bytes than the file holds can be asked for: by boxes that overlap. So much is always allowed. */
const LEAST_BUDGET = 64 * 2 ** 20;
/** Collections that lie no further apart are read together, up to so many bytes. */
const WINDOW = 4 * 2 ** 20;

/**
 * The global heap of a file. Collections of attributes are read once and stay in memory; `load` reads those that some values need, then they
 * can be looked up. Those of data are cached, up to a limit. Upper bits of an index name the file: a log may have its data in several.
 */
export class GlobalHeap {
  readonly #sources: readonly HeapSource[];
  readonly #file: FileBytes;
  readonly #collections = new Map<number, Collection>();
  readonly #collectionBytes: Budget;
  /** Collections of data by source, in the order of their last use. */
  readonly #recent: Map<number, Collection>[];
  #recentBytes = 0;

  constructor(file: FileBytes, sources: readonly HeapSource[] = [{ file }]) {
    this.#file = file;
    this.#sources = sources;
    this.#collectionBytes = new Budget(file);
    this.#recent = sources.map(() => new Map());
  }

  /** Reads every collection that some elements need, also for nested values. `pending` has objects that are not in the file yet. */
  *load(dtype: DType, data: Uint8Array, count: number, pending?: HeapLookup): Io<void> {
    for (;;) {
      const missing = this.missing(dtype, data, count, pending);
      if (missing.size === 0) return;
      yield* this.ahead(missing);
      for (const address of missing) yield* this.#read(address);
    }
  }

  /** The collections that some elements need and that were not read. */
  missing(dtype: DType, data: Uint8Array, count: number, pending?: HeapLookup): Set<number> {
    const missing = new Set<number>();
    const contentOf = this.contents(pending);
    visitHeapIds(dtype, data, count, (address, index) => {
      const content = contentOf(address, index);
      if (!content && !this.#collections.has(address)) missing.add(address);
      return content;
    });
    return missing;
  }

  /** Collections will be needed. */
  ahead(collections: Iterable<number>): Io<void> {
    return this.#file.ahead(Array.from(collections, (address) => ({ address, length: MIN_COLLECTION })));
  }

  *#read(address: number): Io<void> {
    const collection = yield* openCollection(this.#file, address);
    this.#collectionBytes.spend(collection.size, address, 'global heap collections');
    this.#collections.set(address, collection);
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

  /** Reads what the elements of one read need, nested values included. It stays in memory as long as somebody has the result. */
  *lookup(dtype: DType, data: Uint8Array, count: number, pending?: HeapLookup): Io<HeapLookup> {
    const found = this.#sources.map(() => new Map<number, Collection>());
    const isNested = pointersOf(dtype).some(hasInner);
    for (;;) {
      const missing = this.#sources.map(() => new Set<number>());
      let isComplete = true;
      let [lastAddress, lastSource] = [-1, -1];
      const contentOf = this.#contents(found, pending);
      const note = (address: number, index: number): Uint8Array | undefined => {
        const source = index >>> 16;
        // Neighbours mostly lie in the same collection, and contents are needed only for what is nested.
        if (address === lastAddress && source === lastSource && !isNested) return undefined;
        const content = contentOf(address, index);
        [lastAddress, lastSource] = [address, source];
        if (content || found[source]?.has(address)) return content;
        const known = this.#recent[source]?.get(address);
        if (known) {
          found[source]?.set(address, known);
          return contentOf(address, index);
        }
        missing[source]?.add(address);
        if (missing[source]) isComplete = false;
        return undefined;
      };
      if (!eachId(dtype, data, count, note)) visitHeapIds(dtype, data, count, note);
      if (isComplete) return this.#contents(found, pending);
      for (const [source, addresses] of missing.entries())
        yield* this.#readAll(source, [...addresses], found[source] as Map<number, Collection>);
    }
  }

  /** Reads collections, neighbours together. */
  *#readAll(source: number, addresses: number[], found: Map<number, Collection>): Io<void> {
    const { file, locate } = this.#sources[source] as HeapSource;
    const places = addresses.map((address) => [locate ? locate(address, HEADER) : address, address] as const);
    places.sort(([a], [b]) => a - b);
    const [read, parsed] = [new Budget(file), new Budget(file)];
    for (let i = 0; i < places.length; ) {
      const [from] = places[i] as readonly [number, number];
      let next = i + 1;
      while (next < places.length) {
        const at = (places[next] as readonly [number, number])[0];
        if (at - (places[next - 1] as readonly [number, number])[0] > 2 * FULL_COLLECTION || at - from > WINDOW) break;
        next++;
      }
      const last = (places[next - 1] as readonly [number, number])[0];
      const end = last + (yield* collectionSize(file, last));
      read.spend(end - from, from, 'global heap collections');
      const bytes = yield* file.readCopy(from, end - from, 'global heap');
      for (; i < next; i++) {
        const [at, address] = places[i] as readonly [number, number];
        const head = new Cursor(bytes, file.base + from, at - from);
        const size = sizeIn(head, file.lengthSize);
        head.at = at - from;
        parsed.spend(size, at, 'global heap collections');
        locate?.(address, size);
        const collection = new Collection(head.take(size, 'global heap'), file.base + at, file.lengthSize);
        found.set(address, collection);
        this.#keep(source, address, collection);
      }
    }
  }

  #keep(source: number, address: number, collection: Collection): void {
    const recent = this.#recent[source] as Map<number, Collection>;
    if (recent.has(address)) return; // another read was faster
    recent.set(address, collection);
    this.#recentBytes += collection.size;
    for (const map of this.#recent) {
      for (const [oldest, { size }] of map) {
        if (this.#recentBytes <= CACHED) return;
        map.delete(oldest);
        this.#recentBytes -= size;
      }
    }
  }

  #contents(found: readonly ReadonlyMap<number, Collection>[], pending: HeapLookup | undefined): HeapLookup {
    let spent = 0;
    const most = Math.max(
      LEAST_BUDGET,
      this.#sources.reduce((sum, { file }) => sum + file.end, 0),
    );
    let [lastAddress, lastSource] = [-1, -1];
    let last: Collection | undefined;
    const find = (address: number, index: number): Collection | undefined => {
      const source = index >>> 16;
      // One that was not found may have been added since.
      if (!last || address !== lastAddress || source !== lastSource) {
        last = found[source]?.get(address) ?? (source === 0 ? this.#collections.get(address) : undefined);
        lastAddress = address;
        lastSource = source;
      }
      return last;
    };
    const spend = (bytes: number, address: number): void => {
      spent += bytes;
      if (spent > most) throw formatError('heap objects that overlap: together they are longer than the file', address);
    };
    const place: HeapPlace = { bytes: NOTHING, start: 0, length: 0, text: () => last?.text() ?? '' };
    const lookup = (address: number, index: number): Uint8Array | undefined => {
      const own = pending?.(address, index);
      if (own) return own;
      const content = find(address, index)?.get(index & 0xffff);
      if (content) spend(content.length, address);
      return content;
    };
    return import.meta.page
      ? lookup
      : Object.assign(lookup, {
          place: (address: number, index: number): HeapPlace | undefined => {
            if (!find(address, index)?.locate(index & 0xffff, place)) return undefined;
            spend(place.length, address);
            return place;
          },
        });
  }
}

/** Visits the first of all neighbours with the same collection, of elements that are one id each; false for other types. */
function eachId(
  dtype: DType,
  data: Uint8Array,
  count: number,
  visit: (address: number, index: number) => void,
): boolean {
  const [pointer, ...more] = pointersOf(dtype);
  if (!pointer || more.length > 0 || pointer.kind !== 'heap' || hasInner(pointer)) return false;
  if (fullType(dtype).size !== HEAP_ID_SIZE || data.byteOffset % 4 !== 0 || data.length < count * HEAP_ID_SIZE)
    return false;
  const words = new Uint32Array(data.buffer, data.byteOffset, count * 4);
  let [low, high, source] = [0, 0, 0];
  for (let i = 0; i < words.length; i += 4) {
    if (words[i + 1] === low && words[i + 2] === high && (words[i + 3] as number) >>> 16 === source) continue;
    if (words[i] === 0) continue;
    low = words[i + 1] as number;
    high = words[i + 2] as number;
    source = (words[i + 3] as number) >>> 16;
    const address = readAddress(data, i * 4 + 4);
    if (address !== 0) visit(address, words[i + 3] as number);
  }
  return true;
}

/** Whether the content of a pointer has pointers itself. */
function hasInner({ kind, base, inner }: Pointer): boolean {
  return kind === 'heap' ? pointersOf(base).length > 0 : inner.some(hasInner);
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
    putCollectionHeader(bytes, size);
    let at = HEADER;
    objects.forEach((object, i) => {
      view.setUint16(at, i + 1, true);
      view.setUint16(at + 2, 1, true); // reference count
      putU64(view, at + 8, object.length);
      bytes.set(object, at + HEADER);
      at += HEADER + Math.ceil(object.length / 8) * 8;
    });
    return bytes;
  }
}

/** Writes what a collection has besides its objects, which end at `used`. */
export function putCollectionHeader(bytes: Uint8Array, used: number): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  bytes.set([0x47, 0x43, 0x4f, 0x4c, 1]);
  putU64(view, 8, bytes.length);
  // The free space is object 0, whose size includes its header.
  if (bytes.length - used >= HEADER) putU64(view, used + 8, bytes.length - used);
}

/** The size in the file of a collection whose objects end at `size`. */
export function paddedSize(size: number): number {
  return Math.max(MIN_COLLECTION, Math.ceil(size / 8) * 8);
}
