import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { type GrowingProgram, ROW, rowFlushes } from './flushes.ts';
import type { Peer } from './peer.ts';
import { BOX, type RowsFile, type RowsProgram, setRow, smallRows } from './small.ts';
import { BLOCK, type BlocksProgram, streamBlocks } from './stream.ts';

const ROW_BYTES = 24;

class PlainRows implements RowsFile {
  readonly #handle: number;
  readonly #rows: number;

  constructor(path: string, flags: string, rows: number) {
    this.#handle = openSync(path, flags);
    this.#rows = rows;
  }

  writeEach(order: Uint32Array): void {
    const row = new Float64Array(3);
    const bytes = new Uint8Array(row.buffer);
    for (let i = 0; i < order.length; i++) {
      const r = order[i] as number;
      setRow(row, r);
      writeSync(this.#handle, bytes, 0, ROW_BYTES, r * ROW_BYTES);
    }
  }

  writeAll(values: Float64Array): void {
    writeSync(this.#handle, values, 0, values.byteLength, 0);
  }

  readAll(): Float64Array {
    return this.#read(0, this.#rows);
  }

  readEach(starts: Uint32Array): Float64Array[] {
    return Array.from(starts, (start) => this.#read(start, BOX));
  }

  #read(row: number, rows: number): Float64Array {
    const values = new Float64Array(rows * 3);
    readSync(this.#handle, values, 0, values.byteLength, row * ROW_BYTES);
    return values;
  }

  close(): void {
    closeSync(this.#handle);
  }
}

const rows: RowsProgram = {
  create: (path, count) => new PlainRows(path, 'w', count),
  open: (path, count) => new PlainRows(path, 'r', count),
  most: Number.POSITIVE_INFINITY,
};

const blocks: BlocksProgram = {
  write(path, count, block) {
    const handle = openSync(path, 'w');
    for (let i = 0; i < count; i++) writeSync(handle, block(i));
    closeSync(handle);
  },
  read(path, i) {
    const values = new Float64Array(BLOCK);
    const handle = openSync(path, 'r');
    readSync(handle, values, 0, values.byteLength, i * values.byteLength);
    closeSync(handle);
    return values;
  },
};

const growing: GrowingProgram = {
  write(path, flushes, row) {
    const handle = openSync(path, 'w');
    for (let i = 0; i < flushes; i++) writeSync(handle, row(i), 0, ROW * 8, i * ROW * 8);
    closeSync(handle);
  },
  read: (path) => new Float64Array(Uint8Array.from(readFileSync(path)).buffer),
  most: Number.POSITIVE_INFINITY,
};

/** What the system does by itself: values at their places in a file of nothing else. Nobody can be much faster, and many are slower. */
export const plain: Peer = {
  name: 'plain fs',
  workloads: {
    small: (task) => smallRows(rows, join(task.folder, 'plain'), task),
    stream: (task) => streamBlocks(blocks, join(task.folder, 'plain'), task),
    flushes: (task) => rowFlushes(growing, join(task.folder, 'plain'), task),
  },
};
