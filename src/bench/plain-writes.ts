import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { secondsSince } from './times.ts';

const PIECE = 8 * 2 ** 20;

/** Seconds of writing the same values some times over, in pieces of 8 MiB: what the machine can do without us. */
export function plainWrites(path: string, values: Float64Array, times = 1): number {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  const begun = performance.now();
  const handle = openSync(path, 'w');
  for (let at = 0; at < bytes.length * times; at += PIECE) {
    const from = at % bytes.length;
    writeSync(handle, bytes, from, Math.min(PIECE, bytes.length - from), at);
  }
  closeSync(handle);
  const seconds = secondsSince(begun);
  rmSync(path);
  return seconds;
}
