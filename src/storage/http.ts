import { concatBytes, sameBytes } from '../base/buffers.ts';
import { H5LogError } from '../base/errors.ts';
import { checkNames } from '../base/options.ts';
import { BLOCK_SIZE, BlockCache, type Fetch } from './block-cache.ts';
import {
  type ByteStorage,
  checkPosition,
  closedError,
  countsItself,
  type StorageStatistics,
  storageFailure,
} from './storage.ts';

/** `fetch` replaces the global function; `headers` are sent with every request, for example Authorization. */
export interface HttpOptions {
  readonly fetch?: typeof fetch;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A server without range support sends the whole file; that is accepted up to this size. */
const MAX_WHOLE_FILE = 64 * 2 ** 20;

/** A file behind a URL, read by range requests; read only, and only asynchronously. The first use finds out the size. */
export function httpStorage(url: string | URL, options: HttpOptions = {}): ByteStorage {
  checkNames('httpStorage', options, { fetch: true, headers: true });
  const file = new RemoteFile(String(url), options);
  const storage = storageOf(file, () => file.opened());
  remote.set(storage, file);
  return storage;
}

const remote = new WeakMap<ByteStorage, RemoteFile>();

function storageOf(file: RemoteFile, opened: () => Promise<Opened>): ByteStorage {
  const storage: ByteStorage = {
    name: file.name,
    size: async () => (await opened()).size,
    async read(into, offset) {
      checkPosition(file.name, offset);
      const { cache } = await opened();
      return file.attempt('read', offset, () => cache.read(into, offset));
    },
    close: async () => file.close(),
  };
  countsItself(storage, file.statistics);
  return storage;
}

/** The file as it is now, whatever a renewal finds: what is read in several steps must not mix two files. */
export function unrenewed(storage: ByteStorage): ByteStorage {
  const file = remote.get(storage);
  if (!file) return storage;
  let opened: Promise<Opened> | undefined;
  return storageOf(file, () => {
    opened ??= file.opened();
    return opened;
  });
}

/** What the server has now. The storage itself goes on with what it had until this is accepted. */
export interface Renewed {
  readonly storage: ByteStorage;
  /** It is not the log that was known, grown or not. */
  readonly isOther: boolean;
  accept(record: LastRecord | undefined): void;
}

/** Before a reader looks for newer commits: asks the server again what the file is now. Other storages always tell. */
export async function renewStorage(storage: ByteStorage): Promise<Renewed | undefined> {
  return remote.get(storage)?.renew();
}

/** From now on the file may grow between requests: it is a log, and what a commit made visible never changes. */
export async function letGrow(storage: ByteStorage, record: LastRecord | undefined): Promise<void> {
  const file = remote.get(storage);
  if (file) (await file.opened()).record = record;
}

/** The last commit record of a log and where it is. It has a time and checksums: no other log has the same there. */
interface LastRecord {
  readonly bytes: Uint8Array;
  readonly offset: number;
}

interface Opened {
  readonly version: Version;
  readonly size: number;
  /** The beginning of the file: a commit of a log changes it. */
  readonly first: Uint8Array;
  readonly cache: Pick<BlockCache, 'read'>;
  /** Of a log, which may grow. */
  record?: LastRecord | undefined;
  /** Versions that turned out to be the same log. */
  readonly same: Set<string>;
}

/** Why a page may not see the Content-Range of a server of another origin. */
const HIDDEN =
  'CORS hides Content-Range from this page; the server must send ' +
  'Access-Control-Expose-Headers: Content-Range, Content-Length, ETag, Accept-Ranges';

const CHANGED = 'the file has changed on the server';

/** Requests that may be under way at once: as many as a browser makes to one server. */
const TOGETHER = 6;

class RemoteFile {
  readonly name: string;
  readonly statistics: StorageStatistics = { requests: 0, bytes: 0, cached: 0 };
  readonly #options: HttpOptions;
  readonly #ending = new AbortController();
  #opened: Promise<Opened> | undefined;
  /** A browser's cache may hold ranges of an older version; after the first renewal it is not asked any more. */
  #cache: 'default' | 'no-store' = 'default';
  /** Whether requests name the version that they are for. */
  #pins: boolean;
  /** How many requests are under way, and those that wait for one of them to end. */
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(name: string, options: HttpOptions) {
    this.name = name;
    this.#options = options;
    // In a page that is of another origin, If-Range would cost a second request for each: whether it is allowed.
    this.#pins = !isOfOtherOrigin(name);
  }

