import { join } from 'node:path';
import FileSystemStore from '@zarrita/storage/fs';
import * as zarr from 'zarrita';
import { type GrowingProgram, ROW, rowFlushes } from './flushes.ts';
import type { Peer } from './peer.ts';
import { BOX, type RowsFile, type RowsProgram, setRow, smallRows } from './small.ts';
import { BLOCK, type BlocksProgram, streamBlocks } from './stream.ts';

type Numbers = zarr.Array<'float64', FileSystemStore>;

const codecs = [{ name: 'bytes', configuration: { endian: 'little' } }];

function createArray(path: string, shape: number[], chunkShape: number[]): Promise<Numbers> {
  const options = { shape, chunkShape, dtype: 'float64', codecs, fillValue: 0 } as const;
  return zarr.create(zarr.root(new FileSystemStore(path)), { ...options, codecs });
}

function openArray(path: string): Promise<Numbers> {
  return zarr.open.v3(zarr.root(new FileSystemStore(path)), { kind: 'array' }) as Promise<Numbers>;
}

/** An array in row-major order, as zarrita has them. */
function chunk(data: Float64Array, shape: number[]): zarr.Chunk<'float64'> {
  return { data, shape, stride: shape.map((_, d) => shape.slice(d + 1).reduce((product, size) => product * size, 1)) };
}

class ZarrRows implements RowsFile {
  readonly #array: Numbers;

  constructor(array: Numbers) {
    this.#array = array;
  }

  async writeEach(order: Uint32Array): Promise<void> {
    const row = chunk(new Float64Array(3), [1, 3]);
    for (const r of order) {
      setRow(row.data, r);
      await zarr.set(this.#array, [zarr.slice(r, r + 1), null], row);
    }
  }

  writeAll(values: Float64Array): Promise<void> {
    return zarr.set(this.#array, null, chunk(values, this.#array.shape));
  }

  async readAll(): Promise<Float64Array> {
    return (await zarr.get(this.#array)).data;
  }

  async readEach(starts: Uint32Array): Promise<Float64Array[]> {
    const boxes: Float64Array[] = [];
    for (const start of starts) boxes.push((await zarr.get(this.#array, [zarr.slice(start, start + BOX), null])).data);
    return boxes;
  }

  close(): void {
    // Nothing is open between calls.
  }
}

const rows: RowsProgram = {
  create: async (path, count) => new ZarrRows(await createArray(path, [count, 3], [Math.min(count, 10_000), 3])),
  open: async (path) => new ZarrRows(await openArray(path)),
  most: 1_000,
};

const blocks: BlocksProgram = {
  async write(path, count, block) {
    const array = await createArray(path, [count * BLOCK], [BLOCK]);
    for (let i = 0; i < count; i++)
      await zarr.set(array, [zarr.slice(i * BLOCK, (i + 1) * BLOCK)], chunk(block(i), [BLOCK]));
  },
  read: async (path, i) => (await zarr.get(await openArray(path), [zarr.slice(i * BLOCK, (i + 1) * BLOCK)])).data,
};

const growing: GrowingProgram = {
  async write(path, flushes, row) {
    for (let i = 0; i < flushes; i++) {
      // It has no call that resizes: creating the array again writes the new shape, and leaves the chunks alone.
      const array = await createArray(path, [i + 1, ROW], [1, ROW]);
      await zarr.set(array, [zarr.slice(i, i + 1), null], chunk(row(i), [1, ROW]));
    }
  },
  read: async (path) => (await zarr.get(await openArray(path))).data,
  most: 2_000,
};

/** Zarr, format 3, in a directory: a file for each chunk. */
export const zarrita: Peer = {
  name: 'zarrita',
  workloads: {
    small: (task) => smallRows(rows, join(task.folder, 'small.zarr'), task),
    stream: (task) => streamBlocks(blocks, join(task.folder, 'stream.zarr'), task),
    flushes: (task) => rowFlushes(growing, join(task.folder, 'flushes.zarr'), task),
  },
};
