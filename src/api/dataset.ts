import { loadLibrary } from '#native';
import { H5LogError } from '../base/errors.ts';
import { checkNames } from '../base/options.ts';
import { anchorMaker } from '../connector/deferred.ts';
import type { FileSession, NewDatasetOptions, RegularDataset } from '../connector/file-session.ts';
import { checkType } from '../dtype/check.ts';
import { containsReference, containsVlen, describeType, sameType } from '../dtype/describe.ts';
import type { ArrayOf, DType, TypedArray, ValueOf } from '../dtype/model.ts';
import type { ObjectNode } from '../hdf5/graph/object-node.ts';
import { createAnchor } from '../log/format/anchor.ts';
import {
  checkFilters,
  type DatasetShape,
  encodeFillValue,
  type Filter,
  regularDataset,
} from '../log/format/properties.ts';
import type { LogDataset } from '../log/post/dataset.ts';
import { planResize } from '../log/post/resize.ts';
import { Reading, type ReadRequest } from '../log/read/reading.ts';
import type { Where } from '../space/select.ts';
import { type Coordinates, checkMaxShape, checkShape, sizeOf } from '../space/shape.ts';
import { driveAsync } from '../storage/io.ts';
import { type Attributes, type AttributeValue, ObjectAttributes } from './attributes.ts';
import type { File } from './file.ts';
import { handle, ObjectHandle, sessionOf } from './handle.ts';

export type { Filter } from '../log/format/properties.ts';

/** An array in memory of that shape, and which of its elements are meant (all of them without `where`). */
export interface Memory {
  shape: readonly number[];
  where?: Where;
}

export interface ReadOptions {
  memory?: Memory;
  signal?: AbortSignal;
}

export interface DatasetOptions<D extends DType> {
  dtype: D;
  shape: readonly number[];
  maxShape?: readonly (number | null)[];
  fill?: ValueOf<D>;
  chunks?: readonly number[];
  filters?: readonly Filter[];
  /** In a log there is no dataset if one of them cannot be set. Several ranks agree on all of them at once, which is faster than one after the other. */
  attributes?: Readonly<Record<string, AttributeValue>>;
}

// The options of the calls below; what they may be is checked where they are used.
const WRITE_MANY = { copy: true };
const WRITE = { ...WRITE_MANY, memory: true };
const READ: Required<Record<keyof ReadRequest | keyof ReadOptions, true>> = {
  memory: true,
  signal: true,
  into: true,
  raw: true,
};
const CREATE: Required<Record<keyof DatasetOptions<DType>, true>> = {
  dtype: true,
  shape: true,
  maxShape: true,
  fill: true,
  chunks: true,
  filters: true,
  attributes: true,
};

/** An n-dimensional array in a file. */
export class Dataset<D extends DType = DType> {
  readonly kind = 'dataset' as const;
  readonly path: string;
  readonly file: File;
  readonly attributes: Attributes;
  /** @internal */
  readonly [handle]: ObjectHandle;
  #logged: LogDataset | null = null;
  /** The node that was found not to be in the log. */
  #ordinary: ObjectNode | null = null;
  /** When these two were found. */
  #generation = -1;

  /** @internal */
  constructor(session: FileSession, file: File, path: string, node: ObjectNode) {
    this[handle] = new ObjectHandle(session, path, node);
    this.file = file;
    this.path = path;
    this.attributes = new ObjectAttributes(this[handle]);
  }

