// The public API of h5log, second edition. Names, argument order and types here are binding (outside checks call them); additions are free.
// What is new against the first edition is marked (2).
// Compiles under strict, exactOptionalPropertyTypes, noUncheckedIndexedAccess, skipLibCheck: false.

// ---------------------------------------------------------------- 'h5log': element types
export type NumberType =
  | 'int8'
  | 'uint8'
  | 'int16'
  | 'uint16'
  | 'int32'
  | 'uint32'
  | 'int64'
  | 'uint64'
  | 'float16'
  | 'float32'
  | 'float64';
interface NumberArrays {
  int8: Int8Array<ArrayBuffer>;
  uint8: Uint8Array<ArrayBuffer>;
  int16: Int16Array<ArrayBuffer>;
  uint16: Uint16Array<ArrayBuffer>;
  int32: Int32Array<ArrayBuffer>;
  uint32: Uint32Array<ArrayBuffer>;
  int64: BigInt64Array<ArrayBuffer>;
  uint64: BigUint64Array<ArrayBuffer>;
  float16: Float32Array<ArrayBuffer>;
  float32: Float32Array<ArrayBuffer>;
  float64: Float64Array<ArrayBuffer>;
}
export type TypedArray =
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array;
/** A described type: V is one element in JavaScript, A what a read returns, W (2) what may be written in place of V. */
export interface Described<V = unknown, A = ArrayLike<unknown>, W = V> {
  readonly class:
    | 'integer'
    | 'float'
    | 'string'
    | 'bitfield'
    | 'opaque'
    | 'compound'
    | 'reference'
    | 'enum'
    | 'vlen'
    | 'array';
  readonly size: number;
  readonly _value?: V;
  readonly _array?: A;
  readonly _input?: W;
}
export type DType = NumberType | Described;
export type ValueOf<D> = D extends 'int64' | 'uint64'
  ? bigint
  : D extends NumberType
    ? number
    : D extends Described<infer V, infer _A, infer _W>
      ? V
      : never;
/** (2) */
export type InputOf<D> = D extends NumberType
  ? ValueOf<D>
  : D extends Described<infer _V, infer _A, infer W>
    ? W
    : never;
export type ArrayOf<D> = D extends NumberType
  ? NumberArrays[D]
  : D extends Described<infer _V, infer A, infer _W>
    ? A
    : never;
export declare const T: {
  littleEndian<D extends NumberType>(of: D): Described<ValueOf<D>, ArrayOf<D>>;
  bigEndian<D extends NumberType>(of: D): Described<ValueOf<D>, ArrayOf<D>>;
  /** Without length: variable length. 'terminated' is 'zero' (NULLTERM), 'padded' is 'null' (NULLPAD): plainer names (2). */
  string(options?: {
    length?: number;
    pad?: 'zero' | 'null' | 'space' | 'terminated' | 'padded';
    charset?: 'utf8' | 'ascii';
  }): Described<string, string[]>;
  /** h5py's FALSE/TRUE enum. */
  readonly bool: Described<boolean, Uint8Array<ArrayBuffer>>;
  /** (2) Values may be written by name; reads give integers. */
  enum<D extends NumberType, const M extends Readonly<Record<string, number | bigint>>>(
    base: D,
    members: M,
  ): Described<ValueOf<D>, ArrayOf<D>, ValueOf<D> | (keyof M & string)> & { readonly members: M };
  compound<const F extends Readonly<Record<string, DType>>>(
    fields: F,
    layout?: { offsets: Readonly<Record<keyof F, number>>; size: number },
  ): Described<
    { [K in keyof F]: ValueOf<F[K]> },
    { [K in keyof F]: ValueOf<F[K]> }[],
    { [K in keyof F]: InputOf<F[K]> }
  >;
  array<D extends DType>(base: D, shape: readonly number[]): Described<ArrayOf<D>, ArrayOf<D>[]>;
  vlen<D extends DType>(base: D): Described<ArrayOf<D>, ArrayOf<D>[]>;
  opaque(size: number, tag?: string): Described<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>[]>;
  bitfield(bytes: 1 | 2 | 4 | 8): Described<number | bigint, TypedArray>;
  /** Object reference; in JavaScript the path it points to. */
  readonly reference: Described<string, string[]>;
  /** (2) Region reference. null: never set. */
  readonly region: Described<{ path: string; where: Selection } | null, ({ path: string; where: Selection } | null)[]>;
};

