import { createCipheriv } from 'node:crypto';
import { hostname } from 'node:os';
import { deflateSync, inflateSync } from 'node:zlib';
import { formatError } from '../base/errors.ts';
import { readEnvironment } from './environment.ts';

export {
  createSource,
  createTarget,
  joinTarget,
  openForReading,
  openSource,
  openTarget,
} from '../storage/node/create.ts';
export { registerExitHooks } from '../storage/node/exit.ts';
export { nodeStorage } from '../storage/node/file.ts';
export { pathOf, realFile } from '../storage/node/path.ts';
export { subfilesOf } from '../storage/node/subfiles.ts';

/** zlib makes nothing more than about a thousand times smaller. */
const MOST_RATIO = 1040;

/** Inflates a zlib stream of at most `limit` bytes. */
export function inflate(bytes: Uint8Array, limit: number): Uint8Array {
  // Room for all of it at once, and a little more, by which zlib sees that it is done: otherwise it comes in pieces and is copied together.
  const chunkSize = 1024 + Math.min(limit, bytes.length * MOST_RATIO);
  try {
    return inflateSync(bytes, { maxOutputLength: Math.max(1, limit), chunkSize });
  } catch (error) {
    throw formatError(`compressed data is damaged: ${(error as Error).message}`);
  }
}

export function deflate(bytes: Uint8Array, level: number): Uint8Array {
  return deflateSync(bytes, { level });
}

const KEY = new Uint8Array(16);
const NONCE = new Uint8Array(12);

/**
 * A checksum, not a signature: AES-GMAC with a key that everybody knows, because it is three times as fast as crc32.
 * The first 8 bytes of the tag are kept.
 */
export function checksummer(): { readonly kind: 1 | 2; update(bytes: Uint8Array): void; digest(): Uint8Array } {
  const cipher = createCipheriv('aes-128-gcm', KEY, NONCE);
  return {
    kind: 1,
    update: (bytes) => {
      for (let from = 0; from < bytes.length; from += MOST) cipher.setAAD(bytes.subarray(from, from + MOST));
    },
    digest: () => {
      cipher.final();
      return cipher.getAuthTag().subarray(0, 8);
    },
  };
}

/** OpenSSL counts in 32-bit integers. */
const MOST = 2 ** 30;

export function environment(name: string): string | undefined {
  return process.env[name];
}

export const environmentOptions = readEnvironment(environment);

/** Ranks with the same one share a machine. */
export function hostName(): string {
  return hostname();
}
