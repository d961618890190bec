import { atOffset, inObject } from '../../base/errors.ts';
import type { Resolver } from '../../dtype/decode.ts';
import type { Codecs } from '../../filter/pipeline.ts';
import type { HeapLookup } from '../../hdf5/format/global-heap.ts';
import type { DatasetParts } from '../../hdf5/graph/dataset-header.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import type { ObjectTree } from '../../hdf5/graph/object-tree.ts';
import { ContiguousReader, type DataReader, dataReader, fillOf } from '../../hdf5/layouts/data-reader.ts';
import { externalBytes, type OpenOther } from '../../hdf5/layouts/external.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import type { Blocks } from '../../space/select.ts';
import type { Io } from '../../storage/io.ts';
import { Elements } from '../post/elements.ts';

/** What reading needs besides the file. */
export interface OrdinaryOptions {
  readonly codecs: Codecs | undefined;
  /** Opens files that hold data of this one. */
  readonly open: OpenOther;
}

type Resolving = (bytes: Uint8Array, count: number) => Io<Resolver>;

/** A dataset of ordinary HDF5, for reads: its data is where its layout says. */
export class OrdinaryDataset {
  readonly node: ObjectNode;
  readonly path: string;
  readonly shape: readonly number[];
  /** A NULL dataspace has no elements; a scalar, which has no dimensions either, has one. */
  readonly isNull: boolean;
  readonly elements: Elements;
  readonly parts: DatasetParts;
  readonly #tree: ObjectTree;
  readonly #options: OrdinaryOptions;
  #reader: DataReader | null = null;

  constructor(tree: ObjectTree, node: ObjectNode, path: string, options: OrdinaryOptions) {
    this.#tree = tree;
    this.node = node;
    this.path = path;
    this.#options = options;
    this.parts = tree.dataset(node);
    const { space, dtype } = this.parts;
    this.shape = space.kind === 'simple' ? space.shape : [];
    this.isNull = space.kind === 'null';
    this.elements = new Elements(dtype);
  }

  /** The fill value; null: zeros. */
  get fill(): Uint8Array | null {
    return fillOf(this.parts);
  }

  /** File offset of its header. */
  get headerAt(): number {
    return this.#tree.loader.file.base + this.node.address;
  }

  boxes(blocks: Blocks): {
    read(packed: Uint8Array, isZero?: boolean): Io<void>;
    resolver?: Resolving | undefined;
  } {
    return { read: (packed, isZero) => this.#read(blocks, packed, isZero), resolver: this.resolver() };
  }

  /** Finds what elements point to, those of posts through `pending` and `addressOf`; undefined if they do not point. */
  resolver(pending?: HeapLookup, addressOf?: (reference: number) => number): Resolving | undefined {
    if (!this.elements.points) return undefined;
    return (bytes, count) => this.#tree.resolver(this.elements.dtype, bytes, count, pending, addressOf);
  }

  *#open(): Io<DataReader> {
    const { loader, chunks } = this.#tree;
    const external = this.node.message(MESSAGE.externalFiles);
    if (!external) return dataReader(loader.file, this.parts, { cache: chunks, codecs: this.#options.codecs });
    const files = yield* externalBytes(loader.file, external, this.#options.open);
    return new ContiguousReader(files, 0, this.shape, this.elements.size);
  }

  *#read(blocks: Blocks, packed: Uint8Array, isZero: boolean | undefined): Io<void> {
    try {
      this.#reader ??= yield* this.#open();
      yield* this.#reader.read(blocks, packed, isZero);
    } catch (error) {
      throw inObject(atOffset(error, this.headerAt), this.path);
    }
  }
}
