import { inflate } from '#platform';
import { formatError, H5LogError, isH5LogError } from '../base/errors.ts';
import { checkFletcher32 } from './fletcher32.ts';
import { decodeLzf } from './lzf.ts';
import { decodeNbit } from './nbit.ts';
import { decodeScaleOffset } from './scale-offset.ts';
import { type Room, unshuffle } from './shuffle.ts';
import { decodeSzip } from './szip.ts';

/** A filter of a dataset, as its header message has it. */
export interface FilterStep {
  readonly id: number;
  readonly name?: string;
  /** Bit 0: the filter is optional and may be left out for a chunk. */
  readonly flags: number;
  /** Its parameters. */
  readonly values: readonly number[];
}

/** The chunk that filters work on, without them. */
export interface FilteredChunk {
  /** Bytes of the chunk. */
  readonly size: number;
  readonly elementSize: number;
  readonly shape: ArrayLike<number>;
}

/** Bytes that a codec promised. Only asynchronous calls can wait for them. */
export class PendingBytes {
  readonly promise: Promise<Uint8Array>;
  readonly #why: string;

  constructor(promise: Promise<Uint8Array>, why: string) {
    this.promise = promise;
    this.#why = why;
    // Whoever does not wait has got another error already.
    promise.catch(() => {});
  }