// ---------------------------------------------------------------- selections
export type Coordinates = ArrayLike<number>;
/** Missing start is 0, stride and block 1, missing count is up to the end. */
export interface Slab {
  start?: Coordinates;
  count?: Coordinates;
  stride?: Coordinates;
  block?: Coordinates;
}
export interface Selection {
  readonly rank: number;
  readonly size: number;
  boxes(): IterableIterator<{ start: readonly number[]; count: readonly number[] }> /* (2) disjoint, row-major */;
  or(other: Where): Selection;
  and(other: Where): Selection;
  xor(other: Where): Selection;
  minus(other: Where): Selection;
}
export type Where = Slab | Selection;
export declare const select: {
  all(): Selection;
  none(): Selection;
  box(start: Coordinates, count: Coordinates): Selection;
  hyperslab(slab: Slab): Selection;
  points(points: readonly Coordinates[]): Selection;
  points(flat: Coordinates, rank: number): Selection;
  blocks(starts: readonly Coordinates[], counts: readonly Coordinates[]): Selection;
};

// ---------------------------------------------------------------- datasets, attributes, groups
export interface Memory {
  shape: readonly number[];
  where?: Where;
}
export interface ReadOptions {
  memory?: Memory;
  signal?: AbortSignal;
}
/** (2) */
export type Columns = Readonly<Record<string, ArrayLike<unknown>>>;
interface Plain {
  into?: undefined;
  raw?: undefined;
  as?: undefined;
  columns?: undefined;
}
/** The last form (2): a registered filter by its number; read-only ones (lzf, szip ...) are shown so as well. */
export type Filter =
  | 'shuffle'
  | 'fletcher32'
  | { readonly deflate: number }
  | { readonly id: number; readonly parameters?: readonly number[] };
