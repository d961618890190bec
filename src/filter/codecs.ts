import { H5LogError, isH5LogError } from '../base/errors.ts';

/** What a codec is told about the chunk. */
export interface FilterInfo {
  /** The parameters that the file has for the filter (`cd_values`). */
  readonly parameters: readonly number[];
  /** Bytes of the whole chunk without any filter. */
  readonly size: number;
  /** Bytes of an element. */
  readonly elementSize: number;
  /** The shape of the chunk. */
  readonly shape: readonly number[];
}

/**
 * A filter that h5log does not have. Without `encode` its datasets can only be read.
 *
 * @example registerFilter(32015, { name: 'zstd', decode: (bytes) => zstdDecompressSync(bytes) });
 */
export interface FilterCodec {
  readonly name: string;
  decode(bytes: Uint8Array, info: FilterInfo): Uint8Array | Promise<Uint8Array>;
  encode?(bytes: Uint8Array, info: FilterInfo): Uint8Array | Promise<Uint8Array>;
}

/** Codecs of one file, by the number of their filter. */
export type Codecs = Readonly<Record<number, FilterCodec>>;

/** Loads a codec when it is first needed. */
type Loader = () => Promise<FilterCodec>;

/** Of the process and not of the module: a program may have two copies of h5log in its bundle. */
const KEY = Symbol.for('h5log.filters');
let registry: Map<number, FilterCodec | Loader> | undefined;

function registered(): Map<number, FilterCodec | Loader> {
  const everywhere = globalThis as { [KEY]?: Map<number, FilterCodec | Loader> };
  everywhere[KEY] ??= new Map();
  registry = everywhere[KEY];
  return registry;
}

/**
 * Makes a filter known to all files of this process, in place of the one before. A function is called when the filter is first
 * needed, and loads the codec; until then blocking calls cannot use it.
 *
 * @example registerFilter(32001, async () => (await import('./blosc.js')).codec);
 */
export function registerFilter(id: number, codec: FilterCodec | (() => Promise<FilterCodec>)): void {
  checkId(id);
  if (typeof codec !== 'function') {
    registered().set(id, checkedCodec(id, codec));
    return;
  }
  let loading: Promise<FilterCodec> | undefined;
  const load: Loader = () => {
    loading ??= Promise.resolve()
      .then(codec)
      .then(
        (loaded) => {
          const checked = checkedCodec(id, loaded);
          const all = registered();
          if (all.get(id) === load) all.set(id, checked);
          return checked;
        },
        (cause: unknown) => {
          throw new H5LogError('UNSUPPORTED', `filter ${id} could not be loaded: ${messageOf(cause)}`, { cause });
        },
      )
      .catch((error: unknown) => {
        // A later use tries again: the network may be back.
        loading = undefined;
        throw error;
      });
    return loading;
  };
  registered().set(id, load);
}

/** The codec of a filter: of the file, else of the process. */
export function findCodec(id: number, codecs: Codecs | undefined): FilterCodec | Loader | undefined {
  return codecs?.[id] ?? (registry ?? registered()).get(id);
}

/** Refuses what is no list of codecs. */
export function checkCodecs(codecs: unknown): Codecs {
  if (typeof codecs !== 'object' || codecs === null || Array.isArray(codecs))
    throw new H5LogError('OPTION', 'codecs must be an object with a codec for each filter number');
  for (const [id, codec] of Object.entries(codecs)) {
    checkId(Number(id));
    checkedCodec(Number(id), codec);
  }
  return codecs as Codecs;
}

function checkId(id: unknown): void {
  if (!Number.isInteger(id) || (id as number) < 1 || (id as number) > 65_535)
    throw new H5LogError('OPTION', `the number of a filter is a whole number from 1 to 65535, not ${String(id)}`);
}

function checkedCodec(id: number, codec: unknown): FilterCodec {
  const { name, decode, encode } = (codec ?? {}) as Partial<FilterCodec>;
  if (
    typeof name !== 'string' ||
    typeof decode !== 'function' ||
    (encode !== undefined && typeof encode !== 'function')
  )
    throw new H5LogError('OPTION', `the codec of filter ${id} must have a name, decode() and perhaps encode()`);
  return codec as FilterCodec;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Errors of codecs become ours, with the filter's name. */
export function codecError(code: 'FORMAT' | 'UNSUPPORTED', label: string, cause: unknown): Error {
  return isH5LogError(cause) ? cause : new H5LogError(code, `${label}: ${messageOf(cause)}`, { cause });
}
