import { deflateSync, inflateSync } from 'node:zlib';
import { formatError } from './errors.ts';

export { createTarget, openTarget, readTarget } from './storage/node-target.ts';
export { nodeStorage } from './storage/node-file.ts';

/** Inflates a zlib stream of at most `limit` bytes. */
export function inflate(bytes: Uint8Array, limit: number): Uint8Array {
  try {
    return inflateSync(bytes, { maxOutputLength: Math.max(1, limit) });
  } catch (error) {
    throw formatError(`compressed data is damaged: ${(error as Error).message}`);
  }
}

export function deflate(bytes: Uint8Array, level: number): Uint8Array {
  return deflateSync(bytes, { level });
}
