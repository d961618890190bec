import { hostname } from 'node:os';
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

/** The URL of a file on a server; undefined for one of this machine. */
export function remoteUrl(source: string | URL): string | undefined {
  const text = String(source);
  return /^https?:\/\//i.test(text) ? text : undefined;
}

// Loaded when they are first used: they would take a fifth of the time of `import 'h5log'`.
const zlib = () => process.getBuiltinModule('node:zlib');
const crypto = () => process.getBuiltinModule('node:crypto');

/** zlib compresses by a factor of at most about a thousand. */
const MAX_RATIO = 1040;

/** Inflates a zlib stream of at most `limit` bytes. */
export function inflate(bytes: Uint8Array, limit: number): Uint8Array {
  // Room for the whole result, and a little more so that zlib sees the end: otherwise it returns chunks, which are then joined by copying.
  const chunkSize = 1024 + Math.min(limit, bytes.length * MAX_RATIO);
  try {
    return zlib().inflateSync(bytes, { maxOutputLength: Math.max(1, limit), chunkSize });
  } catch (error) {
    throw formatError(`compressed data is damaged: ${(error as Error).message}`);
  }
}

export function deflate(bytes: Uint8Array, level: number): Uint8Array {
  return zlib().deflateSync(bytes, { level });
}

const KEY = new Uint8Array(16);
const NONCE = new Uint8Array(12);

/**
 * A checksum, not a signature: AES-GMAC with a fixed, public key, because it is three times as fast as crc32. The checksum is the
 * first 8 bytes of the tag.
 */
export function checksummer(): { readonly kind: 1 | 2; update(bytes: Uint8Array): void; digest(): Uint8Array } {
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
