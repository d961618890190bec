import { H5LogError, printAs } from '../base/errors.ts';
import { checkNames } from '../base/options.ts';
import type { FileSession } from '../connector/file-session.ts';
import { describeType, sameType } from '../dtype/describe.ts';
import { ColumnRows } from '../dtype/encode.ts';
import {
  type ArrayOf,
  type Columns,
  type DType,
  fullType,
  type InputOf,
  type NumberType,
  type TypedArray,
  type ValueOf,
} from '../dtype/model.ts';
import type { DatasetParts } from '../hdf5/graph/dataset-header.ts';
import type { ObjectNode } from '../hdf5/graph/object-node.ts';
import { filterName } from '../hdf5/messages/filter-pipeline.ts';
import { type DatasetShape, type Filter, regularDataset } from '../log/format/properties.ts';
import type { PublishWay } from '../log/format/view.ts';
import type { LogDataset, PostedDataset } from '../log/post/dataset.ts';
import { appendRows, planResize } from '../log/post/resize.ts';
import { WritableDataset } from '../log/post/writable.ts';
import { type Readable, Reading, type ReadRequest } from '../log/read/reading.ts';
import { resolve, type Where } from '../space/select.ts';
import { type Coordinates, checkMaxShape, checkShape, sizeOf } from '../space/shape.ts';
import { driveAsync } from '../storage/io.ts';
import { type Attributes, ObjectAttributes } from './attributes.ts';
import { type Dimension, dimensionsOf } from './dimensions.ts';
import type { File } from './file.ts';
import { fileOf, handle, lineOf, ObjectHandle, sessionOf } from './handle.ts';
import { batchesOf, type Conversion, checkPieces, convertedRead } from './reads.ts';
import { attachScale, detachScale, labelDimension, makeScale } from './scales.ts';

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

/** Without any of these a read gives the dataset's own type. */
interface Plain {
  into?: undefined;
  raw?: undefined;
  as?: undefined;
  columns?: undefined;
}

interface WriteOptions {
  copy?: boolean;
  memory?: Memory;
  columns?: true;
}

