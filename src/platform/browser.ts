import { mixedSum } from '../base/checksum.ts';
import { H5LogError } from '../base/errors.ts';
import { inflateZlib, storeZlib } from '../filter/zlib.ts';
import type { EnvironmentOptions } from './environment.ts';

// Browser counterparts of what platform/node.ts exports. What a page cannot do throws UNSUPPORTED.

function needsPath(_path: string | URL, ..._more: readonly unknown[]): never {
  throw new H5LogError('UNSUPPORTED', 'a path needs Node.js; in a browser open a Blob, a URL or a storage');
}

/** New files have no name in a page. */
export function createSource(_path: string | URL, ..._more: readonly unknown[]): never {
  throw new H5LogError('UNSUPPORTED', 'a path needs Node.js; in a browser create a file in a storage: memoryStorage()');
}

/** The URL that a page means by a name: relative to its document or, in a worker, to the script. undefined: no server has it. */
export function remoteUrl(source: string | URL): string | undefined {
  const { document, location } = globalThis as {
    readonly document?: { readonly baseURI: string };
    readonly location?: { readonly href: string };
  };
  try {
    const { href, protocol } = new URL(source, document?.baseURI ?? location?.href);
    return protocol === 'file:' ? undefined : href;
  } catch {
    // Nothing to be relative to: outside of a page, or in a worker that was made from a Blob.
    return undefined;
  }
}

export {
  needsPath as createTarget,
  needsPath as linkedFile,
  needsPath as nodeStorage,
  needsPath as openBeside,
  needsPath as openSource,
  needsPath as openTarget,
  needsPath as openForReading,
  needsPath as realFile,
  needsPath as subfilesOf,
};

/** Empty: a page does not know the name of its machine. */
export function hostName(): string {
  return '';
}

/** The largest typed array of any browser. */
export function mostBytes(): number {
  return 2 ** 33;
}

/** What strings, objects and plain arrays may take: pointers of 32 bits. */
export function mostHeap(): number {
  return 2 ** 32;
}

export { sameBytes } from '../base/buffers.ts';
export { loadWriting, mustHaveWriting } from './writing.ts';

export const inflate = inflateZlib;

/** Browsers have no synchronous compression. The zlib stream stores the bytes uncompressed, which every reader accepts. */
export function deflate(bytes: Uint8Array, _level: number): Uint8Array {
  return storeZlib(bytes);
}

/** A checksum of two sums with the mixing of lookup3: browsers have no synchronous AES. */
export function checksummer(_size?: number): {
  readonly kind: 1 | 2;
  update(bytes: Uint8Array): void;
  digest(): Uint8Array;
} {
  return mixedSum();
}

/** A page has no environment variables. */
export function environment(_name: string): string | undefined {
  return undefined;
}

export const environmentOptions: EnvironmentOptions = {};

/** A page has no exit hooks: it can end at any time. */
export function registerExitHooks(_file: object): () => void {
  return () => {};
}

export function warn(text: string, _code: string): void {
  console.warn(text);
}