export type PublishWay = 'empty' | 'contiguous' | 'chunked' | 'virtual' | 'copied' | 'ordinary';
export declare class Dataset<D extends DType = DType> {
  readonly kind: 'dataset';
  readonly path: string;
  readonly file: File;
  readonly dtype: D;
  readonly attributes: Attributes;
  readonly shape: readonly number[];
  readonly maxShape: readonly (number | null)[];
  readonly rank: number;
  readonly size: number;
  readonly fill: ValueOf<D> | undefined;
  readonly chunks: readonly number[] | null;
  readonly filters: readonly Filter[];
  is<E extends DType>(dtype: E): this is Dataset<E>;
  /** (2) A NULL dataspace has shape [] and size 0. */
  readonly space: 'simple' | 'scalar' | 'null';
  /** (2) The filters as they are in the file, known or not. */
  readonly pipeline: readonly { id: number; name: string; parameters: readonly number[]; optional: boolean }[];
  /** (2) Which commit every HDF5 program sees, and how; null: never published. */
  readonly published: { readonly sequence: number; readonly way: PublishWay } | null;
  /** (2) Grows dimension 0 by whole rows and posts them; returns the first new row. OPTION with several ranks. */
  append(data: TypedArray | ArrayOf<D> | readonly (InputOf<D> | number)[], options?: { copy?: boolean }): number;
  append(data: Columns, options: { columns: true; copy?: boolean }): number;
  /** (2) The elements in pieces of about `bytes` (default 16 MiB), in an order that is cheap to read. */
  pieces(
    where?: Where,
    options?: { bytes?: number; signal?: AbortSignal },
  ): AsyncIterableIterator<{ start: readonly number[]; count: readonly number[]; data: ArrayOf<D> }>;
  /** (2) Dimension scales. */
  makeScale(name?: string): void;
  attachScale(dimension: number, scale: Dataset): void;
  detachScale(dimension: number, scale: Dataset): void;
  labelDimension(dimension: number, label: string): void;
  readonly dimensions: readonly { readonly label: string; readonly scales: readonly Dataset[] }[];
  resize(shape: readonly number[]): void;
  /** Posts. With copy: false keep the buffer untouched until a flush that covers it has resolved. */
  write(
    data: TypedArray | ArrayOf<D> | readonly (InputOf<D> | number)[] | InputOf<D>,
    where?: Where,
    options?: { copy?: boolean; memory?: Memory },
  ): void;
  /** (2) Compounds: one array a field. */
  write(data: Columns, where: Where | undefined, options: { columns: true; copy?: boolean }): void;
  /** n blocks in one call: starts is flat, n * rank numbers; counts the same, or rank numbers when all blocks are alike. */
  writeMany(
    data: TypedArray | ArrayOf<D> | readonly (InputOf<D> | number)[],
    starts: Coordinates,
    counts: Coordinates,
    options?: { copy?: boolean },
  ): void;
  /** Flat, row-major, as long as the selection; a scalar dataset gives one element. */
  read(where?: Where, options?: ReadOptions & Plain): Promise<ArrayOf<D>>;
  read<B extends TypedArray>(where: Where | undefined, options: ReadOptions & { into: B }): Promise<B>;
  read(where: Where | undefined, options: ReadOptions & { raw: true }): Promise<Uint8Array<ArrayBuffer>>;
  /** (2) Converted: int64 as float64, for example. */
  read<N extends NumberType>(where: Where | undefined, options: ReadOptions & { as: N }): Promise<ArrayOf<N>>;
  /** (2) Compounds as one array a field. */
  read(where: Where | undefined, options: ReadOptions & { columns: true | readonly string[] }): Promise<Columns>;
  readSync(where?: Where, options?: { memory?: Memory } & Plain): ArrayOf<D>;
  readSync<N extends NumberType>(where: Where | undefined, options: { memory?: Memory; as: N }): ArrayOf<N>;
  readSync(where: Where | undefined, options: { memory?: Memory; columns: true | readonly string[] }): Columns;
  readSync<B extends TypedArray>(where: Where | undefined, options: { memory?: Memory; into: B }): B;
  readSync(where: Where | undefined, options: { memory?: Memory; raw: true }): Uint8Array<ArrayBuffer>;
  /** The blocks one after the other. */
  readMany(starts: Coordinates, counts: Coordinates, options?: ReadOptions): Promise<ArrayOf<D>>;
  readMany<B extends TypedArray>(
    starts: Coordinates,
    counts: Coordinates,
    options: ReadOptions & { into: B },
  ): Promise<B>;
  readManySync(starts: Coordinates, counts: Coordinates): ArrayOf<D>;
  readManySync<B extends TypedArray>(starts: Coordinates, counts: Coordinates, options: { into: B }): B;
}
export type AttributeValue =
  | null
  | number
  | bigint
  | boolean
  | string
  | TypedArray
  | readonly number[]
  | readonly bigint[]
  | readonly string[]
  | object;
/**
 * set: number float64, bigint int64 (uint64 above 2^63-1), boolean T.bool, string and string[] variable-length UTF-8, TypedArray its own
 * type, number[] float64, null a NULL dataspace; arrays are 1-d unless shape says otherwise; an existing name is replaced.
 * get: scalars as JavaScript scalars, else flat arrays; undefined if absent.
 */