  opened(): Promise<Opened> {
    if (!this.#opened) {
      const opening = this.attempt('open', undefined, () => this.#retried(() => this.#open()));
      this.#opened = opening;
      // The next use tries again: the server may be back.
      opening.catch(() => {
        this.#opened = undefined;
      });
      return opening;
    }
    return this.attempt('open', undefined, () => this.#opened as Promise<Opened>);
  }

  /** Undefined if the file is the same, as far as the server tells, and begins with the same bytes: what is cached is kept. */
  async renew(): Promise<Renewed | undefined> {
    const known = await this.opened();
    this.#cache = 'no-store';
    const found = await this.attempt('open', undefined, () => this.#retried(() => this.#open()));
    if (sameVersion(known.version, found.version) && sameBytes(known.first, found.first)) return undefined;
    const { record } = known;
    let isOther = true;
    if (record) {
      const bytes = new Uint8Array(record.bytes.length);
      // It may go on growing meanwhile.
      found.record = record;
      await this.attempt('read', record.offset, () => found.cache.read(bytes, record.offset));
      isOther = !sameBytes(bytes, record.bytes);
      if (isOther) found.record = undefined;
    }
    const opened = Promise.resolve(found);
    return {
      storage: storageOf(this, () => opened),
      isOther,
      accept: (last) => {
        found.record = last;
        this.#opened = opened;
      },
    };
  }

  /** Adds the URL and the offset to errors; requests that `close` aborts fail with CLOSED. */
  async attempt<T>(doing: string, offset: number | undefined, work: () => Promise<T>): Promise<T> {
    if (this.#ending.signal.aborted) throw closedError(this.name);
    try {
      return await work();
    } catch (cause) {
      if (this.#ending.signal.aborted) throw closedError(this.name);
      const failure = storageFailure(this.name, doing, cause, offset);
      if (!(cause instanceof TypeError && isOfOtherOrigin(this.name))) throw failure;
      // A page is not told whether the server is down or does not allow it to read.
      const why = 'if the server is up, CORS forbids it: the server must send Access-Control-Allow-Origin';
      throw new H5LogError('STORAGE', `${failure.message}; ${why}`, { file: this.name, offset, cause });
    }
  }

  close(): void {
    this.#ending.abort();
    this.#opened = undefined;
  }

  async #open(): Promise<Opened> {
    const response = await this.#request(0, BLOCK_SIZE);
    if (response.status === 206) {
      await this.#refuseEncoded(response);
      const range = rangeOf(response);
      if (range?.size === undefined || range.start !== 0 || range.end > BLOCK_SIZE) {
        const got = response.headers.get('content-range');
        throw await this.#error(
          response,
          got === null && response.type === 'cors' ? HIDDEN : `no usable Content-Range (${got})`,
        );
      }
      const first = new Uint8Array(range.end);
      await this.#fill(response, first);
      const { size } = range;
      const fetchRange: Fetch = (into, offset) => this.#fetchRange(into, offset, opened);
      const cache = new BlockCache(fetchRange, size, this.statistics);
      if (range.end === Math.min(BLOCK_SIZE, size)) cache.put(0, first);
      const opened: Opened = { version: versionOf(response, size), size, first, cache, same: new Set() };
      return opened;
    }
    // An empty file has no satisfiable range, and the response to that names the size.
    if (response.status === 416 && rangeOf(response)?.size === 0) {
      await response.body?.cancel();
      return {
        version: versionOf(response, 0),
        size: 0,
        first: new Uint8Array(0),
        cache: { read: async () => 0 },
        same: new Set(),
      };
    }
    if (response.status !== 200) throw await this.#error(response, `status ${response.status}`);
    const whole = await readAll(response, MAX_WHOLE_FILE, this.statistics);
    if (!whole) {
      const limit = `without them only files of up to ${MAX_WHOLE_FILE} bytes can be read`;
      throw await this.#error(response, `the server does not support range requests; ${limit}`);
    }
    const cache = new BlockCache(
      async (into, at) => into.set(whole.subarray(at, at + into.length)),
      whole.byteLength,
      this.statistics,
    );
    const { byteLength: size } = whole;
    return { version: versionOf(response, size), size, first: whole.subarray(0, BLOCK_SIZE), cache, same: new Set() };
  }

  /** Fetches until `into` is full: a server may send less than was requested. */
  async #fetchRange(into: Uint8Array, offset: number, opened: Opened): Promise<void> {
    for (let at = 0; at < into.byteLength; ) {
      at += await this.#retried(() => this.#fetchSame(into.subarray(at), offset + at, opened));
    }
  }

  /** Of another version, the record is asked for as well: by it a log that grew is told from another file. */
  async #fetchSame(into: Uint8Array, offset: number, opened: Opened): Promise<number> {
    const isKnown = (version: Version) =>
      sameVersion(opened.version, version) || opened.same.has(JSON.stringify(version));
    for (let left = 3; ; left--) {
      const { record } = opened;
      const part = await this.#fetchPart(into, offset, opened);
      if (!record || isKnown(part.version)) return part.count;
      const bytes = new Uint8Array(record.bytes.length);
      const { version, response } = await this.#fetchPart(bytes, record.offset, opened);
      if (left === 0 || !sameBytes(bytes, record.bytes)) throw await this.#error(response, CHANGED);
      // An answer of a version that was known says nothing about the part: two servers may have two files.
      if (isKnown(version)) continue;
      // Either both are of one version, or the log goes on growing.
      opened.same.add(JSON.stringify(part.version)).add(JSON.stringify(version));
      return part.count;
    }
  }

  async #fetchPart(
    into: Uint8Array,
    offset: number,
    opened: Opened,
  ): Promise<{ count: number; version: Version; response: Response }> {
    const { version, size, record } = opened;
    const pin = this.#pins && !record ? pinOf(version) : undefined;
    const response = await this.#request(offset, into.byteLength, pin);
    const range = rangeOf(response);
    const found = versionOf(response, range?.size);
    const isSame = record ? (range?.size ?? Infinity) >= size : sameVersion(version, found);
    if (response.status === 416 || (response.ok && !isSame)) throw await this.#error(response, CHANGED);
    if (response.status === 200 && pin !== undefined) {
      // The server sent all of the version that was asked for instead of a range: it does not understand If-Range.
      this.#pins = false;
      await response.body?.cancel();
      return this.#fetchPart(into, offset, opened);
    }
    if (response.status !== 206) throw await this.#error(response, `status ${response.status} to a range request`);
    await this.#refuseEncoded(response);
    if (range?.start !== offset || range.end <= offset || range.end > offset + into.byteLength) {
      const got = response.headers.get('content-range');
      throw await this.#error(response, `requested ${into.byteLength} bytes at ${offset}, got ${got}`);
    }
    const count = range.end - offset;
    await this.#fill(response, into.subarray(0, count));
    return { count, version: found, response };
  }