  get #session(): FileSession {
    return this[handle].session;
  }

  get #shape(): DatasetShape {
    const { session, node } = this[handle];
    const anchor = session.direct ? undefined : session.log && session.now(session.log.anchor(node));
    if (anchor) return anchor;
    return regularDataset(session.direct ? session.regular(node, this.path).parts : session.structure.dataset(node));
  }

  /** The dataset's place in the log, kept as long as it is the same object of the same commit; undefined for an ordinary dataset. */
  get #log(): LogDataset | undefined {
    const { node, session } = this[handle];
    if (this.#generation === session.generation) {
      if (this.#logged?.node === node) return this.#logged;
      if (this.#ordinary === node) return undefined;
    }
    this.#logged = session.logDataset(node, this.path) ?? null;
    this.#ordinary = this.#logged ? null : node;
    this.#generation = session.generation;
    return this.#logged ?? undefined;
  }

  /** An ordinary dataset, whose data another library reads and writes. */
  get #regular(): RegularDataset {
    return this.#session.regular(this[handle].node, this.path);
  }

  /** The dataset in the log, for reads: they see what every rank has committed. */
  get #readable(): LogDataset | undefined {
    this.#session.catchUp();
    return this.#log;
  }

  /** The same for changes: the file must be writable, the dataset still there. */
  #writable(): LogDataset | undefined {
    this.#session.writable();
    const dataset = this.#log;
    if (!dataset?.deleted) return dataset;
    throw new H5LogError('NOT_FOUND', `${this.path} was deleted`, {
      file: this.#session.storage.name,
      object: this.path,
    });
  }

  get dtype(): D {
    return this.#shape.dtype as D;
  }

  get shape(): readonly number[] {
    return (this.#log ?? this.#shape).shape;
  }

  get maxShape(): readonly (number | null)[] {
    return (this.#log ?? this.#shape).maxShape;
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

  /** Changes the shape, within maxShape. What is cut off is gone: it is fill when the dataset grows again. */
  resize(shape: readonly number[]): void {
    const session = this.#session;
    session.writable();
    session.sameCall('resize', () => ({ path: this.path, shape }));
    const dataset = this.#writable();
    if (!dataset) {
      this.#regular.resize(shape);
      return;
    }
    const sizes = checkShape(shape);
    checkMaxShape(dataset.maxShape, sizes);
    const leads = session.comm.rank === 0;
    const resize = session.collective(() => {
      if (leads) session.catchUp();
      return session.now(planResize(dataset, sizes, leads));
    });
    resize();
  }

  /** Posts. With copy: false keep the buffer untouched until a flush that covers it has resolved. */
  write(
    data: TypedArray | ArrayOf<D> | readonly (ValueOf<D> | number)[] | ValueOf<D>,
    where?: Where,
    options?: { copy?: boolean; memory?: Memory },
  ): void {
    if (options !== undefined) checkNames('write', options, WRITE);
    const dataset = this.#writable();
    if (dataset) dataset.post(data, where, options);
    else this.#regular.write(data, where, options);
  }

  /** n blocks in one call: starts is flat, n * rank numbers; counts the same, or rank numbers when all blocks are alike. */
  writeMany(
    data: TypedArray | ArrayOf<D> | readonly (ValueOf<D> | number)[],
    starts: Coordinates,
    counts: Coordinates,
    options?: { copy?: boolean },
  ): void {
    if (options !== undefined) checkNames('writeMany', options, WRITE_MANY);
    const dataset = this.#writable();
    if (dataset) dataset.postMany(data, starts, counts, options?.copy !== false);
    else this.#regular.writeMany(data, starts, counts);
  }

  /** Flat, row-major, as long as the selection; a scalar dataset gives one element. */
  read(where?: Where, options?: ReadOptions): Promise<ArrayOf<D>>;
  read<B extends TypedArray>(where: Where | undefined, options: ReadOptions & { into: B }): Promise<B>;
  read(where: Where | undefined, options: ReadOptions & { raw: true }): Promise<Uint8Array<ArrayBuffer>>;
  async read(where?: Where, options: ReadOptions & ReadRequest = {}): Promise<unknown> {
    checkNames('read', options, READ);
    options.signal?.throwIfAborted();
    const dataset = this.#readable;
    if (dataset) return this.#finish(Reading.of(dataset, where, options, true), options.signal);
    return this.#later(options.signal, (regular) => regular.read(where, options));
  }

  readSync(where?: Where, options?: { memory?: Memory }): ArrayOf<D>;
  readSync<B extends TypedArray>(where: Where | undefined, options: { memory?: Memory; into: B }): B;
  readSync(where: Where | undefined, options: { memory?: Memory; raw: true }): Uint8Array<ArrayBuffer>;
  readSync(where?: Where, options: ReadRequest = {}): unknown {
    checkNames('readSync', options, READ);
    const dataset = this.#readable;
    if (dataset) return this.#finishSync(Reading.of(dataset, where, options, false));
    return this.#regular.read(where, options);
  }

  /** The blocks one after the other. */
  async readMany(starts: Coordinates, counts: Coordinates, options: ReadOptions = {}): Promise<ArrayOf<D>> {
    checkNames('readMany', options, READ);
    const { signal } = options;
    signal?.throwIfAborted();
    const dataset = this.#readable;
    const read = dataset
      ? this.#finish(Reading.many(dataset, starts, counts, options, true), signal)
      : this.#later(signal, (regular) => regular.readMany(starts, counts, options));
    return read as Promise<ArrayOf<D>>;
  }

  readManySync(starts: Coordinates, counts: Coordinates): ArrayOf<D> {
    const dataset = this.#readable;
    if (!dataset) return this.#regular.readMany(starts, counts, {}) as ArrayOf<D>;
    return this.#finishSync(Reading.many(dataset, starts, counts, {}, false)) as ArrayOf<D>;
  }

  /** Once the library is there; it blocks while it reads. */
  async #later(signal: AbortSignal | undefined, read: (regular: RegularDataset) => unknown): Promise<unknown> {
    await loadLibrary();
    signal?.throwIfAborted();
    return read(this.#regular);
  }

  async #finish(reading: Reading, signal: AbortSignal | undefined): Promise<unknown> {
    await driveAsync(this.#session.storage, reading.run(), signal);
    return reading.result();
  }

  #finishSync(reading: Reading): unknown {
    this.#session.now(reading.run());
    return reading.result();
  }
}

/** Throws unless the elements of a dataset are of a type. */
export function checkElements(dataset: Dataset, dtype: DType): void {
  if (sameType(dataset.dtype, dtype)) return;
  const message = `${dataset.path} holds ${describeType(dataset.dtype)}, not ${describeType(dtype)}`;
  throw new H5LogError('DTYPE', message, { file: sessionOf(dataset).storage.name, object: dataset.path });
}

/** Checks everything about a new dataset before anything is made. */
export function defineDataset<D extends DType>(
  path: string,
  options: DatasetOptions<D>,
  isLogged: boolean,
): { options: NewDatasetOptions; create(session: FileSession, parent: ObjectNode, name: string): ObjectNode } {
  if (typeof options !== 'object' || options === null)
    throw new H5LogError('OPTION', `${path}: { dtype, shape } are needed`, { object: path });
  checkNames('createDataset', options, CREATE);
  const dtype = checkType(options.dtype);
  if (isLogged && (containsVlen(dtype) || containsReference(dtype))) {
    throw new H5LogError(
      'UNSUPPORTED',
      `${path}: a dataset of a log cannot hold ${describeType(dtype)}, because variable-length data and references are not logged yet`,
      { object: path },
    );
  }
  const shape = checkShape(options.shape);
  const maxShape = checkMaxShape(options.maxShape, shape);
  const chunks = options.chunks === undefined ? null : checkChunks(path, options.chunks, shape);
  const filters = checkFilters(path, options.filters ?? []);
  const { fill } = options;
  if (fill !== undefined) encodeFillValue(dtype, fill);
  const anchor = { dtype, shape, maxShape, chunks, filters, ...(fill === undefined ? {} : { fill }) };
  return {
    options: anchor,
    create(session, parent, name) {
      const log = session.beginLog();
      const make = anchorMaker(session.comm, anchor) ?? createAnchor;
      const node = make(session.structure, parent, name, log.nextIdentity(), anchor);
      log.register(node, { ...anchor, fill });
      return node;
    },
  };
}

function checkChunks(path: string, chunks: readonly number[], shape: readonly number[]): number[] {
  const sizes = checkShape(chunks);
  if (sizes.length !== shape.length)
    throw new H5LogError('SHAPE', `${path}: chunks of ${sizes.length} dimensions for a dataset of ${shape.length}`, {
      object: path,
    });
  if (sizes.some((size) => size === 0))
    throw new H5LogError('SHAPE', `${path}: a chunk cannot have a dimension of 0`, { object: path });
  return sizes;
}
