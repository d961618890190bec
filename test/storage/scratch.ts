import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { afterAll } from 'vitest';
import { removeDirectory } from '../temporary.ts';

/** A fresh directory, removed when the tests of the file or of the enclosing `describe` have ended. */
export function scratchDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'h5log-storage-'));
  afterAll(() => removeDirectory(directory));
  return directory;
}

/** Bytes that tell where they are: no two neighbouring kilobytes are alike. */
export function pattern(length: number, salt = 0): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) bytes[i] = (i * 31 + (i >> 8) * 7 + salt + 1) & 0xff;
  return bytes;
}

/** What a call throws, or what a promise rejects with. */
export async function errorOf(work: () => unknown): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}

/** As `toEqual`, which takes a second for 200,000 bytes. */
export function expectBytes(found: Uint8Array, expected: Uint8Array): void {
  if (Buffer.compare(found, expected) === 0) return;
  const at = expected.findIndex((byte, i) => byte !== found[i]);
  const where = at < 0 ? expected.length : at;
  throw new Error(
    `${found.length} bytes for ${expected.length}; first difference at ${where}: ` +
      `${[...found.subarray(where, where + 16)]} for ${[...expected.subarray(where, where + 16)]}`,
  );
}

/** Runs as a user with no rights: to root no directory is read only. Worker threads cannot change their user. */
export const canDropRights = process.getuid?.() !== 0 || isMainThread;
export function withoutRights<T>(work: () => T): T {
  if (process.getuid?.() !== 0) return work();
  process.seteuid?.(65534);
  try {
    return work();
  } finally {
    process.seteuid?.(0);
  }
}
