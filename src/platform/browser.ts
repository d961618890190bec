import { mixedSum } from '../base/checksum.ts';
import { H5LogError } from '../base/errors.ts';
import { inflateZlib, storeZlib } from '../filter/zlib.ts';
import type { EnvironmentOptions } from './environment.ts';

// What a page cannot do says so; what it can is done without anything of Node.

function needsPath(_path: string | URL, ..._more: readonly unknown[]): never {
  throw new H5LogError('UNSUPPORTED', 'a path needs Node.js; in a browser open a Blob, a URL or a storage');
}

export {
  needsPath as createSource,
  needsPath as createTarget,
  needsPath as joinTarget,
  needsPath as nodeStorage,
  needsPath as openSource,
  needsPath as openTarget,
  needsPath as pathOf,
  needsPath as openForReading,
  needsPath as realFile,
  needsPath as subfilesOf,
};

export function hostName(): string {
  return '';
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

export const environmentOptions: EnvironmentOptions = {};

/** A page ends without asking. */
export function registerExitHooks(_file: object): () => void {
  return () => {};
}
