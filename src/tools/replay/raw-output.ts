import { SUPERBLOCK_SIZE } from '../../hdf5/format/superblock.ts';
import type { ByteStorage } from '../../storage/storage.ts';

/** Writes shorter than this wait for their neighbours. */
const SMALL = 128 * 1024;
const STAGE = 2 ** 20;
/** Data from this size on begins at a page: it can be mapped, and two writers never share one. */
const LARGE = 2 ** 20;
const PAGE = 4096;

/**
 * The raw data of a file under construction: gives out places from behind the superblock on, and writes while the caller
 * prepares the next piece. At most one write is under way, so that two buffers in turn are enough.
 */
export class RawOutput {
  readonly #storage: ByteStorage;
  /** First byte that nothing has yet. */
  end = SUPERBLOCK_SIZE;
  /** Bytes written so far. */
  written = 0;
  #flushing: Promise<void> = Promise.resolve();
  #stage: Uint8Array = new Uint8Array(0);
  #stageAt = 0;
  #staged = 0;

  constructor(storage: ByteStorage) {
    this.#storage = storage;
  }

  /** A place for so many bytes. */
  take(size: number): number {
    const unit = size >= LARGE ? PAGE : 8;
    const at = Math.ceil(this.end / unit) * unit;
    this.end = at + size;
    return at;
  }

  /** Writes `bytes`, which must stay as they are until the next write, or the end, has been awaited. */
  async write(bytes: Uint8Array, at: number): Promise<void> {
    this.written += bytes.length;
    if (bytes.length >= SMALL) {
      await this.#unstage();
      await this.#begin(bytes, at);
      return;
    }
    // These bytes are copied, but the caller's other buffer may still be on its way.
    await this.#flushing;
    const gap = at - (this.#stageAt + this.#staged);
    if (this.#staged > 0 && (gap < 0 || gap >= 8 || this.#staged + gap + bytes.length > STAGE)) await this.#unstage();
    if (this.#staged === 0) {
      // A buffer of its own for every stage: the last one may still be on its way.
      this.#stage = new Uint8Array(STAGE);
      this.#stageAt = at;
    }
    this.#stage.set(bytes, at - this.#stageAt);
    this.#staged = at - this.#stageAt + bytes.length;
  }

  /** Everything is written. */
  async finish(): Promise<void> {
    await this.#unstage();
    await this.#flushing;
  }

  /** Waits for what is under way, whatever becomes of it. */
  async abandon(): Promise<void> {
    await this.#flushing.catch(() => {});
  }

  async #unstage(): Promise<void> {
    if (this.#staged === 0) return;
    const bytes = this.#stage.subarray(0, this.#staged);
    this.#staged = 0;
    await this.#begin(bytes, this.#stageAt);
  }

  async #begin(bytes: Uint8Array, at: number): Promise<void> {
    await this.#flushing;
    const { write } = this.#storage;
    if (!write) return;
    this.#flushing = write.call(this.#storage, [bytes], at);
    // Reported to whoever writes next; until then it is nobody's.
    this.#flushing.catch(() => {});
  }
}
