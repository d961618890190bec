import { atOffset, inObject } from '../../base/errors.ts';
import type { Resolver } from '../../dtype/decode.ts';
import { containsReference, containsVlen } from '../../dtype/describe.ts';
import type { Codecs } from '../../filter/pipeline.ts';
import type { DatasetParts } from '../../hdf5/graph/dataset-header.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import type { ObjectTree } from '../../hdf5/graph/object-tree.ts';
import { type DataReader, dataReader } from '../../hdf5/layouts/data-reader.ts';
import type { Blocks } from '../../space/select.ts';
import type { Io } from '../../storage/io.ts';
import { Elements } from '../post/elements.ts';

/** A dataset of ordinary HDF5, for reads: its data is where its layout says. */
export class OrdinaryDataset {
  readonly node: ObjectNode;
  readonly path: string;
  readonly shape: readonly number[];
  /** A NULL dataspace has no elements; a scalar, which has no dimensions either, has one. */
  readonly isNull: boolean;
  readonly elements: Elements;
  readonly #tree: ObjectTree;
  readonly #parts: DatasetParts;
  readonly #codecs: Codecs | undefined;
  #reader: DataReader | null = null;

  constructor(tree: ObjectTree, node: ObjectNode, path: string, codecs: Codecs | undefined) {
    this.#tree = tree;
    this.node = node;
    this.path = path;
    this.#codecs = codecs;
    this.#parts = tree.dataset(node);
    const { space, dtype } = this.#parts;
    this.shape = space.kind === 'simple' ? space.shape : [];
    this.isNull = space.kind === 'null';
    this.elements = new Elements(dtype);
  }

  /** File offset of its header. */
  get headerAt(): number {
    return this.#tree.loader.file.base + this.node.address;
  }

  boxes(blocks: Blocks): {
    read(packed: Uint8Array): Io<void>;
    resolver?: (bytes: Uint8Array, count: number) => Io<Resolver>;
  } {
    const { dtype } = this.elements;
    const read = (packed: Uint8Array): Io<void> => this.#read(blocks, packed);
    if (!containsVlen(dtype) && !containsReference(dtype)) return { read };
    return { read, resolver: (bytes, count) => this.#tree.resolver(dtype, bytes, count) };
  }

  *#read(blocks: Blocks, packed: Uint8Array): Io<void> {
    try {
      const { loader, chunks } = this.#tree;
      this.#reader ??= dataReader(loader.file, this.#parts, { cache: chunks, codecs: this.#codecs });
      yield* this.#reader.read(blocks, packed);
    } catch (error) {
      throw inObject(atOffset(error, this.headerAt), this.path);
    }
  }
}
