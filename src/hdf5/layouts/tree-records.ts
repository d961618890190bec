// Encoded records of version 2 B-trees, one after the other. A million of them are one array, which nodes share.

import { putU64 } from '../format/byte-writer.ts';
import type { Addressable } from '../graph/object-node.ts';

/** Compares the keys of two records, which begin at `i` in `a` and at `j` in `b`. */
export type CompareRecords = (a: Uint8Array, i: number, b: Uint8Array, j: number) => number;

/** Encoded records. Those that begin with an address that a commit has not assigned yet have a target. */
export class Records {
  readonly bytes: Uint8Array;
  readonly size: number;
  #targets: readonly (Addressable | undefined)[] | null;

  /** `size` is that of a record. */
  constructor(bytes: Uint8Array, size: number, targets: readonly (Addressable | undefined)[] | null = null) {
    this.bytes = bytes;
    this.size = size;
    this.#targets = targets;
  }

  get count(): number {
    return this.bytes.length / this.size;
  }

  target(i: number): Addressable | undefined {
    return this.#targets?.[i];
  }

  slice(from: number, to: number): Records {
    const { size } = this;
    return new Records(this.bytes.subarray(from * size, to * size), size, this.#targets?.slice(from, to) ?? null);
  }

  static concat(parts: readonly Records[], size: number): Records {
    const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.bytes.length, 0));
    const targets: (Addressable | undefined)[] | null = parts.some((part) => part.#targets) ? [] : null;
    let at = 0;
    for (const part of parts) {
      bytes.set(part.bytes, at);
      at += part.bytes.length;
      if (!targets) continue;
      for (let i = 0; i < part.count; i++) targets.push(part.#targets?.[i]);
    }
    return new Records(bytes, size, targets);
  }

  /** Copies the records to `at` in `into`, with the addresses that their targets have now. */
  encode(into: Uint8Array, view: DataView, at: number): void {
    into.set(this.bytes, at);
    this.#targets?.forEach((target, i) => {
      if (target) putU64(view, at + i * this.size, target.address);
    });
  }

  /** The targets are in the file: their addresses are final. */
  settle(): void {
    if (!this.#targets) return;
    const { bytes } = this;
    this.encode(bytes, new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0);
    this.#targets = null;
  }
}
