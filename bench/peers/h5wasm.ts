import { join } from 'node:path';
import h5wasm, { type Dataset, type File } from 'h5wasm/node';
import { type GrowingProgram, ROW, rowFlushes } from './flushes.ts';
import type { Peer } from './peer.ts';
import { BOX, type RowsFile, type RowsProgram, setRow, smallRows } from './small.ts';
import { BLOCK, type BlocksProgram, streamBlocks } from './stream.ts';

await h5wasm.ready;

class WasmRows implements RowsFile {
  readonly #file: File;
  readonly #dataset: Dataset;

  constructor(file: File) {
    this.#file = file;
    this.#dataset = file.get('x') as Dataset;
  }

  writeEach(order: Uint32Array): void {
    const row = new Float64Array(3);
    for (let i = 0; i < order.length; i++) {
      const r = order[i] as number;
      setRow(row, r);
      this.#dataset.write_slice([[r, r + 1], []], row);
    }
  }

  writeAll(values: Float64Array): void {
    this.#dataset.write_slice([[], []], values);
  }

  readAll(): Float64Array {
    return this.#dataset.value as Float64Array;
  }

  readEach(starts: Uint32Array): Float64Array[] {
    return Array.from(starts, (start) => this.#dataset.slice([[start, start + BOX], []]) as Float64Array);
  }

  close(): void {
    this.#file.close();
  }
}

// Contiguous: chunks of 10,000 rows took half as long again for a row.
const rows: RowsProgram = {
  create(path, count) {
    const file = new h5wasm.File(path, 'w');
    file.create_dataset({ name: 'x', data: new Float64Array(count * 3), shape: [count, 3] });
    return new WasmRows(file);
  },
  open: (path) => new WasmRows(new h5wasm.File(path, 'r')),
  most: 20_000,
};

const blocks: BlocksProgram = {
  write(path, count, block) {
    const file = new h5wasm.File(path, 'w');
    // A dataset is created with its data. Created with the first block it then grows, for which it has to be chunked.
    const options = { data: block(0), shape: [BLOCK], maxshape: [null], chunks: [BLOCK] };
    const dataset = file.create_dataset({ name: 'x', ...options });
    dataset.resize([count * BLOCK]);
    for (let i = 1; i < count; i++) dataset.write_slice([[i * BLOCK, (i + 1) * BLOCK]], block(i));
    file.close();
  },
  read: (path, i) => readDataset(path, (dataset) => dataset.slice([[i * BLOCK, (i + 1) * BLOCK]])),
};

const growing: GrowingProgram = {
  write(path, flushes, row) {
    const file = new h5wasm.File(path, 'w');
    const options = { data: row(0), shape: [1, ROW], maxshape: [null, ROW], chunks: [64, ROW] };
    const dataset = file.create_dataset({ name: 'x', ...options });
    file.flush();
    for (let i = 1; i < flushes; i++) {
      dataset.resize([i + 1, ROW]);
      dataset.write_slice([[i, i + 1], []], row(i));
      file.flush();
    }
    file.close();
  },
  read: (path) => readDataset(path, (dataset) => dataset.value),
  most: 5_000,
};

function readDataset(path: string, read: (dataset: Dataset) => unknown): Float64Array {
  const file = new h5wasm.File(path, 'r');
  try {
    return read(file.get('x') as Dataset) as Float64Array;
  } finally {
    file.close();
  }
}

/** libhdf5 in WebAssembly: HDF5 as JavaScript has it otherwise. */
export const wasm: Peer = {
  name: 'h5wasm',
  workloads: {
    small: (task) => smallRows(rows, join(task.folder, 'wasm.h5'), task),
    stream: (task) => streamBlocks(blocks, join(task.folder, 'wasm.h5'), task),
    flushes: (task) => rowFlushes(growing, join(task.folder, 'wasm.h5'), task),
  },
};
