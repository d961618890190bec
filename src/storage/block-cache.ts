import type { StorageStatistics } from './storage.ts';

/** Fills all of `into` from `offset`. Never called for bytes beyond the end. */
export type Fetch = (into: Uint8Array, offset: number) => Promise<void>;

/** The cache reads and keeps whole blocks of this size. */
export const BLOCK_SIZE = 64 * 1024;
const MAX_BLOCKS = 64;
/** Blocks that are read ahead where blocks are asked for one after the other. */
const MAX_AHEAD = 4;
/** Reads of this size and more bypass the cache: they are data, would evict all structure, and are rarely read twice. */
const LARGE_READ = 16 * BLOCK_SIZE;

/**
 * A least-recently-used cache of blocks, so that reading structure (a few bytes here, a few there) does not cost a request
 * each. Adjacent blocks that are missing are fetched in one request; two reads of the same block share a request.
 */
export class BlockCache {
  readonly #fetch: Fetch;
  readonly #size: number;
  readonly #statistics: StorageStatistics;
  /** The block behind the last request, and how many blocks are fetched ahead when it is asked for: reading goes on in order. */
  #next = -1;
  #ahead = 0;
  /** By block number, in order of last use, the oldest first. */
  readonly #blocks = new Map<number, Promise<Uint8Array>>();

  /** `statistics` gets reads that no request was needed for; whoever fetches counts the others. */
  constructor(fetch: Fetch, size: number, statistics: StorageStatistics) {
    this.#fetch = fetch;
    this.#size = size;
    this.#statistics = statistics;
  }

  /** Adds a block that the caller has already read. */
  put(block: number, bytes: Uint8Array): void {
    this.#store(block, Promise.resolve(bytes));
  }

  /** Fills `into` up to the end of the file and returns the number of bytes. */
  async read(into: Uint8Array, offset: number): Promise<number> {
    const length = Math.max(0, Math.min(into.byteLength, this.#size - offset));
    if (length === 0) return 0;
    if (length >= LARGE_READ) {
      await this.#fetch(into.subarray(0, length), offset);
      return length;
    }
    const first = Math.floor(offset / BLOCK_SIZE);
    const blocks = await Promise.all(this.#get(first, Math.floor((offset + length - 1) / BLOCK_SIZE)));
    for (let i = 0; i < blocks.length; i++) {
      const bytes = blocks[i] as Uint8Array;
      const start = (first + i) * BLOCK_SIZE;
      const from = Math.max(offset, start);
      const to = Math.min(offset + length, start + BLOCK_SIZE);
      into.set(bytes.subarray(from - start, to - start), from - offset);
    }
    return length;
  }

  #get(first: number, last: number): Promise<Uint8Array>[] {
    const blocks: Promise<Uint8Array>[] = [];
    let cached = 1;
    for (let block = first; block <= last; block++) {
      let found = this.#blocks.get(block);
      if (found) this.#store(block, found);
      else {
        let end = block + 1;
        while (end <= last && !this.#blocks.has(end)) end++;
        if (end > last) end = this.#further(block, end);
        this.#request(block, end);
        cached = 0;
        found = this.#blocks.get(block) as Promise<Uint8Array>;
      }
      blocks.push(found);
    }
    this.#statistics.cached += cached;
    return blocks;
  }

  /** Where a request that begins at `first` should end, if it must reach to `end`. */
  #further(first: number, end: number): number {
    this.#ahead = first === this.#next ? Math.min(MAX_AHEAD, this.#ahead * 2 + 1) : 0;
    let stop = end;
    while (stop < end + this.#ahead && stop * BLOCK_SIZE < this.#size && !this.#blocks.has(stop)) stop++;
    this.#next = stop;
    return stop;
  }

  /** Fetches the blocks from `first` up to but not including `end` in one request. */
  #request(first: number, end: number): void {
    const start = first * BLOCK_SIZE;
    const run = new Uint8Array(Math.min(end * BLOCK_SIZE, this.#size) - start);
    const arrival = this.#fetch(run, start);
    for (let block = first; block < end; block++) {
      const at = block * BLOCK_SIZE - start;
      // A copy, so that one block that stays in the cache does not retain the memory of the whole run.
      const bytes = arrival.then(() => run.slice(at, at + BLOCK_SIZE));
      this.#store(block, bytes);
      // A failed request is dropped from the cache: the next read tries again.
      bytes.catch(() => {
        if (this.#blocks.get(block) === bytes) this.#blocks.delete(block);
      });
    }
  }

  #store(block: number, bytes: Promise<Uint8Array>): void {
    this.#blocks.delete(block);
    this.#blocks.set(block, bytes);
    for (const oldest of this.#blocks.keys()) {
      if (this.#blocks.size <= MAX_BLOCKS) break;
      this.#blocks.delete(oldest);
    }
  }
}
