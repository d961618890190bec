import { File } from '../api/file.ts';
import { H5LogError } from '../base/errors.ts';
import { readChunkIndex } from '../hdf5/layouts/chunks/chunk-index.ts';
import { drive, layoutOf } from '../tools/inside.ts';

/**
 * A two-dimensional float64 dataset of an ordinary file, read from where the file's structure says that its elements are. Not through the
 * dataset: h5wasm, which reads ordinary data otherwise, need not be installed.
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
    const chunks = await drive(file, readChunkIndex(file.session.structure.loader.file, index, grid));
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
      this.#file.session.structure.loader.file.readInto(bytes, this.#addressOf(row, column), 'data'),
    );
    return new DataView(bytes.buffer).getFloat64(0, true);
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
