// The bytes of a file as of one commit, read in cached pages; a bound on how many of them a reader may be made to read; and a cache of
// chunks.

import { formatError } from '../../base/errors.ts';
import type { Io } from '../../storage/io.ts';
import type { ByteStorage } from '../../storage/storage.ts';
import { Cursor, UNDEFINED } from './cursor.ts';

/** Bytes of a page, and how many pages are cached. */
interface Paging {
  readonly size: number;
  readonly cached: number;
}

/** Headers and indexes that are read together mostly lie together. */
const STRUCTURE_PAGES: Paging = { size: 64 * 1024, cached: 512 };

/** Pages between two that are read ahead are read as well, if they are no more than this: a request costs more than they do. */
const NEAR = 1;
/** Pages in one piece that is read ahead. */
const MOST_AHEAD = 16;

/** Thrown where structure is asked for that was not loaded; whoever knows its path says so. */
export class NotLoaded extends Error {}

/** Bytes of the file. */
export interface Place {
  readonly address: number;
  readonly length: number;
}

interface Page {
  bytes: Uint8Array;
  valid: number;
}

/**
 * The bytes of a file as of one commit, read in pages. Committed bytes never change, so pages stay valid; a page that reached
 * the end of the file is read again once the file has grown. Addresses are relative to the superblock's base address.
 */
export class FileBytes {
  /** Bytes before the superblock (a user block); added to every address. */
  readonly base: number;
  /** Sizes in bytes of addresses and of lengths in this file. */
  readonly addressSize: number;
  readonly lengthSize: number;
  /** Address behind the contents of the file. */
  end: number;
  /** Every read costs a request: what is needed soon is read ahead, and pieces that lie near are read together. */
  remote = false;
  /** Reads that are given together are under way together: worth it where all of them are certainly needed, also on a disk. */
  overlapping = false;
  /** So many more reads take their own bytes only, not the page around them: a few scattered ones would mostly read bytes of others. */
  alone = 0;
  /** Nothing may be read: whoever asks for something that is not in memory gets {@link NotLoaded}. */
  sealed = false;
  /** Reads that pages in memory answered. */
  hits = 0;
  readonly #pages = new Map<number, Page>();
  readonly #paging: Paging;
  /** The storage to read from, if not the one that the driver of the generator has. */
  readonly #storage: ByteStorage | undefined;

  constructor(
    base: number,
    end: number,
    addressSize = 8,
    lengthSize = 8,
    paging = STRUCTURE_PAGES,
    storage?: ByteStorage | null,
  ) {
    this.#paging = paging;
    this.#storage = storage ?? undefined;
    this.base = base;
    this.end = end;
    this.addressSize = addressSize;
    this.lengthSize = lengthSize;
  }

