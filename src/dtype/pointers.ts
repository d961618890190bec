// Elements that point into the file they are from (variable-length values, references), taken out of it: they then point into a list
// in memory. A virtual dataset joins the elements of several files.

import type { Resolver } from './decode.ts';
import { containsReference, containsVlen } from './describe.ts';
import { heapSlots, visitReferences } from './heap-ids.ts';
import type { DType } from './model.ts';

/** What elements of several files point to. */
export class Pointers implements Resolver {
  readonly #contents: Uint8Array[] = [];
  readonly #paths: string[] = [];

  heap(_address: number, index: number): Uint8Array | undefined {
    return this.#contents[index - 1];
  }

  path(address: number): string {
    return this.#paths[address - 1] ?? '';
  }

  add(content: Uint8Array): number {
    return this.#contents.push(content);
  }

  addPath(path: string): number {
    return this.#paths.push(path);
  }
}

/** Makes elements point to what `from` finds for them, from now on in `to`. */
export function adoptPointers(dtype: DType, bytes: Uint8Array, count: number, from: Resolver, to: Pointers): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (const { at, length, address, index, base, size } of heapSlots(dtype, bytes, count)) {
    const content = length === 0 || address === 0 ? undefined : from.heap(address, index)?.slice();
    bytes.fill(0, at + 4, at + size);
    if (!content) continue;
    if (containsVlen(base) || containsReference(base)) adoptPointers(base, content, length, from, to);
    bytes[at + 4] = 1;
    view.setUint32(at + size - 4, to.add(content), true);
  }
  visitReferences(dtype, bytes, count, (at, address) => {
    const path = from.path(address);
    view.setBigUint64(at, BigInt(path === '' ? 0 : to.addPath(path)), true);
  });
}