export interface Attributes extends Iterable<[string, AttributeValue]> {
  readonly size: number;
  get(name: string): AttributeValue | undefined;
  describe(name: string): { dtype: DType; shape: readonly number[] | null } | undefined;
  set(name: string, value: AttributeValue, options?: { dtype?: DType; shape?: readonly number[] }): void;
  has(name: string): boolean;
  delete(name: string): void;
  keys(): IterableIterator<string>;
}
export declare class Group {
  readonly kind: 'group';
  readonly path: string;
  readonly file: File;
  readonly attributes: Attributes;
  get(path: string): Group | Dataset | undefined;
  group(path: string): Group;
  dataset(path: string): Dataset;
  dataset<D extends DType>(path: string, dtype: D): Dataset<D>;
  has(path: string): boolean;
  keys(): IterableIterator<string>;
  children(): IterableIterator<[string, Group | Dataset | undefined]>;
  createGroup(path: string): Group;
  createDataset<const D extends DType>(
    path: string,
    options: {
      dtype: D;
      shape: readonly number[];
      maxShape?: readonly (number | null)[];
      fill?: ValueOf<D>;
      chunks?: readonly number[];
      filters?: readonly Filter[];
      attributes?: Readonly<Record<string, AttributeValue>>;
    },
  ): Dataset<D>;
  createSoftLink(path: string, target: string): void;
  createHardLink(path: string, target: string): void;
  createExternalLink(path: string, file: string, target: string): void;
  move(from: string, to: string): void;
  delete(path: string): void;
  /** (2) Brings structure into memory: the object and its direct children unless depth says more. At once where everything is there. */
  load(path?: string, options?: { depth?: number; signal?: AbortSignal }): Promise<this>;
  /** (2) Links as they are, followed or not. */
  links(): IterableIterator<{
    name: string;
    kind: 'hard' | 'soft' | 'external' | 'other';
    object?: 'group' | 'dataset' | 'datatype';
    target?: string;
    file?: string;
  }>;
  /** (2) There already, or made; SHAPE or DTYPE if it is there and differs. */
  requireGroup(path: string): Group;
  requireDataset<const D extends DType>(
    path: string,
    options: {
      dtype: D;
      shape: readonly number[];
      maxShape?: readonly (number | null)[];
      fill?: ValueOf<D>;
      chunks?: readonly number[];
      filters?: readonly Filter[];
      attributes?: Readonly<Record<string, AttributeValue>>;
    },
  ): Dataset<D>;
  /** (2) Committed datatypes. */
  datatype(path: string): {
    readonly kind: 'datatype';
    readonly path: string;
    readonly dtype: DType;
    readonly attributes: Attributes;
  };
  createDatatype(path: string, dtype: DType): void;
}

