// Elements that point into the file they are from (variable-length values, references), taken out of it: they then point into a list
// in memory. A virtual dataset joins the elements of several files.

import { formatError } from '../base/errors.ts';
import type { Resolver } from './decode.ts';
import { containsReference, containsVlen } from './describe.ts';
import { heapSlots, readAddress, visitPointers, visitReferences } from './heap-ids.ts';
import type { DType } from './model.ts';

/** What elements of several files point to. */
export class Pointers implements Resolver {
  readonly #contents: Uint8Array[] = [];
  readonly #targets: { readonly path: string; readonly where?: unknown }[] = [];

  heap(_address: number, index: number): Uint8Array | undefined {
    return this.#contents[index - 1];
  }

  path(address: number): string {
    return this.#targets[address - 1]?.path ?? '';
  }

  selection(_content: Uint8Array, _at: number, address: number): unknown {
    return this.#targets[address - 1]?.where;
  }

  add(content: Uint8Array): number {
    return this.#contents.push(content);
  }

  /** Adds an object, or elements of it. The number stands for its address. */
  addTarget(path: string, where?: unknown): number {
    return this.#targets.push({ path, where });
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
  visitReferences(
    dtype,
    bytes,
    count,
    (at, address) => {
      const path = from.path(address);
      view.setBigUint64(at, BigInt(path === '' ? 0 : to.addTarget(path)), true);
    },
    (at, address, index) => {
      const region = from.heap(address, index);
      if (!region) throw formatError(`region reference to no heap object (${address}, ${index})`);
      const target = readAddress(region, 0);
      const content = new Uint8Array(8);
      const number = to.addTarget(from.path(target), from.selection?.(region, 8, target));
      new DataView(content.buffer).setUint32(0, number, true);
      view.setBigUint64(at, 1n, true);
      view.setUint32(at + 8, to.add(content), true);
    },
  );
  // An address means nothing in another file.
  visitPointers(dtype, bytes, count, (at, { kind, size }) => {
    if (kind === 'standard') bytes.fill(0, at, at + size);
  });
}
