import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

/** The calls of the system that can be made to fail, in this thread alone. */
export type FaultyCall = 'write' | 'sync' | 'truncate';

export interface Fault {
  readonly call: FaultyCall;
  /** How many of these calls succeed before one fails. */
  readonly after: number;
  readonly code: 'ENOSPC' | 'EIO';
  /** The first half of a write arrives all the same. */
  readonly torn: boolean;
}

let armed: Fault | null = null;
let left = 0;
let injected = 0;

/** From now on that call fails once. */
export function arm(fault: Fault): void {
  install();
  armed = fault;
  left = fault.after;
  injected = 0;
}

/** Everything works again; gives how many calls were made to fail. */
export function heal(): number {
  armed = null;
  const count = injected;
  injected = 0;
  return count;
}

function isDue(call: FaultyCall): boolean {
  if (armed?.call !== call) return false;
  return left-- === 0;
}

function failure(): Error {
  injected++;
  const { code, call } = armed as Fault;
  armed = null;
  return Object.assign(new Error(`${code}: made to fail, ${call}`), { code, syscall: call });
}

let isInstalled = false;

/** Each thread has a `node:fs` of its own, so what is exchanged here is that of one rank. */
function install(): void {
  if (isInstalled) return;
  isInstalled = true;
  const { writevSync, fdatasyncSync, ftruncateSync } = fs;
  fs.writevSync = (fd, buffers, position) => {
    if (!isDue('write')) return writevSync(fd, buffers, position);
    if (armed?.torn) {
      const bytes = Buffer.concat(buffers.map((part) => new Uint8Array(part.buffer, part.byteOffset, part.byteLength)));
      writevSync(fd, [bytes.subarray(0, bytes.length >> 1)], position);
    }
    throw failure();
  };
  fs.fdatasyncSync = (fd) => {
    if (isDue('sync')) throw failure();
    fdatasyncSync(fd);
  };
  fs.ftruncateSync = (fd, size) => {
    if (isDue('truncate')) throw failure();
    ftruncateSync(fd, size);
  };
  syncBuiltinESMExports();
}