// ---------------------------------------------------------------- files
export interface Commit {
  readonly sequence: number;
  readonly time: Date;
  readonly bytes: number;
  readonly requests: number;
}
/** Every call is collective, blocking, and made in the same order on all ranks. */
export interface Communicator {
  readonly rank: number;
  readonly size: number;
  readonly kind: 'solo' | 'threads' | 'mpi';
  barrier(): void;
  bcast(bytes: Uint8Array | null, root: number): Uint8Array;
  allreduce(values: Float64Array, op: 'sum' | 'min' | 'max'): Float64Array;
  exscan(values: Float64Array): Float64Array;
  gather(bytes: Uint8Array, root: number): Uint8Array[] | null;
  allgather(bytes: Uint8Array): Uint8Array[];
  split(color: number): Communicator;
  abort(code: number): never;
  close(): void;
}
/** The blocking half is optional: without it (http, Blob) every ...Sync call throws UNSUPPORTED. Without write it is read only. */
export interface ByteStorage {
  readonly name: string;
  size(): Promise<number>;
  read(into: Uint8Array, offset: number): Promise<number>;
  close(): Promise<void>;
  write?(parts: readonly Uint8Array[], offset: number): Promise<void>;
  truncate?(size: number): Promise<void>;
  sync?(): Promise<void>;
  readonly blocking?: {
    size(): number;
    read(into: Uint8Array, offset: number): number;
    write(parts: readonly Uint8Array[], offset: number): void;
    truncate(size: number): void;
    sync(): void;
    close(): void;
  };
}
/** (2) See one-file.md, section 2. */
export type Publish = 'never' | 'close' | 'flush' | 'auto' | { readonly interval: number };
export interface PublishResult {
  readonly sequence: number;
  readonly datasets: readonly { path: string; way: PublishWay; moved: number }[];
  readonly without: readonly { path: string; reason: string }[];
}
/** (2) A filter that h5log does not have: per process (registerFilter, also a loader) or per file (options.codecs, which wins). In a blocking call a promise is UNSUPPORTED. */
export interface FilterCodec {
  readonly name: string;
  decode(bytes: Uint8Array, info: FilterInfo): Uint8Array | Promise<Uint8Array>;
  encode?(bytes: Uint8Array, info: FilterInfo): Uint8Array | Promise<Uint8Array>;
}
export interface FilterInfo {
  readonly parameters: readonly number[];
  readonly size: number;
  readonly elementSize: number;
  readonly shape: readonly number[];
}
export declare function registerFilter(id: number, codec: FilterCodec | (() => Promise<FilterCodec>)): void;
export interface CommonOptions {
  /** (2) */
  publish?: Publish;
  codecs?: Readonly<Record<number, FilterCodec>>;
  external?: boolean;
  checkCalls?: boolean;
  comm?: Communicator;
  connector?: 'log' | 'native';
  durability?: 'process' | 'power';
  checksum?: boolean;
  bufferLimit?: number;
  onBufferFull?: 'error' | 'flush';
  indexLimit?: number;
  storage?: 'node' | 'mpi-io';
  timeout?: number;
  commitOnSignal?: boolean;
}
export interface CreateOptions extends CommonOptions {
  exclusive?: boolean;
  table?: {
    merge?: boolean;
    encode?: boolean;
    share?: boolean;
    compress?: boolean | number;
    format?: 'original' | 'classic' /* (2) */;
    bigEndian?: boolean /* (2) classic only */;
  };
  subfiles?: number | 'node';
  logs?: 'shared' | 'group' | 'dataset' /* (2) */;
}
/** 'a' (2): open, or create. lazy (2): structure on demand, mode 'r' only. */
export interface OpenOptions extends CommonOptions {
  mode?: 'r' | 'r+' | 'a';
  asOf?: number;
  lazy?: boolean;
}
export declare class File extends Group {
  static create(target: string | URL | ByteStorage, options?: CreateOptions): Promise<File>;
  static createSync(target: string | URL | ByteStorage, options?: CreateOptions): File;
  static open(
    source: string | URL | Blob | ArrayBuffer | Uint8Array | ByteStorage,
    options?: OpenOptions,
  ): Promise<File>;
  /** (2) Options of create count if there is nothing yet. */
  static open(path: string | URL, options: CreateOptions & OpenOptions & { mode: 'a' }): Promise<File>;
  static openSync(source: string | URL | ArrayBuffer | Uint8Array | ByteStorage, options?: OpenOptions): File;
  static openSync(path: string | URL, options: CreateOptions & OpenOptions & { mode: 'a' }): File;
  readonly connector: 'log' | 'native';
  readonly mode: 'r' | 'r+';
  readonly closed: boolean;
  readonly comm: Communicator;
  readonly pending: { readonly requests: number; readonly bytes: number };
  readonly sequence: number;
  /** (2) Makes every HDF5 program see what is committed; flushes first. */
  publish(): Promise<PublishResult>;
  publishSync(): PublishResult;
  readonly published: number | null;
  flush(): Promise<Commit>;
  flushSync(): Commit;
  commits(): readonly Commit[];
  refresh(): Promise<boolean>;
  refreshSync(): boolean;
  watch(options?: { signal?: AbortSignal; interval?: number }): AsyncIterableIterator<Commit>;
  /** Closes without committing what is pending. */
  discard(): void;
  /** (2) Of the storage, since it was opened. */
  storageStatistics(): { readonly requests: number; readonly bytes: number; readonly cached: number };
  close(): Promise<void>;
  closeSync(): void;
  [Symbol.asyncDispose](): Promise<void>;
  [Symbol.dispose](): void;
}
export { File as H5LogFile };