  /** The error of a call that cannot wait. */
  blocked(): Error {
    return new H5LogError('UNSUPPORTED', this.#why);
  }
}

/** For calls that cannot wait. */
export function withoutWaiting(bytes: Uint8Array | PendingBytes): Uint8Array {
  if (bytes instanceof PendingBytes) throw bytes.blocked();
  return bytes;
}

/**
 * Undoes the filters of a chunk, the last one first. Bit i of `mask` says that filter i was skipped. The result may lie in a buffer of
 * `room`.
 */
export function unfilter(
  bytes: Uint8Array,
  filters: readonly FilterStep[],
  mask: number,
  chunk: FilteredChunk,
  codecs?: Codecs,
  room?: Room,
): Uint8Array | PendingBytes {
  return undo(bytes, filters, filters.length - 1, mask, chunk, codecs, room);
}

function undo(
  bytes: Uint8Array,
  filters: readonly FilterStep[],
  last: number,
  mask: number,
  chunk: FilteredChunk,
  codecs: Codecs | undefined,
  room: Room | undefined,
): Uint8Array | PendingBytes {
  let data = bytes;
  for (let i = last; i >= 0; i--) {
    if (mask & (1 << i)) continue;
    const filter = filters[i] as FilterStep;
    const codec = findCodec(filter.id, codecs);
    if (!codec) {
      data = decode(data, filter, boundOf(filters, i, chunk.size), room);
      continue;
    }
    const decoded = runCodec('decode', filter, codec, data, chunk);
    if (decoded instanceof PendingBytes) {
      const rest = decoded.promise.then((result) => {
        const next = undo(result, filters, i - 1, mask, chunk, codecs, room);
        return next instanceof PendingBytes ? next.promise : next;
      });
      return new PendingBytes(rest, decoded.blocked().message);
    }
    data = decoded;
  }
  if (data.length !== chunk.size)
    throw formatError(`a chunk of ${data.length} bytes where ${chunk.size} were expected`);
  return data;
}

function decode(bytes: Uint8Array, filter: FilterStep, limit: number, room: Room | undefined): Uint8Array {
  switch (filter.id) {
    case 1:
      return inflate(bytes, limit);
    case 2:
      return unshuffle(bytes, filter.values[0] ?? 1, room);
    case 3:
      return checkFletcher32(bytes);
    case 4:
      return decodeSzip(bytes, filter.values, limit);
    case 5:
      return decodeNbit(bytes, filter.values, limit);
    case 6:
      return decodeScaleOffset(bytes, filter.values, limit, room);
    case LZF:
      return decodeLzf(bytes, limit, room);
    default:
      throw unknownFilter(filter);
  }
}

export const LZF = 32_000;

/** The most bytes that the filters before filter i can have made of a chunk: what a decoder may have to hold. */
function boundOf(filters: readonly FilterStep[], i: number, size: number): number {
  let bound = size;
  for (let before = 0; before < i; before++) {
    const { id } = filters[before] as FilterStep;
    // A checksum, or the head of scale-offset; shuffle adds nothing. Compression of what cannot be compressed adds a little.
    if (id === 3) bound += 4;
    else if (id === 5 || id === 6) bound += 24;
    else if (id !== 2) bound += 1024 + (bound >>> 3);
  }
  return bound;
}

/**
 * The bits of optional filters without the parameters that they need. libhdf5 leaves these out where a filter cannot work on the type,
 * texts of variable length for example; chunks go without such a filter.
 */
export function unusable(filters: readonly FilterStep[]): number {
  let mask = 0;
  filters.forEach(({ id, flags, values }, i) => {
    const lacks = (id === 2 && !values[0]) || (id === 6 && values.length < SCALE_OFFSET_PARAMETERS);
    if (flags & 1 && lacks) mask |= 1 << i;
  });
  return mask;
}

/** Why chunks with these filters cannot be written, or null. A codec that is still to be loaded counts as able to. */
export function problemOfEncoding(filters: readonly FilterStep[], codecs?: Codecs): string | null {
  for (const filter of filters) {
    const codec = findCodec(filter.id, codecs);
    if (codec ? typeof codec !== 'function' && !codec.encode : !ENCODED.has(filter.id)) return withoutEncoder(filter);
  }
  return null;
}

const ENCODED = new Set([1, 2, 3, 5, 6, LZF]);
const SCALE_OFFSET_PARAMETERS = 20;

export function withoutEncoder(filter: FilterStep): string {
  return filter.id === 4 || findCodec(filter.id, undefined)
    ? `${labelOf(filter)} cannot be written: register a codec with encode() for it`
    : unknownFilter(filter).message;
}

/** The name of a filter for the header of a dataset. */
export function filterName(id: number): string {
  const codec = findCodec(id, undefined);
  return codec && 'decode' in codec ? codec.name : id === LZF ? 'lzf' : '';
}

/** @example filter 32015 (zstd) */
function labelOf({ id, name }: FilterStep): string {
  const known = name || (id === 4 ? 'szip' : '');
  return known ? `filter ${id} (${known})` : `filter ${id}`;
}

function unknownFilter(filter: FilterStep): H5LogError {
  const text = `${labelOf(filter)} is not known; register a codec for it with registerFilter(${filter.id}, codec)`;
  return new H5LogError('UNSUPPORTED', text);
}

// ---------------------------------------------------------------- codecs of users

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
export function checkCodecs(codecs: unknown): void {
  if (codecs === undefined) return;
  if (typeof codecs !== 'object' || codecs === null || Array.isArray(codecs))
    throw new H5LogError('OPTION', 'codecs must be an object with a codec for each filter number');
  for (const [id, codec] of Object.entries(codecs)) {
    checkId(Number(id));
    checkedCodec(Number(id), codec);
  }
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
function codecError(code: 'FORMAT' | 'UNSUPPORTED', label: string, cause: unknown): Error {
  return isH5LogError(cause) ? cause : new H5LogError(code, `${label}: ${messageOf(cause)}`, { cause });
}

export function runCodec(
  call: 'decode' | 'encode',
  filter: FilterStep,
  codec: NonNullable<ReturnType<typeof findCodec>>,
  bytes: Uint8Array,
  chunk: FilteredChunk,
): Uint8Array | PendingBytes {
  if (typeof codec === 'function') {
    const why = `${labelOf(filter)} is not loaded yet${NO_WAIT}; read asynchronously first, or register the codec itself`;
    const loaded = codec().then((known) => {
      const result = callCodec(call, filter, known, bytes, chunk);
      return result instanceof PendingBytes ? result.promise : result;
    });
    return new PendingBytes(loaded, why);
  }
  return callCodec(call, filter, codec, bytes, chunk);
}

function callCodec(
  call: 'decode' | 'encode',
  filter: FilterStep,
  codec: FilterCodec,
  bytes: Uint8Array,
  chunk: FilteredChunk,
): Uint8Array | PendingBytes {
  const { size, elementSize, shape } = chunk;
  const info: FilterInfo = { parameters: filter.values, size, elementSize, shape: Array.from(shape) };
  const label = `filter ${filter.id} (${codec.name})`;
  const code = call === 'decode' ? 'FORMAT' : 'UNSUPPORTED';
  const checked = (result: unknown): Uint8Array => {
    if (result instanceof Uint8Array) return result;
    throw new H5LogError('UNSUPPORTED', `${label}: ${call}() returned no Uint8Array`);
  };
  if (call === 'encode' && !codec.encode)
    throw new H5LogError('UNSUPPORTED', `${label} cannot be written: its codec has no encode()`);
  let result: unknown;
  try {
    result = codec[call]?.(bytes, info);
  } catch (error) {
    throw codecError(code, label, error);
  }
  if (!isPromise(result)) return checked(result);
  const promise = result.then(checked, (error: unknown) => {
    throw codecError(code, label, error);
  });
  const why = `${label} is asynchronous${NO_WAIT}; read asynchronously, or register a codec that returns bytes`;
  return new PendingBytes(promise, why);
}

const NO_WAIT = ', and neither blocking calls nor the flush of a log can wait for it';

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof (value as { then?: unknown } | null)?.then === 'function';
}
