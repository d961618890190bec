import { hostname, totalmem } from 'node:os';
import { gmac } from '../base/checksum.ts';
import { formatError } from '../base/errors.ts';
import { readEnvironment } from './environment.ts';

export {
  createSource,
  createTarget,
  linkedFile,
  openBeside,
  openForReading,
  openSource,
  openTarget,
} from '../storage/node/create.ts';
export { registerExitHooks } from '../storage/node/exit.ts';
export { nodeStorage } from '../storage/node/file.ts';
export { realFile } from '../storage/node/path.ts';
export { subfilesOf } from '../storage/node/subfiles.ts';
export { loadWriting, mustHaveWriting } from './writing.ts';

/** The URL of a file on a server; undefined for one of this machine. */
export function remoteUrl(source: string | URL): string | undefined {
  const text = String(source);
  return /^https?:\/\//i.test(text) ? text : undefined;
}

// Loaded when they are first used: they would take a fifth of the time of `import 'h5log'`.
const zlib = () => process.getBuiltinModule('node:zlib');
const crypto = () => process.getBuiltinModule('node:crypto');

/** The largest buffer that there can be: a typed array has a limit, and so has the machine or the container. */
let most = 0;
export function mostBytes(): number {
  if (most > 0) return most;
  const { MAX_LENGTH } = process.getBuiltinModule('node:buffer').constants;
  most = Math.min(MAX_LENGTH, totalmem(), process.constrainedMemory?.() || Infinity);
  return most;
}

/** What strings, objects and plain arrays may take. Beyond it V8 ends the process. */
export function mostHeap(): number {
  return process.getBuiltinModule('node:v8').getHeapStatistics().heap_size_limit;
}

/** Not a loop: the first ones are over before V8 has compiled it. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && Buffer.compare(a, b) === 0;
}

/** Data is seldom compressed by more than this factor. Where it is, up to a thousand, zlib's result comes in pieces. */
const USUAL_RATIO = 16;
const LEAST_ROOM = 32 * 1024;

/** Inflates a zlib stream of at most `limit` bytes. */
export function inflate(bytes: Uint8Array, limit: number): Uint8Array {
  // Room for the whole result, and a little more so that zlib sees the end: otherwise it returns chunks, which are then joined by
  // copying. But not for more than the stream may well hold: `limit` is what the file claims.
  const chunkSize = 1024 + Math.min(limit, Math.max(LEAST_ROOM, bytes.length * USUAL_RATIO));
  try {
    return zlib().inflateSync(bytes, { maxOutputLength: Math.min(Math.max(1, limit), mostBytes()), chunkSize });
  } catch (error) {
    throw formatError(`compressed data is damaged: ${(error as Error).message}`);
  }
}

export function deflate(bytes: Uint8Array, level: number): Uint8Array {
  // Room for the whole result: otherwise it comes in pieces of 16 KiB, which are then joined by copying.
  return zlib().deflateSync(bytes, { level, chunkSize: bytes.length + Math.ceil(bytes.length / 1000) + 1024 });
}

/** A cipher takes as long to set up as these bytes to sum without one, which needs a table of products. */
const SMALL_SUM = 4096;
const FIRST_SUMS = 64;
let smallSums = 0;

const KEY = new Uint8Array(16);
const NONCE = new Uint8Array(12);

/**
 * A checksum, not a signature: AES-GMAC with a fixed, public key, because it is three times as fast as crc32. The checksum is the
 * first 8 bytes of the tag. `size`: how many bytes it will be of, at most; few are summed without OpenSSL, once there were many such sums.
 */
export function checksummer(size = Infinity): {
  readonly kind: 1 | 2;
  update(bytes: Uint8Array): void;
  digest(): Uint8Array;
} {
  if (IS_DENO || (size <= SMALL_SUM && ++smallSums > FIRST_SUMS)) return gmac();
  const cipher = crypto().createCipheriv('aes-128-gcm', KEY, NONCE);
  return {
    kind: 1,
    update: (bytes) => {
      for (let from = 0; from < bytes.length; from += MAX_UPDATE)
        cipher.setAAD(bytes.subarray(from, from + MAX_UPDATE));
    },
    digest: () => {
      cipher.final();
      return cipher.getAuthTag().subarray(0, 8);
    },
  };
}

/** Its cipher gives another sum where the bytes come in several parts. */
const IS_DENO = 'deno' in process.versions;

/** OpenSSL takes lengths as 32-bit integers. */
const MAX_UPDATE = 2 ** 30;

/** The value of an environment variable. */
export function environment(name: string): string | undefined {
  return process.env[name];
}

/** The options that environment variables set. */
export const environmentOptions = readEnvironment(environment);

/** The name of the machine: ranks with the same name share a node. */
export function hostName(): string {
  return hostname();
}

export function warn(text: string, code: string): void {
  process.emitWarning(text, { code });
}