// ---------------------------------------------------------------- errors
export type ErrorCode =
  | 'BUFFER_FULL'
  | 'SELECTION'
  | 'SHAPE'
  | 'DTYPE'
  | 'NOT_FOUND'
  | 'EXISTS'
  | 'READ_ONLY'
  | 'CLOSED'
  | 'LOCKED'
  | 'FORMAT'
  | 'UNSUPPORTED'
  | 'STORAGE'
  | 'COMM'
  | 'MISMATCH'
  | 'OPTION';
/** One class, told apart by code alone. cause holds the system error. */
export declare class H5LogError extends Error {
  readonly name: 'H5LogError';
  readonly code: ErrorCode;
  readonly file?: string;
  readonly object?: string;
  readonly offset?: number;
  readonly rank?: number;
}
export declare function isH5LogError(error: unknown, code?: ErrorCode): error is H5LogError;
export declare function solo(): Communicator;

// ---------------------------------------------------------------- 'h5log/threads'
/** Runs a module on n ranks in worker threads; its default export is (comm, data) => result | Promise<result>. Resolves with the ranks' results. */
export declare function runThreads<R = unknown>(
  ranks: number,
  module: URL | string,
  data?: unknown,
  options?: {
    timeout?: number;
    filterModules?: readonly (string | URL)[] /* (2) modules that register filters, imported in every thread */;
  },
): Promise<R[]>;
// ---------------------------------------------------------------- 'h5log/mpi'
/** MPI_COMM_WORLD; initialises MPI at the first call. Needs the optional peer dependency koffi and an MPI library. */
export declare function mpi(options?: { library?: string }): Communicator;
// ---------------------------------------------------------------- 'h5log/storage': memoryStorage(bytes?), httpStorage(url), blobStorage(blob), nodeStorage(path, mode), opfsStorage(handle) (2)
// ---------------------------------------------------------------- 'h5log/native': gone (2); ordinary HDF5 needs nothing
// ---------------------------------------------------------------- 'h5log/netcdf' (2)
export declare function netcdf(file: File, options?: { classic?: boolean }): NcGroup;
export interface NcDimension {
  readonly name: string;
  readonly size: number;
  readonly unlimited: boolean;
}
export interface NcVariable<D extends DType = DType> {
  readonly name: string;
  readonly dataset: Dataset<D>;
  readonly dimensions: readonly string[];
  readonly shape: readonly number[];
  /** Text is stored as netCDF does: fixed length, null-terminated. */
  readonly attributes: Attributes;
  /** Padded with fill up to the length of unlimited dimensions. */
  read(where?: Slab): Promise<ArrayOf<D>>;
}
export interface NcGroup {
  readonly name: string;
  readonly dimensions: ReadonlyMap<string, NcDimension>;
  readonly variables: ReadonlyMap<string, NcVariable>;
  readonly groups: ReadonlyMap<string, NcGroup>;
  readonly attributes: Attributes;
  createDimension(name: string, size: number | null): NcDimension;
  createGroup(name: string): NcGroup;
  createVariable<const D extends DType>(
    name: string,
    options: {
      dtype: D;
      dimensions: readonly string[];
      fill?: ValueOf<D> | false;
      chunks?: readonly number[];
      filters?: readonly Filter[];
      attributes?: Readonly<Record<string, AttributeValue>>;
    },
  ): NcVariable<D>;
}
// ---------------------------------------------------------------- 'h5log/tools': list, dump, stat, publish(path) (2), replay(input, output, { libver?: 'latest' | 'earliest' (2), ... }), seal(path, options), verify(path), compact(input, output), diff(a, b, options); async, plain objects as results
