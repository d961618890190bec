/** Fills `into` from `offset`, wholly: never asked for bytes beyond the end. */
export type Fetch = (into: Uint8Array, offset: number) => Promise<void>;

/** The unit of reading and keeping. */
export const BLOCK = 64 * 1024;
const MOST_BLOCKS = 64;
/** Reads from here up go past the cache: they are data, would push out all structure, and are not read twice. */
const LARGE = 16 * BLOCK;

/**
 * Keeps the blocks read last, so that reading structure (a few bytes here, a few there) does not cost a request each.
 * Neighbouring blocks that are missing come in one request; two reads that want the same block wait for the same request.
 */
export class BlockCache {
  readonly #fetch: Fetch;
  readonly #size: number;
  /** In order of last use, the oldest first. */
  readonly #blocks = new Map<number, Promise<Uint8Array>>();

  constructor(fetch: Fetch, size: number) {
    this.#fetch = fetch;
    this.#size = size;
  }

  /** Puts a block there that is known already. */
  keep(block: number, bytes: Uint8Array): void {
    this.#remember(block, Promise.resolve(bytes));
  }

  /** Fills `into` as far as there are bytes and gives their number. */
  async read(into: Uint8Array, offset: number): Promise<number> {
    const length = Math.max(0, Math.min(into.byteLength, this.#size - offset));
    if (length === 0) return 0;
    if (length >= LARGE) {
      await this.#fetch(into.subarray(0, length), offset);
      return length;
    }
    const first = Math.floor(offset / BLOCK);
    const blocks = await Promise.all(this.#get(first, Math.floor((offset + length - 1) / BLOCK)));
    for (let i = 0; i < blocks.length; i++) {
      const bytes = blocks[i] as Uint8Array;
      const start = (first + i) * BLOCK;
      const from = Math.max(offset, start);
      const to = Math.min(offset + length, start + BLOCK);
      into.set(bytes.subarray(from - start, to - start), from - offset);
    }
    return length;
  }

  #get(first: number, last: number): Promise<Uint8Array>[] {
    const blocks: Promise<Uint8Array>[] = [];
    for (let block = first; block <= last; block++) {
      let found = this.#blocks.get(block);
      if (found) this.#remember(block, found);
      else {
        let end = block + 1;
        while (end <= last && !this.#blocks.has(end)) end++;
        this.#request(block, end);
        found = this.#blocks.get(block) as Promise<Uint8Array>;
      }
      blocks.push(found);
    }
    return blocks;
  }

  /** Asks for the blocks from `first` up to and without `end` in one go. */
  #request(first: number, end: number): void {
    const start = first * BLOCK;
    const run = new Uint8Array(Math.min(end * BLOCK, this.#size) - start);
    const arrival = this.#fetch(run, start);
    for (let block = first; block < end; block++) {
      const at = block * BLOCK - start;
      // A copy, so that one block that is still used does not keep the memory of its whole run.
      const bytes = arrival.then(() => run.slice(at, at + BLOCK));
      this.#remember(block, bytes);
      // A failed request is forgotten: the next read tries again.
      bytes.catch(() => {
        if (this.#blocks.get(block) === bytes) this.#blocks.delete(block);
      });
    }
  }

  #remember(block: number, bytes: Promise<Uint8Array>): void {
    this.#blocks.delete(block);
    this.#blocks.set(block, bytes);
    for (const oldest of this.#blocks.keys()) {
      if (this.#blocks.size <= MOST_BLOCKS) break;
      this.#blocks.delete(oldest);
    }
  }
}