  async #fill(response: Response, into: Uint8Array): Promise<void> {
    const count = await fillFrom(response, into, this.statistics);
    if (count !== into.byteLength) throw new Error(`the response ended after ${count} of ${into.byteLength} bytes`);
  }

  /** A range of compressed bytes is of no use. */
  async #refuseEncoded(response: Response): Promise<void> {
    const coding = response.headers.get('content-encoding');
    if (coding !== null && coding !== 'identity')
      throw await this.#error(response, `the server compresses ranges (Content-Encoding: ${coding})`);
  }

  #request(offset: number, length: number, pin?: string): Promise<Response> {
    this.statistics.requests++;
    const send = this.#options.fetch ?? globalThis.fetch;
    const init = {
      // With a range, fetch itself requests no compression: a range would apply to the compressed bytes.
      headers: {
        ...this.#options.headers,
        range: `bytes=${offset}-${offset + length - 1}`,
        ...(pin !== undefined && { 'if-range': pin }),
      },
      signal: this.#ending.signal,
      cache: this.#cache,
    };
    return send(this.name, init);
  }

  /** Waits its turn, and tries once more after a network failure. A response of the server, even an error, is not retried. */
  async #retried<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= TOGETHER) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running++;
    try {
      return await work();
    } catch (error) {
      if (error instanceof H5LogError || this.#ending.signal.aborted) throw error;
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }

  async #error(response: Response, what: string): Promise<H5LogError> {
    await response.body?.cancel().catch(() => undefined);
    const missing = response.status === 404 || response.status === 410;
    return new H5LogError(missing ? 'NOT_FOUND' : 'STORAGE', `${this.name}: ${what}`, { file: this.name });
  }
}

