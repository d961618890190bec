import { visitHeapIds } from '../../dtype/heap-ids.ts';
import type { DType } from '../../dtype/model.ts';
import type { Io } from '../../storage/io.ts';
import { putU64 } from '../format/byte-writer.ts';
import { Budget, type FileBytes } from '../format/file-bytes.ts';
import { readCollection } from '../format/global-heap.ts';
import { type HeaderMessage, PROVISIONAL, type Relocatable } from '../graph/object-node.ts';

type Collection = Map<number, Uint8Array>;
export type HeapContents = (address: number, index: number) => Uint8Array | undefined;

/** Variable-length values in the file's global heap; collections are read once. */
export class HeapReader {
  readonly #file: FileBytes;
  readonly #collections = new Map<number, Collection>();
  readonly #collectionBytes: Budget;

  constructor(file: FileBytes) {
    this.#file = file;
    this.#collectionBytes = new Budget(file);
  }

  /** Reads every collection that some elements need, also for nested values. */
  *load(dtype: DType, data: Uint8Array, count: number, own?: OwnHeap): Io<void> {
    for (;;) {
      const missing = new Set<number>();
      const contentOf = this.contents(own);
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

  get(address: number, index: number): Uint8Array | undefined {
    return this.#collections.get(address)?.get(index);
  }

  /**
   * The same for one way through nested values. Every content is somebody's own, so a way that meets more of them than the file
   * has room for goes in circles.
   */
  contents(own?: OwnHeap): HeapContents {
    const budget = new Budget(this.#file);
    return (address, index) => {
      const pending = own?.get(address, index);
      if (pending) return pending;
      const content = this.get(address, index);
      if (content) budget.spend(content.length, address, 'heap objects');
      return content;
    };
  }
}

/** The heap contents that a message brings along because they are not, or not yet surely, in the file. */
export class OwnHeap {
  readonly #contents = new Map<number, Map<number, Uint8Array>>();

  constructor(message: Relocatable) {
    this.#collect(message);
  }

  #collect(item: Relocatable): void {
    for (const { at, content } of item.heap) {
      const view = new DataView(item.bytes.buffer, item.bytes.byteOffset + at, 12);
      const address = view.getUint32(0, true) + view.getUint32(4, true) * 2 ** 32;
      let collection = this.#contents.get(address);
      if (!collection) {
        collection = new Map();
        this.#contents.set(address, collection);
      }
      collection.set(view.getUint32(8, true), content.bytes);
      this.#collect(content);
    }
  }

  get(address: number, index: number): Uint8Array | undefined {
    return this.#contents.get(address)?.get(index);
  }
}

let provisionalIndex = 0;

/** Gives every heap id of a new message a provisional value, so that it can be read back before it is committed. */
export function provisionalHeapIds(message: HeaderMessage): void {
  message.heapPending = message.heap.length > 0;
  mark(message);
}

function mark(item: Relocatable): void {
  for (const { at, content } of item.heap) {
    const view = new DataView(item.bytes.buffer, item.bytes.byteOffset + at, 12);
    putU64(view, 0, PROVISIONAL);
    provisionalIndex = (provisionalIndex + 1) % 0xffffffff;
    view.setUint32(8, provisionalIndex + 1, true);
    mark(content);
  }
}
