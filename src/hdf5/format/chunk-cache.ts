/** Unfiltered chunks that were used lately, by their address. */
export class ChunkCache {
  readonly #limit: number;
  readonly #chunks = new Map<number, Uint8Array>();
  #bytes = 0;

  constructor(limit = 32 * 2 ** 20) {
    this.#limit = limit;
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
