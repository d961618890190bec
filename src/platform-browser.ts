import { H5LogError } from './errors.ts';
import { inflateZlib, storeZlib } from './filter/inflate.ts';
import { mixedSum } from './filter/mixed-sum.ts';
import type { ByteStorage } from './storage/storage.ts';

// What a page cannot do says so; what it can is done without anything of Node.

function needsNode(what: string): never {
  throw new H5LogError(
    'UNSUPPORTED',
    `${what} needs Node.js; in a browser open a Blob, a URL or a storage of your own`,
  );
}

export function nodeStorage(_path: string | URL, _mode: string): ByteStorage {
  return needsNode('a file path');
}

export function readTarget(_path: string | URL): never {
  return needsNode('a file path');
}

export function openTarget(_path: string | URL): never {
  return needsNode('a file path');
}

export function createTarget(_path: string | URL, _exclusive: boolean): never {
  return needsNode('a file path');
}

export function joinTarget(_path: string | URL): never {
  return needsNode('a file path');
}

export function subfilesOf(_path: string | URL): never {
  return needsNode('a file path');
}

export function hostName(): string {
  return '';
}

export function pathOf(_path: string | URL): never {
  return needsNode('a file path');
}

export function realFile(_path: string | URL): never {
  return needsNode('a file path');
}

export const inflate = inflateZlib;

/** Browsers have no compression that does not wait; the bytes are stored as they are, which every reader accepts. */
export function deflate(bytes: Uint8Array, _level: number): Uint8Array {
  return storeZlib(bytes);
}

/** Two sums over the bytes with lookup3's mixing, for places without AES. */
export function checksummer(): { readonly kind: 1 | 2; update(bytes: Uint8Array): void; digest(): Uint8Array } {
  return mixedSum();
}

export function environment(_name: string): string | undefined {
  return undefined;
}

/** A page ends without asking. */
export function watchProcess(_file: object): () => void {
  return () => {};
}