// The options of the calls below; what they may be is checked where they are used.
const WRITE_MANY = { copy: true };
const APPEND = { ...WRITE_MANY, columns: true };
const WRITE = { ...APPEND, memory: true };
const READ_MANY: Record<keyof ReadRequest | keyof ReadOptions, true> = {
  memory: true,
  signal: true,
  into: true,
  raw: true,
};
const READ: typeof READ_MANY & Record<keyof Conversion, true> = { ...READ_MANY, as: true, columns: true };

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
    const anchor = session.log && session.now(session.log.anchor(node));
    if (anchor) return anchor;
    const resolve = (dtype: DType, bytes: Uint8Array) => session.now(session.structure.resolver(dtype, bytes, 1));
    return regularDataset(this.#parts, resolve);
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

  /** The dataset as posts and reads of a writable file see it; undefined for an ordinary dataset that can only be read. */
  get #posted(): LogDataset | WritableDataset | undefined {
    return this.#log ?? this.#session.changed(this[handle].node, this.path);
  }

  /** What reads get their elements from: they see what every rank has committed. */
  get #readable(): Readable {
    this.#session.catchUp();
    const dataset = this.#posted;
    if (dataset?.deleted) throw this.#unusable(true);
    return dataset ?? this.#session.ordinary(this[handle].node, this.path);
  }

  /** The same for changes: the file must be writable, the dataset still there. */
  #writable(): LogDataset | WritableDataset {
    this.#session.writable();
    const dataset = this.#posted;
    if (dataset && !dataset.deleted) return dataset;
    throw this.#unusable(dataset !== undefined); // not made here, where every post comes along
  }

  #unusable(wasDeleted: boolean): H5LogError {
    const { comm, log, storage } = this.#session;
    const details = { file: storage.name, object: this.path };
    if (wasDeleted) return new H5LogError('NOT_FOUND', `${this.path} was deleted`, details);
    let why = 'the data of a virtual dataset is in others';
    if (!import.meta.page && (comm.size > 1 || log?.hasSubfiles))
      why = 'several ranks, or one of a file with subfiles, can only read ordinary data';
    return new H5LogError('UNSUPPORTED', `${this.path} cannot be changed: ${why}`, details);
  }

  get dtype(): D {
    return this.#shape.dtype as D;
  }

  get shape(): readonly number[] {
    const logged = this.#log;
    if (logged) return logged.frozenShape;
    const { session, node } = this[handle];
    const changed = session.changed(node, this.path);
    if (changed) return changed.frozenShape;
    // That of a virtual dataset may depend on its sources.
    const isVirtual = this.#parts.layout?.kind === 'virtual';
    return ((isVirtual && session.ordinary(node, this.path)) || this.#shape).shape;
  }

  get maxShape(): readonly (number | null)[] {
    return (this.#posted ?? this.#shape).maxShape;
  }

  get rank(): number {
    return this.shape.length;
  }

  /** 0 in a NULL dataspace. */
  get size(): number {
    const { shape } = this;
    return shape.length === 0 && this.space === 'null' ? 0 : sizeOf(shape);
  }

  /** A NULL dataspace has shape [] and size 0. */
  get space(): 'simple' | 'scalar' | 'null' {
    const dataset = this.#log;
    return dataset ? (dataset.shape.length === 0 ? 'scalar' : 'simple') : this.#parts.space.kind;
  }

  /** The filters as they are in the file, known or not. */
  get pipeline(): readonly { id: number; name: string; parameters: readonly number[]; optional: boolean }[] {
    return (this.#log ?? this.#parts).filters.map(({ id, name, values, flags }) => ({
      id,
      name: name || filterName(id),
      parameters: [...values],
      optional: (flags & 1) !== 0,
    }));
  }

  /** Which commit every HDF5 program sees, and how; null: never published. */
  get published(): { readonly sequence: number; readonly way: PublishWay } | null {
    const dataset = this.#log;
    if (!dataset) return { sequence: this.#session.last.sequence, way: 'ordinary' };
    const view = dataset.published?.view;
    return view ? { sequence: view.sequence, way: view.way } : null;
  }

  /** The messages of an ordinary dataset. */
  get #parts(): DatasetParts {
    const { session, node } = this[handle];
    return session.structure.dataset(node);
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

  /** The label and the scales of each dimension. */
  get dimensions(): readonly Dimension[] {
    return dimensionsOf(this);
  }

  /** Makes the dataset a dimension scale: the coordinates of a dimension of other datasets. */
  makeScale(name?: string): void {
    this.#session.writable();
    makeScale(this, name);
  }

  /** Attaches a scale to a dimension. A dataset that is no scale becomes one. */
  attachScale(dimension: number, scale: Dataset): void {
    this.#session.writable();
    attachScale(this, dimension, scale);
  }

  detachScale(dimension: number, scale: Dataset): void {
    this.#session.writable();
    detachScale(this, dimension, scale);
  }

  labelDimension(dimension: number, label: string): void {
    this.#session.writable();
    labelDimension(this, dimension, label);
  }

  /** Whether the elements are of a type; narrows the dataset's own type. */
  is<E extends DType>(dtype: E): this is Dataset<E> {
    return sameType(this.dtype, dtype);
  }

  /** Changes the shape, within maxShape. What is cut off is gone: it is fill when the dataset grows again. */
  resize(shape: readonly number[]): void {
    const session = this.#session;
    session.writable();
    session.change(
      'resize',
      () => ({ path: this.path, shape }),
      () => {
        const dataset = this.#writable();
        const sizes = checkShape(shape);
        checkMaxShape(dataset.maxShape, sizes);
        if (dataset instanceof WritableDataset) {
          dataset.resize(sizes);
          return;
        }
        const leads = session.comm.rank === 0;
        if (leads) session.catchUp();
        session.now(planResize(dataset, sizes, leads))();
      },
    );
  }

  /** Posts. With copy: false keep the buffer untouched until a flush that covers it has resolved. */
  write(
    data: TypedArray | ArrayOf<D> | readonly (InputOf<D> | number)[] | InputOf<D>,
    where?: Where,
    options?: { copy?: boolean; memory?: Memory },
  ): void;
  /** Compounds: one array a field. */
  write(data: Columns, where: Where | undefined, options: { columns: true; copy?: boolean }): void;
  write(data: unknown, where?: Where, options?: WriteOptions): void {
    if (options !== undefined) checkNames('write', options, WRITE);
    const dataset = this.#writable();
    if (dataset instanceof WritableDataset && this.space === 'null')
      throw new H5LogError('SHAPE', `${this.path} holds no elements`, { object: this.path });
    const values = options?.columns === undefined ? data : this.#rows(dataset, data, options.columns);
    dataset.post(values, where, options);
  }

  /** n blocks in one call: starts is flat, n * rank numbers; counts the same, or rank numbers when all blocks are alike. */
  writeMany(
    data: TypedArray | ArrayOf<D> | readonly (InputOf<D> | number)[],
    starts: Coordinates,
    counts: Coordinates,
    options?: { copy?: boolean },
  ): void {
    if (options !== undefined) checkNames('writeMany', options, WRITE_MANY);
    const dataset = this.#writable();
    dataset.postMany(data, starts, counts, options?.copy !== false);
  }

  /** Grows dimension 0 by whole rows and posts them; returns the first new row. OPTION with several ranks. */
  append(data: TypedArray | ArrayOf<D> | readonly (InputOf<D> | number)[], options?: { copy?: boolean }): number;
  append(data: Columns, options: { columns: true; copy?: boolean }): number;
  append(data: unknown, options?: WriteOptions): number {
    if (options !== undefined) checkNames('append', options, APPEND);
    const session = this.#session;
    const dataset = this.#writable();
    if (!import.meta.page && session.comm.size > 1) {
      const text = `${this.path}: append is for one rank; with several, resize and write`;
      throw new H5LogError('OPTION', text, { object: this.path });
    }
    const values = options?.columns === undefined ? data : this.#rows(dataset, data, options.columns);
    return appendRows(dataset, values, options, (io) => session.now(io));
  }

  /** The data of a call with `columns`. */
  #rows(dataset: PostedDataset, data: unknown, columns: unknown): ColumnRows {
    if (columns !== true) throw new H5LogError('OPTION', `columns must be true, got ${String(columns)}`);
    return new ColumnRows(dataset.elements.dtype, data);
  }

  /** Flat, row-major, as long as the selection; a scalar dataset gives one element. */
  read(where?: Where, options?: ReadOptions & Plain): Promise<ArrayOf<D>>;
  read<B extends TypedArray>(where: Where | undefined, options: ReadOptions & { into: B }): Promise<B>;
  read(where: Where | undefined, options: ReadOptions & { raw: true }): Promise<Uint8Array<ArrayBuffer>>;
  /** Converted: int64 as float64, for example. */
  read<N extends NumberType>(where: Where | undefined, options: ReadOptions & { as: N }): Promise<ArrayOf<N>>;
  /** Compounds as one array a field. */
  read(where: Where | undefined, options: ReadOptions & { columns: true | readonly string[] }): Promise<Columns>;
  async read(where?: Where, options: ReadOptions & ReadRequest & Conversion = {}): Promise<unknown> {
    checkNames('read', options, READ);
    const { signal } = options;
    signal?.throwIfAborted();
    const dataset = this.#readable;
    const { request, finish } = convertedRead(this.path, () => dataset.elements.dtype, options);
    const result = await this.#finish(Reading.of(dataset, where, request, true), signal);
    return finish ? finish(result) : result;
  }

  readSync(where?: Where, options?: { memory?: Memory } & Plain): ArrayOf<D>;
  readSync<N extends NumberType>(where: Where | undefined, options: { memory?: Memory; as: N }): ArrayOf<N>;
  readSync(where: Where | undefined, options: { memory?: Memory; columns: true | readonly string[] }): Columns;
  readSync<B extends TypedArray>(where: Where | undefined, options: { memory?: Memory; into: B }): B;
  readSync(where: Where | undefined, options: { memory?: Memory; raw: true }): Uint8Array<ArrayBuffer>;
  readSync(where?: Where, options: ReadRequest & Conversion = {}): unknown {
    checkNames('readSync', options, READ);
    const dataset = this.#readable;
    const { request, finish } = convertedRead(this.path, () => dataset.elements.dtype, options);
    const result = this.#finishSync(Reading.of(dataset, where, request, false));
    return finish ? finish(result) : result;
  }

  /** The blocks one after the other. */
  readMany(starts: Coordinates, counts: Coordinates, options?: ReadOptions): Promise<ArrayOf<D>>;
  readMany<B extends TypedArray>(
    starts: Coordinates,
    counts: Coordinates,
    options: ReadOptions & { into: B },
  ): Promise<B>;
  async readMany(starts: Coordinates, counts: Coordinates, options: ReadOptions & ReadRequest = {}): Promise<unknown> {
    checkNames('readMany', options, READ_MANY);
    const { signal } = options;
    signal?.throwIfAborted();
    return this.#finish(Reading.many(this.#readable, starts, counts, options, true), signal);
  }

  readManySync(starts: Coordinates, counts: Coordinates): ArrayOf<D>;
  readManySync<B extends TypedArray>(starts: Coordinates, counts: Coordinates, options: { into: B }): B;
  readManySync(starts: Coordinates, counts: Coordinates, options: ReadRequest = {}): unknown {
    checkNames('readManySync', options, READ_MANY);
    return this.#finishSync(Reading.many(this.#readable, starts, counts, options, false));
  }

  /** The elements of a selection in boxes of about `bytes` (default 16 MiB), whole chunks where there are any; each is read when asked for. */
  async *pieces(
    where?: Where,
    options: { bytes?: number; signal?: AbortSignal } = {},
  ): AsyncIterableIterator<{ start: readonly number[]; count: readonly number[]; data: ArrayOf<D> }> {
    const most = Math.max(1, Math.floor(checkPieces(options) / fullType(this.dtype).size));
    const read = options.signal ? { signal: options.signal } : {};
    const { rank } = this;
    if (this.space === 'null') return;
    for (const { starts, counts, sizes } of batchesOf(resolve(where, this.shape), this.chunks, most)) {
      const data = await this.readMany(starts, counts, read);
      let at = 0;
      for (let i = 0; i < sizes.length; i++) {
        options.signal?.throwIfAborted();
        const [start, count] = [starts.slice(i * rank, (i + 1) * rank), counts.slice(i * rank, (i + 1) * rank)];
        const end = at + (sizes[i] as number);
        const part = sizes.length === 1 ? data : (data as unknown as TypedArray).slice(at, end);
        yield { start, count, data: part as ArrayOf<D> };
        at = end;
      }
    }
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

printAs(Dataset.prototype as Dataset, 'Dataset', (dataset) => {
  const of = ` of ${fileOf(dataset[handle])}`;
  const name = `Dataset ${dataset.path}`;
  const line = lineOf(name, () => {
    const { space, shape, dtype } = dataset;
    return ` ${describeType(dtype)} ${space === 'simple' ? `[${shape.join(', ')}]` : space}${of}`;
  });
  return line.endsWith(of) ? line : line.replace(name, name + of);
});

/** Throws unless the elements of a dataset are of a type. */
export function checkElements(dataset: Dataset, dtype: DType): void {
  if (sameType(dataset.dtype, dtype)) return;
  const message = `${dataset.path} holds ${describeType(dataset.dtype)}, not ${describeType(dtype)}`;
  throw new H5LogError('DTYPE', message, { file: sessionOf(dataset).storage.name, object: dataset.path });
}
