import { H5LogError } from '../../base/errors.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import type { PostOptions } from '../../log/post/dataset.ts';
import type { ReadRequest } from '../../log/read/reading.ts';
import type { Where } from '../../space/select.ts';
import type { Coordinates } from '../../space/shape.ts';
import type { ByteStorage } from '../../storage/storage.ts';
import type { RegularDataset } from '../file-session.ts';
import { readyLibrary } from './library.ts';
import type { NativeDataset } from './native-dataset.ts';
import { NativeFile } from './native-file.ts';

/** What regular datasets of a file need from whoever has its structure. */
interface StructureOwner {
  /** The path, or the storage where there is none. */
  readonly source: string | ByteStorage;
  /** Another number after each change of the file. */
  readonly stamp: number;
  /** The path in the file for a user's. */
  storedPath(path: string): string;
  /** Lets somebody else change the file in between: everything is committed before, and read anew after. */
  lend<T>(work: () => T): T;
}

/**
 * Datasets of ordinary HDF5 in a file whose structure h5log itself reads and writes. The library sees the file as it was last
 * committed; for a write it has the file to itself for as long as that takes.
 */
export class RegularData {
  readonly #owner: StructureOwner;
  #file: NativeFile | null = null;
  #stamp = -1;

  constructor(owner: StructureOwner) {
    this.#owner = owner;
  }

  dataset(node: ObjectNode, path: string): RegularDataset {
    const seen = (): NativeDataset => this.#seen(node, path);
    const changed = (work: (dataset: NativeDataset) => void): void => {
      this.close();
      this.#owner.lend(() => {
        const file = NativeFile.openShared(readyLibrary(), this.#owner.source);
        try {
          work(file.dataset(this.#owner.storedPath(path)));
        } finally {
          file.close();
        }
      });
    };
    return {
      get parts() {
        return seen().parts;
      },
      read: (where: Where | undefined, request: ReadRequest) => seen().read(where, request),
      readMany: (starts: Coordinates, counts: Coordinates, request: ReadRequest) =>
        seen().readMany(starts, counts, request),
      write: (data: unknown, where: Where | undefined, options: PostOptions | undefined) =>
        changed((dataset) => dataset.write(data, where, options)),
      writeMany: (data: unknown, starts: Coordinates, counts: Coordinates) =>
        changed((dataset) => dataset.writeMany(data, starts, counts)),
      resize: (shape: readonly number[]) => changed((dataset) => dataset.resize(shape)),
    };
  }

  /** The dataset as the library sees it, which must be the one that is meant. */
  #seen(node: ObjectNode, path: string): NativeDataset {
    const { source, stamp } = this.#owner;
    const library = readyLibrary();
    if (this.#file && this.#stamp !== stamp) this.#file.reopen();
    this.#file ??= NativeFile.open(library, source, 'r');
    this.#stamp = stamp;
    const found = this.#file.find(this.#owner.storedPath(path));
    if (found?.node.kind === 'dataset' && found.node.address === node.address) return this.#file.dataset(found.path);
    throw new H5LogError(
      'UNSUPPORTED',
      `${path} is not where the last commit had it, and the data of ordinary datasets can only be read there; flush first`,
      { object: path },
    );
  }

  close(): void {
    this.#file?.close();
    this.#file = null;
  }
}
