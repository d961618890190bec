import type { ErrorCode } from '../../base/errors.ts';
import { H5LogError, isH5LogError } from '../../base/errors.ts';
import { type FileSystem, Mounts, REGULAR_FILE, type StreamCalls } from './mounts.ts';

/** How h5wasm is told of a type to make; sizes and offsets are those in its memory. */
export interface TypeRequest {
  readonly type: number;
  readonly size: number;
  readonly signed: boolean;
  readonly vlen: boolean;
  readonly cset?: number;
  readonly compound_type?: { readonly nmembers: number; readonly members: readonly MemberRequest[] };
}

export interface MemberRequest extends TypeRequest {
  readonly name: string;
  readonly offset: number;
}

/** The same for a dataset or an attribute. */
export interface ObjectRequest extends TypeRequest {
  readonly shape: readonly bigint[];
  readonly maxshape: readonly bigint[] | null;
  readonly chunks: readonly bigint[] | null;
  readonly compression?: number;
  readonly compression_opts?: readonly number[];
  readonly track_order?: boolean;
}

/** What h5wasm says of a type. `littleEndian` is false for big-endian, for mixed and for no order at all. */
export interface TypeFacts {
  readonly type: number;
  readonly littleEndian: boolean;
  readonly vlen: boolean;
  readonly compound_type?: { readonly members: readonly TypeFacts[] };
  readonly array_type?: TypeFacts;
  readonly vlen_type?: TypeFacts;
}

/** Numbers of HDF5's type classes. */
export const CLASS = { integer: 0, float: 1, string: 3, bitfield: 4, compound: 6, reference: 7, enum: 8 } as const;

type Sizes = readonly bigint[] | null;

/** The calls of h5wasm's module that are used here: those below its own classes, which drop the library's status. */
export interface Calls {
  open(path: string, mode: number, trackOrder: boolean, low: number, high: number): bigint;
  close_file(file: bigint): number;
  flush(file: bigint): number;
  get_type(file: bigint, path: string): number;
  get_dataset_metadata(file: bigint, path: string): TypeFacts & { readonly shape: readonly number[] | null };
  get_dataset_data(file: bigint, path: string, count: Sizes, start: Sizes, stride: Sizes, to: bigint): number;
  set_dataset_data(file: bigint, path: string, count: Sizes, start: Sizes, stride: Sizes, from: bigint): number;
  reclaim_vlen_memory_count(file: bigint, path: string, attribute: string, data: bigint, count: Sizes): number;
  create_group(file: bigint, path: string, trackOrder: boolean): number;
  create_dataset(file: bigint, path: string, data: bigint, request: ObjectRequest): number;
  resize_dataset(file: bigint, path: string, shape: readonly bigint[]): number;
  create_attribute(file: bigint, path: string, name: string, data: bigint, request: ObjectRequest): number;
  delete_attribute(file: bigint, path: string, name: string): number;
  create_soft_link(file: bigint, target: string, path: string): number;
  create_hard_link(file: bigint, target: string, path: string): number;
  create_external_link(file: bigint, name: string, target: string, path: string): number;
  create_object_reference(file: bigint, path: string): ArrayLike<number>;
}

interface Wasm extends Calls {
  readonly HEAPU8: Uint8Array;
  readonly FS: FileSystem;
  _malloc(bytes: number): number;
  _free(pointer: number): void;
}

/** What h5wasm's package gives. */
export interface H5Wasm {
  readonly ready: Promise<unknown>;
}

/** Modes of h5wasm's open, as in H5Fopen and H5Fcreate. */
export const ACCESS = { read: 0, write: 1, truncate: 2, exclusive: 4 } as const;

const STDERR = 2;

let loaded: Library | null = null;
let loading: Promise<Library> | null = null;

/** The library, if it is loaded: what blocking calls need. */
export function readyLibrary(): Library {
  if (loaded) return loaded;
  throw new H5LogError(
    'UNSUPPORTED',
    'regular HDF5 needs h5wasm, which is loaded asynchronously: use File.open or File.create, or wait for ready of h5log/native before a blocking call',
  );
}

/** Loads h5wasm at first use. `from` is the package itself where a bundler has to see its import. */
export function loadLibrary(from?: () => Promise<unknown>): Promise<Library> {
  loading ??= (from ?? importPackage)()
    .then((module) => readyOf(module as H5Wasm & { default?: H5Wasm }))
    .then((module) => {
      loaded = new Library(module as Wasm);
      return loaded;
    })
    .catch((cause: unknown) => {
      loading = null;
      throw missing(cause);
    });
  return loading;
}

