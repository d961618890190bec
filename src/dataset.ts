import { type Attributes, ObjectAttributes } from './attributes.ts';
import type { Session } from './connector/session.ts';
import { checkType, describeType, sameType } from './dtype/construct.ts';
import { containsVlen } from './dtype/describe.ts';
import type { DType, ValueOf } from './dtype/model.ts';
import { H5LogError } from './errors.ts';
import type { File } from './file.ts';
import type { ObjectNode } from './hdf5/object-node.ts';
import { createAnchor, readAnchor, resizeAnchor } from './log/anchor.ts';
import { checkFilters, type Filter, regularDataset, type DatasetShape } from './log/dataset-shape.ts';
import { checkMaxShape, checkShape, sizeOf } from './space/shape.ts';

export type { Filter } from './log/dataset-shape.ts';

export interface DatasetOptions<D extends DType> {
  dtype: D;
  shape: readonly number[];
  maxShape?: readonly (number | null)[];
  fill?: ValueOf<D>;
  chunks?: readonly number[];
  filters?: readonly Filter[];
}

/** An n-dimensional array in a file. */
export class Dataset<D extends DType = DType> {
  readonly kind = 'dataset' as const;
  readonly path: string;
  readonly file: File;
  readonly attributes: Attributes;
  /** @internal */
  readonly session: Session;
  #node: ObjectNode;
  #generation: number;

  /** @internal */
  constructor(session: Session, file: File, path: string, node: ObjectNode) {
    this.session = session;
    this.file = file;
    this.path = path;
    this.#node = node;
    this.#generation = session.generation;
    this.attributes = new ObjectAttributes(this);
  }

  /** @internal */
  get node(): ObjectNode {
    if (this.#generation !== this.session.generation) {
      const node = this.session.find(this.session.structure.root, this.path);
      if (!node || node.kind !== 'dataset') {
        throw new H5LogError('NOT_FOUND', `${this.path} is no longer a dataset`, { file: this.session.storage.name, object: this.path });
      }
      this.#node = node;
      this.#generation = this.session.generation;
    }
    return this.#node;
  }

  get #shape(): DatasetShape {
    const { structure } = this.session;
    return this.session.now(readAnchor(structure, this.node)) ?? regularDataset(structure.dataset(this.node));
  }

  get dtype(): D {
    return this.#shape.dtype as D;
  }

  get shape(): readonly number[] {
    return this.#shape.shape;
  }

  get maxShape(): readonly (number | null)[] {
    return this.#shape.maxShape;
  }

  get rank(): number {
    return this.shape.length;
  }

  get size(): number {
    return sizeOf(this.shape);
  }

  get fill(): ValueOf<D> | undefined {
    return this.#shape.fill as ValueOf<D> | undefined;
  }

  get chunks(): readonly number[] | null {
    return this.#shape.chunks;
  }

  get filters(): readonly Filter[] {
    return this.#shape.filters;
  }

  /** Whether the elements are of a type; narrows the dataset's own type. */
  is<E extends DType>(dtype: E): this is Dataset<E> {
    return sameType(this.dtype, dtype);
  }

  /** @internal */
  mustBe(dtype: DType): void {
    if (sameType(this.dtype, dtype)) return;
    throw new H5LogError('DTYPE', `${this.path} holds ${describeType(this.dtype)}, not ${describeType(dtype)}`, {
      file: this.session.storage.name,
      object: this.path,
    });
  }

  /** Changes the shape, within maxShape. */
  resize(shape: readonly number[]): void {
    this.session.writable();
    const sizes = checkShape(shape);
    checkMaxShape(this.maxShape, sizes);
    const anchor = this.session.now(readAnchor(this.session.structure, this.node));
    if (!anchor) throw new H5LogError('UNSUPPORTED', `${this.path} is not a dataset of the log; its shape cannot be changed`, { object: this.path });
    this.session.now(resizeAnchor(this.session.structure, this.node, sizes));
  }
}

/** Checks everything about a new dataset before anything is made. */
export function defineDataset<D extends DType>(
  path: string,
  options: DatasetOptions<D>,
): { create(session: Session, parent: ObjectNode, name: string): ObjectNode } {
  if (typeof options !== 'object' || options === null) throw new H5LogError('OPTION', `${path}: { dtype, shape } are needed`, { object: path });
  const dtype = checkType(options.dtype);
  if (containsVlen(dtype)) {
    throw new H5LogError('UNSUPPORTED', `${path}: a dataset of a log cannot hold ${describeType(dtype)}, because variable-length data is not logged yet`, { object: path });
  }
  const shape = checkShape(options.shape);
  const maxShape = checkMaxShape(options.maxShape, shape);
  const chunks = options.chunks === undefined ? null : checkChunks(path, options.chunks, shape);
  const filters = checkFilters(path, options.filters ?? []);
  const { fill } = options;
  return {
    create(session, parent, name) {
      const id = session.nextDatasetId();
      const anchor = { dtype, shape, maxShape, chunks, filters, ...(fill === undefined ? {} : { fill }) };
      const node = session.now(createAnchor(session.structure, parent, name, id, anchor));
      session.countDataset();
      return node;
    },
  };
}

function checkChunks(path: string, chunks: readonly number[], shape: readonly number[]): number[] {
  const sizes = checkShape(chunks);
  if (sizes.length !== shape.length) throw new H5LogError('SHAPE', `${path}: chunks of ${sizes.length} dimensions for a dataset of ${shape.length}`, { object: path });
  if (sizes.some((size) => size === 0)) throw new H5LogError('SHAPE', `${path}: a chunk cannot have a dimension of 0`, { object: path });
  return sizes;
}