  /** The bytes [address, address + length), which must lie inside the file. Do not write into them. */
  *read(address: number, length: number, what: string): Io<Uint8Array> {
    this.mustHold(address, length, what);
    if (this.sealed) throw new NotLoaded();
    const PAGE = this.#paging.size;
    const first = Math.floor(address / PAGE);
    const last = Math.floor((address + Math.max(length, 1) - 1) / PAGE);
    if (first === last) {
      if (!import.meta.page && this.alone > 0 && !this.#pages.has(first)) {
        this.alone--;
        const bytes = new Uint8Array(length);
        yield* this.#direct(bytes, address);
        return bytes;
      }
      const page = yield* this.#page(first, address + length - first * PAGE);
      return page.subarray(address - first * PAGE, address - first * PAGE + length);
    }
    const whole = new Uint8Array(length);
    const areCached = this.#pages.has(first) && this.#pages.has(last);
    if (last > first + 1 || !(areCached || this.remote)) yield* this.#direct(whole, address);
    else {
      // Two pages that may be there already, or that are needed soon.
      const cut = last * PAGE - address;
      yield* this.ahead([{ address, length }]);
      whole.set((yield* this.#page(first, PAGE)).subarray(PAGE - cut));
      whole.set((yield* this.#page(last, length - cut)).subarray(0, length - cut), cut);
    }
    return whole;
  }

  /**
   * Reads the pages of places that will be needed, neighbours in one piece and several pieces together. Only where every read costs a
   * request: a disk has them ready. Places outside of the file are left to whoever reads them.
   */
  *ahead(places: readonly Place[]): Io<void> {
    if (this.remote) yield* this.#readPages(places);
  }

  /** Reads the pages of places that are certainly needed: of a file on a disk, too, where reads overlap, because all of them take as long as one. */
  *together(places: readonly Place[]): Io<void> {
    if (this.remote || this.overlapping) yield* this.#readPages(places);
  }

  *#readPages(places: readonly Place[]): Io<void> {
    const PAGE = this.#paging.size;
    const wanted = new Set<number>();
    for (const { address, length } of places) {
      const stop = Math.min(address + length, this.end);
      for (let page = Math.floor(address / PAGE); address >= 0 && page * PAGE < stop; page++) {
        const known = this.#pages.get(page);
        if (!known || known.valid < Math.min(PAGE, stop - page * PAGE)) wanted.add(page);
        if (wanted.size >= this.#paging.cached / 2) break;
      }
    }
    const pages = [...wanted].sort((a, b) => a - b);
    const reads: { into: Uint8Array; address: number }[] = [];
    for (let i = 0; i < pages.length; ) {
      const first = pages[i] as number;
      let last = first;
      for (i++; i < pages.length && (pages[i] as number) <= last + 1 + NEAR && last - first < MOST_AHEAD; i++)
        last = pages[i] as number;
      const address = first * PAGE;
      reads.push({ into: new Uint8Array(Math.min((last + 1) * PAGE, this.end) - address), address });
    }
    yield* this.readMany(reads, 'structure');
    for (const { into, address } of reads)
      for (let at = 0; at < into.length; at += PAGE) this.#keep((address + at) / PAGE, into.slice(at, at + PAGE));
  }

  /** The page that holds [address, address + length), if one does and it is cached; its first byte is at {@link pageStart}. */
  cached(address: number, length: number): Uint8Array | null {
    const index = Math.floor(address / this.#paging.size);
    const page = this.#pages.get(index);
    if (!page || address + length - index * this.#paging.size > page.valid) return null;
    this.hits++;
    return page.bytes;
  }

  pageStart(address: number): number {
    return Math.floor(address / this.#paging.size) * this.#paging.size;
  }

  /** Bytes of the file in a buffer of their own, which is not allocated unless the file holds that much. */
  *readCopy(address: number, length: number, what: string): Io<Uint8Array<ArrayBuffer>> {
    this.mustHold(address, length, what);
    const copy = new Uint8Array(length);
    yield* this.#direct(copy, address);
    return copy;
  }

  /** Fills `into` from the file, not from pages: for large reads. */
  *readInto(into: Uint8Array, address: number, what: string): Io<void> {
    this.mustHold(address, into.length, what);
    yield* this.#direct(into, address);
  }

  /**
   * Fills several buffers from places of the file; an asynchronous storage may read them together. A list of buffers is filled from one
   * place, where the file {@link scatters}; whoever gives it has checked that the file holds so much.
   */
  *readMany(
    reads: readonly { readonly into: Uint8Array | readonly Uint8Array[]; readonly address: number }[],
    what: string,
  ): Io<void> {
    for (const { into, address } of reads) if ('byteLength' in into) this.mustHold(address, into.length, what);
    const [only] = reads;
    if (reads.length === 1 && only && 'byteLength' in only.into) {
      yield* this.#direct(only.into, only.address);
      return;
    }
    if (reads.length === 0) return;
    const wanted = reads.map(({ into, address }) => ({ into, offset: this.base + address }));
    const short = yield { op: 'readMany', reads: wanted, on: this.#storage };
    if (short >= 0) throw formatError('the file is shorter than its superblock says', wanted[short]?.offset);
  }

  /** Whether one read can fill a list of buffers. */
  *scatters(): Io<boolean> {
    return !import.meta.page && (yield { op: 'scatters', on: this.#storage }) === 1;
  }

  /** Throws unless [address, address + length) lies inside the file; to be called before room is made for it. */
  mustHold(address: number, length: number, what: string): void {
    if (address === UNDEFINED) throw formatError(`${what} has no address`);
    if (!Number.isSafeInteger(address + length) || address < 0 || address + length > this.end) {
      throw formatError(
        `${what} of ${length} bytes reaches beyond the end of the file at ${this.base + this.end}`,
        this.base + address,
      );
    }
  }

  /** A cursor over the bytes [address, address + length), whose error messages name file offsets. */
  *cursor(address: number, length: number, what: string): Io<Cursor> {
    return new Cursor(yield* this.read(address, length, what), this.base + address);
  }

  /** A cursor over at most `length` bytes from `address`, fewer at the end of the file: for structures that hold their size. */
  *peek(address: number, length: number, what: string): Io<Cursor> {
    const known = address === UNDEFINED ? 0 : Math.max(0, Math.min(length, this.end - address));
    if (known === 0 && address !== UNDEFINED)
      throw formatError(`${what} lies beyond the end of the file`, this.base + address);
    return yield* this.cursor(address, known, what);
  }

  *#page(index: number, needed: number): Io<Uint8Array> {
    const cached = this.#pages.get(index);
    if (cached && cached.valid >= needed) {
      this.hits++;
      return cached.bytes;
    }
    const PAGE = this.#paging.size;
    const size = Math.min(PAGE, this.end - index * PAGE);
    if (cached) return yield* this.#grown(cached, index, size);
    const bytes = new Uint8Array(size);
    yield* this.#direct(bytes, index * PAGE);
    this.#keep(index, bytes);
    return bytes;
  }

  /** A page that reached the end of the file, which has grown: only what is new is read. A reader that follows a writer does this all the time. */
  *#grown(page: Page, index: number, size: number): Io<Uint8Array> {
    if (page.bytes.length < size) {
      const larger = new Uint8Array(this.#paging.size);
      larger.set(page.bytes);
      page.bytes = larger;
    }
    const { bytes, valid } = page;
    yield* this.#direct(bytes.subarray(valid, size), index * this.#paging.size + valid);
    page.valid = Math.max(page.valid, size);
    return bytes;
  }

  #keep(index: number, bytes: Uint8Array): void {
    if (this.#pages.size >= this.#paging.cached) {
      for (const oldest of this.#pages.keys()) {
        this.#pages.delete(oldest);
        break;
      }
    }
    this.#pages.set(index, { bytes, valid: bytes.length });
  }

  *#direct(into: Uint8Array, address: number): Io<void> {
    const count = yield { op: 'read', into, offset: this.base + address, on: this.#storage };
    if (count < into.length)
      throw formatError('the file is shorter than its superblock says', this.base + address + count);
  }
}

/**
 * Structures in a file do not overlap, so all of one kind together are never longer than the file. Where they are, the file was
 * crafted to keep its reader busy: the same bytes would be read again and again.
 */
export class Budget {
  readonly #file: FileBytes;
  #spent = 0;

  constructor(file: FileBytes) {
    this.#file = file;
  }

  get spent(): number {
    return this.#spent;
  }

  /** Forgets what was spent beyond `spent`, because its reading failed. A budget that was exceeded stays so. */
  refund(spent: number): void {
    if (this.#spent <= this.#file.end) this.#spent = spent;
  }

  spend(bytes: number, address: number, what: string): void {
    this.#spent += bytes;
    if (this.#spent > this.#file.end)
      throw formatError(`${what} that overlap: together they are longer than the file`, this.#file.base + address);
  }
}

/** Unfiltered chunks that were used lately, by their address. */
export class ChunkCache {
  readonly #limit: number;
  readonly #chunks = new Map<number, Uint8Array>();
  #bytes = 0;

  constructor(limit = 32 * 2 ** 20) {
    this.#limit = limit;
  }

  /** Whether chunks of so many bytes would all stay. */
  holds(bytes: number): boolean {
    return bytes <= this.#limit;
  }

  get(address: number): Uint8Array | undefined {
    const found = this.#chunks.get(address);
    if (!found) return undefined;
    // The oldest entries of a map come first.
    this.#chunks.delete(address);
    this.#chunks.set(address, found);
    return found;
  }

  add(address: number, bytes: Uint8Array): void {
    if (bytes.length > this.#limit / 2) return;
    this.#bytes -= this.#chunks.get(address)?.length ?? 0;
    this.#chunks.delete(address);
    for (const [oldest, old] of this.#chunks) {
      if (this.#bytes + bytes.length <= this.#limit) break;
      this.#chunks.delete(oldest);
      this.#bytes -= old.length;
    }
    this.#chunks.set(address, bytes);
    this.#bytes += bytes.length;
  }
}
