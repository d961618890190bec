import { Worker } from 'node:worker_threads';

// A file that makes its reader loop forever blocks the thread of the tests: another thread must notice, say which file it was,
// and end the process.

/** A case takes milliseconds; this is for a machine that is busy with something else. */
const PATIENCE_MS = 60_000;
const ROOM = 2 ** 20;

const WATCH = `
const { workerData: { state, bytes, folder, patience } } = require('node:worker_threads');
const { mkdirSync, writeFileSync, writeSync } = require('node:fs');
let seen = -1;
setInterval(() => {
  const now = Atomics.load(state, 0);
  if (now !== seen || now === 0) return void (seen = now);
  const name = Buffer.from(bytes.slice(0, state[1])).toString();
  writeSync(2, 'hostile: no end of ' + name + '\\n');
  if (folder) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(folder + '/hang.h5', bytes.slice(state[1], state[1] + state[2]));
  }
  process.kill(process.pid, 'SIGKILL');
}, patience).unref();
`;

let shared: { readonly state: Int32Array; readonly bytes: Uint8Array } | null = null;

/** Tells the watching thread that another case begins. */
export function watchCase(name: string, file: Uint8Array): void {
  if (!shared) {
    shared = { state: new Int32Array(new SharedArrayBuffer(16)), bytes: new Uint8Array(new SharedArrayBuffer(ROOM)) };
    const workerData = { ...shared, folder: process.env.H5LOG_FAILURES, patience: PATIENCE_MS };
    new Worker(WATCH, { eval: true, workerData }).unref();
  }
  const { state, bytes } = shared;
  const { written } = new TextEncoder().encodeInto(name.slice(0, 2000), bytes);
  const room = file.subarray(0, ROOM - written);
  bytes.set(room, written);
  state[1] = written;
  state[2] = room.length;
  Atomics.add(state, 0, 1);
}