/** Whether this is a page or a worker of another origin than the URL. */
function isOfOtherOrigin(url: string): boolean {
  const { location } = globalThis as { readonly location?: { readonly href: string; readonly origin: string } };
  return location !== undefined && new URL(url, location.href).origin !== location.origin;
}

/** Identifies a version of a remote file. */
interface Version {
  readonly size: number | undefined;
  readonly etag: string | null;
  readonly modified: string | null;
}

/** What If-Range may name: an ETag that is not weak, or the date where there is none. */
function pinOf({ etag, modified }: Version): string | undefined {
  if (etag === null) return modified ?? undefined;
  return etag.startsWith('W/') ? undefined : etag;
}

function versionOf(response: Response, size: number | undefined): Version {
  return { size, etag: response.headers.get('etag'), modified: response.headers.get('last-modified') };
}

/** Compares what both versions have: behind a load balancer or CORS, a header can be missing from some responses. */
function sameVersion(a: Version, b: Version): boolean {
  const same = <T>(x: T, y: T): boolean => x == null || y == null || x === y;
  return same(a.size, b.size) && same(a.etag, b.etag) && same(a.modified, b.modified);
}

/** Content-Range: the bytes from `start` up to but not including `end` of `size` (undefined if `*`). An unsatisfied range (`*`) is 0 to 0. */
function rangeOf(response: Response): { start: number; end: number; size: number | undefined } | undefined {
  const match = /^bytes (?:(\d+)-(\d+)|\*)\/(?:(\d+)|\*)$/.exec(response.headers.get('content-range')?.trim() ?? '');
  if (!match) return undefined;
  const [, first, last, size] = match;
  return {
    start: Number(first ?? 0),
    end: last === undefined ? 0 : Number(last) + 1,
    size: size === undefined ? undefined : Number(size),
  };
}

/** Streams the body into `into`, without a second copy of it in memory. Returns the length of the body, or one more than fits. */
async function fillFrom(response: Response, into: Uint8Array, statistics: StorageStatistics): Promise<number> {
  let filled = 0;
  for await (const chunk of chunksOf(response, statistics)) {
    if (filled + chunk.byteLength > into.byteLength) return into.byteLength + 1;
    into.set(chunk, filled);
    filled += chunk.byteLength;
  }
  return filled;
}

/** The whole body, or undefined if it is longer than `most`. */
async function readAll(
  response: Response,
  most: number,
  statistics: StorageStatistics,
): Promise<Uint8Array | undefined> {
  if (Number(response.headers.get('content-length') ?? 0) > most) return undefined;
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunksOf(response, statistics)) {
    length += chunk.byteLength;
    if (length > most) return undefined;
    chunks.push(chunk);
  }
  return concatBytes(chunks);
}

/** Uses a reader, because Safari cannot iterate over a stream. Leaving the loop early cancels the rest of the body. */
async function* chunksOf(response: Response, statistics: StorageStatistics): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader();
  if (!reader) return;
  let ended = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      ended = done;
      if (done) return;
      statistics.bytes += (value as Uint8Array).byteLength;
      yield value as Uint8Array;
    }
  } finally {
    if (!ended) await reader.cancel().catch(() => undefined);
    reader.releaseLock();
  }
}
