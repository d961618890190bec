import { File } from '../api/file.ts';
import { sessionOf } from '../api/handle.ts';
import { H5LogError } from '../base/errors.ts';
import { readChunkIndex } from '../hdf5/layouts/chunks/chunk-index.ts';
import { drive, layoutOf } from '../tools/inside.ts';
import { Random, shuffled } from './random.ts';
import { scaledSize, wrongValue } from './workload.ts';

/*
 * A large field in tiles of 512x256 float64, 1 MiB each, written in random order, as by many processes.
 */

export const TILE = [512, 256] as const;
const [HEIGHT, WIDTH] = TILE;
const AREA = HEIGHT * WIDTH;
const TILES = 1024;
const ACROSS = 32;
/** Tiles per flush. */
const BATCH = 64;
/** Number of elements that are checked, besides the corners of the field. */
const SAMPLES = 1000;

export class Tiles {
  readonly count: number;
  readonly shape: readonly [number, number];
  readonly #across: number;

  constructor(scale: number) {
    const wanted = scaledSize(TILES, scale);
    this.#across = Math.min(ACROSS, wanted);
    const down = Math.max(1, Math.round(wanted / this.#across));
    this.count = this.#across * down;
    this.shape = [down * HEIGHT, this.#across * WIDTH];
  }

  get bytes(): number {
    return this.count * AREA * 8;
  }

  /** Writes the log file. */
  write(path: string, options: { chunks?: readonly number[] } = {}): void {
    const file = File.createSync(path, { publish: 'never' });
    const dataset = file.createDataset('x', { dtype: 'float64', shape: this.shape, ...options });
    const data = new Float64Array(AREA);
    shuffled(this.count).forEach((tile, i) => {
      for (let k = 0; k < AREA; k++) data[k] = tile * AREA + k;
      const start = [Math.floor(tile / this.#across) * HEIGHT, (tile % this.#across) * WIDTH];
      dataset.write(data, { start, count: TILE });
      if (i % BATCH === BATCH - 1) file.flushSync();
    });
    file.closeSync();
  }

  /** Checks a sample of the elements of an ordinary file. */
  async check(path: string): Promise<void> {
    const [rows, columns] = this.shape;
    const random = new Random(SAMPLES);
    const some = Array.from({ length: SAMPLES }, () => [random.below(rows), random.below(columns)] as const);
    const table = await OrdinaryTable.open(path, 'x');
    try {
      for (const [row, column] of [[0, 0] as const, [rows - 1, columns - 1] as const, ...some]) {
        const found = await table.at(row, column);
        const expected = this.#valueAt(row, column);
        if (found !== expected) throw wrongValue(path, [row, column], found, expected);
      }
    } finally {
      await table.close();
    }
  }

  #valueAt(row: number, column: number): number {
    const tile = Math.floor(row / HEIGHT) * this.#across + Math.floor(column / WIDTH);
    return tile * AREA + (row % HEIGHT) * WIDTH + (column % WIDTH);
  }
}

/**
 * A two-dimensional float64 dataset of an ordinary file, read at the addresses that its layout names. Not read through `Dataset`, which
 * needs h5wasm for ordinary data.
 */
export class OrdinaryTable {
  readonly #file: File;
  readonly #addressOf: (row: number, column: number) => number;

  private constructor(file: File, addressOf: (row: number, column: number) => number) {
    this.#file = file;
    this.#addressOf = addressOf;
  }

  static async open(path: string, name: string): Promise<OrdinaryTable> {
    const file = await File.open(path, { connector: 'log' });
    const dataset = file.dataset(name, 'float64');
    const layout = layoutOf(dataset);
    const [, columns = 0] = dataset.shape;
    if (layout?.kind === 'contiguous')
      return new OrdinaryTable(file, (row, column) => layout.address + (row * columns + column) * 8);
    if (layout?.kind !== 'chunked') {
      await file.close();
      throw new H5LogError('FORMAT', `${name} is not stored as an ordinary table`, { file: path, object: name });
    }
    const { chunk, elementSize, index } = layout;
    const grid = { maxShape: dataset.maxShape, chunk, elementSize, filtered: false };
    const chunks = await drive(file, readChunkIndex(sessionOf(file).structure.loader.file, index, grid));
    const addresses = new Map(chunks.map(({ cell, address }) => [cell.join(), address]));
    const [height, width] = chunk as readonly [number, number];
    return new OrdinaryTable(file, (row, column) => {
      const cell = [Math.floor(row / height), Math.floor(column / width)].join();
      const address = addresses.get(cell);
      if (address === undefined)
        throw new H5LogError('FORMAT', `there is no chunk ${cell} in ${name}`, { file: path, object: name });
      return address + ((row % height) * width + (column % width)) * 8;
    });
  }

  async at(row: number, column: number): Promise<number> {
    const bytes = new Uint8Array(8);
    await drive(
      this.#file,
      sessionOf(this.#file).structure.loader.file.readInto(bytes, this.#addressOf(row, column), 'data'),
    );
    return new DataView(bytes.buffer).getFloat64(0, true);
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
