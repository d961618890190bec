import type { DType } from '../dtype/model.ts';
import { visitHeapIds } from '../dtype/values.ts';
import type { Io } from '../storage/drive.ts';
import { putU64 } from './byte-writer.ts';
import type { FileBytes } from './file-bytes.ts';
import { readCollection } from './global-heap.ts';
import { type HeaderMessage, PROVISIONAL, type Relocatable } from './object-node.ts';

type Collection = Map<number, Uint8Array>;

/** Variable-length values in the file's global heap; collections are read once. */
export class HeapReader {
  readonly #file: FileBytes;
  readonly #collections = new Map<number, Collection>();

  constructor(file: FileBytes) {
    this.#file = file;
  }

  /** Reads every collection that some elements need, also for nested values. */
  *load(dtype: DType, data: Uint8Array, count: number, own?: OwnHeap): Io<void> {
    for (;;) {
      const missing = new Set<number>();
      visitHeapIds(dtype, data, count, (address, index) => {
        const content = own?.get(address, index) ?? this.get(address, index);
        if (!content && !this.#collections.has(address)) missing.add(address);
        return content;
      });
      if (missing.size === 0) return;
      for (const address of missing) this.#collections.set(address, yield* readCollection(this.#file, address));
    }
  }

  get(address: number, index: number): Uint8Array | undefined {
    return this.#collections.get(address)?.get(index);
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
      if (!collection) this.#contents.set(address, (collection = new Map()));
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
