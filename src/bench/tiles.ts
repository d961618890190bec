import { File } from '../api/file.ts';
import { OrdinaryTable } from './ordinary-table.ts';
import { Random } from './random.ts';
import { shuffled } from './shuffled.ts';
import { scaledSize } from './workload.ts';
import { wrongValue } from './wrong-value.ts';

/*
 * A large field in tiles of 512x256 float64, 1 MiB each, written whole in scrambled order: the way a field comes from many processes.
 */

export const TILE = [512, 256] as const;
const [HEIGHT, WIDTH] = TILE;
const AREA = HEIGHT * WIDTH;
const TILES = 1024;
const ACROSS = 32;
/** Tiles between two flushes. */
const LOT = 64;
/** Elements that are looked at afterwards, besides the corners of the field. */
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
    const file = File.createSync(path);
    const dataset = file.createDataset('x', { dtype: 'float64', shape: this.shape, ...options });
    const data = new Float64Array(AREA);
    shuffled(this.count).forEach((tile, i) => {
      for (let k = 0; k < AREA; k++) data[k] = tile * AREA + k;
      const start = [Math.floor(tile / this.#across) * HEIGHT, (tile % this.#across) * WIDTH];
      dataset.write(data, { start, count: TILE });
      if (i % LOT === LOT - 1) file.flushSync();
    });
    file.closeSync();
  }

  /** Throws unless some elements of the ordinary file are those that were written. */
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