function importPackage(): Promise<unknown> {
  const { process } = globalThis as { process?: { versions?: { node?: string } } };
  // A variable, so that bundles for a browser that never opens regular HDF5 do not carry 4 MB of WebAssembly.
  const name = process?.versions?.node === undefined ? 'h5wasm' : 'h5wasm/node';
  return import(/* @vite-ignore */ name);
}

function readyOf(module: H5Wasm & { default?: H5Wasm }): Promise<unknown> {
  const ready = module.ready ?? module.default?.ready;
  if (!ready) throw new Error('the package found is not h5wasm');
  return ready;
}

function missing(cause: unknown): H5LogError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new H5LogError(
    'UNSUPPORTED',
    `regular HDF5 is read and written by h5wasm, which could not be loaded; install it with: npm install h5wasm (${reason})`,
    { cause },
  );
}

/** Makes an error of what libhdf5 says: the reason, and its whole error stack. */
export type Failure = (reason: string, stack: string) => H5LogError;

/** libhdf5 in WebAssembly, with its complaints caught instead of printed. */
export class Library {
  readonly mounts: Mounts;
  readonly #wasm: Wasm;
  #complaints: string[] = [];
  #crash: string | null = null;
  readonly #catching: StreamCalls = {
    write: (_stream, buffer, offset, length) => {
      this.#complaints.push(new TextDecoder().decode(buffer.slice(offset, offset + length)));
      return length;
    },
  };

  constructor(wasm: Wasm) {
    this.#wasm = wasm;
    this.mounts = new Mounts(wasm.FS);
  }

  /** The memory, anew after each call: it may have grown. */
  get bytes(): Uint8Array {
    return this.#wasm.HEAPU8;
  }

  allocate(size: number): number {
    const pointer = this.#wasm._malloc(Math.max(1, size));
    if (pointer === 0) throw new H5LogError('STORAGE', `h5wasm has no memory for ${size} bytes`);
    return pointer >>> 0;
  }

  free(pointer: number): void {
    this.#wasm._free(pointer);
  }

  /**
   * Runs one call. h5wasm drops the status of most of what it does: whatever libhdf5 complains about is a failure, unless
   * `expected` says that this complaint is known and harmless.
   */
  call<T>(work: (calls: Calls) => T, failure: Failure, expected?: RegExp): T {
    if (this.#crash !== null)
      throw new H5LogError('STORAGE', `h5wasm has crashed and cannot be used any more in this process: ${this.#crash}`);
    this.#complaints = [];
    this.mounts.takeFailure();
    let result: T;
    try {
      result = this.#caught(() => work(this.#wasm));
    } catch (cause) {
      // After a trap its stack and its locks are left as they were.
      if ((cause as Error)?.name === 'RuntimeError') this.#crash = (cause as Error).message;
      throw this.#failed(failure, (cause as Error)?.message ?? cause);
    }
    const text = this.#complaints.join('');
    const bad = typeof result === 'number' || typeof result === 'bigint' ? result < 0 : false;
    if (bad || (text !== '' && !(expected?.test(text) ?? false))) throw this.#failed(failure, 'no reason given');
    return result;
  }

  /** With standard error in our hands: there is no call that gives the error stack as a text and does not unwind the library. */
  #caught<T>(work: () => T): T {
    const stream = this.#wasm.FS.getStream(STDERR);
    if (!stream) return work();
    const { node, stream_ops: calls } = stream;
    stream.node = { mode: REGULAR_FILE };
    stream.stream_ops = this.#catching;
    try {
      return work();
    } finally {
      // Set even where they were not: whoever else uses the module gets its standard error back.
      Object.assign(stream, { node, stream_ops: calls });
    }
  }

  #failed(failure: Failure, otherwise: unknown): H5LogError {
    const thrown = this.mounts.takeFailure();
    if (isH5LogError(thrown)) return thrown;
    const stack = this.#complaints.join('');
    return failure(reasonOf(stack) || String(thrown ?? otherwise), stack);
  }
}

/** The innermost entry of libhdf5's error stack: what went wrong first. */
function reasonOf(text: string): string {
  const entries = [...text.matchAll(/#\d+: \S+ line \d+ in (\w+)\(\): (.*)/g)];
  const last = entries[entries.length - 1];
  return last ? `${last[2]} (${last[1]})` : text.trim();
}

/** An error about an object, with what libhdf5 says. */
export function libraryError(code: ErrorCode, what: string, file: string, object: string): Failure {
  return (reason) => new H5LogError(code, `${file}: ${what}: ${reason}`, { file, object });
}
