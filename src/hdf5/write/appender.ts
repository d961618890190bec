// Appending to a file: new bytes at its end, then the superblock that makes them count. Only the superblock is ever overwritten
// (HDF5 file format specification, II.A), always in one blocking write of 48 bytes.

import { sameBytes } from '#platform';
import { H5LogError } from '../../base/errors.ts';
import type { Io } from '../../storage/io.ts';
import { encodeSuperblock, type Superblock } from '../format/superblock.ts';

/** The file is grown ahead of its contents by an eighth of them, but by no less and no more than these. */
const SMALL_STEP = 2 ** 20;
const LARGE_STEP = 2 ** 26;
/**
 * The file is grown again when less than this is left. A reader that looked at the size of the file before it reads the
 * superblock has that many bytes of commits until the two disagree.
 */
const MARGIN = 2 ** 18;

/** What a commit writes: bytes at its end, and what the superblock says then. Addresses are relative to the base. */
export interface Append {
  /** Address of the first byte that is written, and the bytes. */
  readonly at: number;
  readonly parts: readonly Uint8Array[];
  /** Address behind the contents of the file. */
  readonly end: number;
  /** Addresses of the root group and of the superblock extension. */
  readonly root: number;
  readonly extension: number;
}

/**
 * Appends to a file and flips its superblock. The file is kept longer than its contents, because libhdf5 looks at the size
 * before it reads the superblock: a reader that opens in between would otherwise find a file shorter than it should be.
 */
export class Appender {
  readonly base: number;
  /** Whether commits must survive a power failure: then everything is synced. */
  readonly #power: boolean;
  readonly #name: string;
  /** The superblock of the last commit. */
  #superblock: Uint8Array;
  /** The superblock whose flip was begun; until the commit has succeeded or the old one is back, the file may hold either. */
  #begun: Uint8Array | null = null;
  /** The file's size as we left it; undefined before it was first read. */
  #size: number | undefined;
  /** The size that the file may have instead, because a change of its size was begun. */
  #resizing: number | undefined;
  /** The superblock that the fence read; reused, because every commit reads it twice. */
  #found = new Uint8Array(0);
  /** Address behind the contents of the last commit. */
  committedEnd: number;
  /** Address of the next bytes. */
  position: number;
  /** Bytes below this are never written again: a reader may see them, or a failed sync left them in an unknown state. */
  #fixedEnd: number;
  /** Address behind everything that room was made for. */
  #reservedEnd = 0;

  /** Version of the superblock. */
  readonly #version: 2 | 3;

  constructor(options: {
    name: string;
    superblock: Pick<Superblock, 'base' | 'bytes' | 'end'>;
    power: boolean;
    version?: 2 | 3;
  }) {
    this.#name = options.name;
    this.#version = options.version ?? 3;
    this.base = options.superblock.base;
    this.#superblock = options.superblock.bytes;
    this.#power = options.power;
    this.committedEnd = options.superblock.end;
    this.position = options.superblock.end;
    this.#fixedEnd = options.superblock.end;
  }

  /** Grows the file before the first commit. From then on other writers are noticed, because they cut the file to its contents. */
  *begin(): Io<void> {
    yield* this.#fence();
    yield* this.#grow(this.committedEnd);
  }

  /** Throws if another program has changed the file: before other ranks write what this one will commit. */
  *check(): Io<void> {
    yield* this.#fence();
  }

  /** Grows the file to hold what others write up to `end`: other ranks, or a job whose commit is planned behind it. */
  *reserve(end: number): Io<void> {
    this.#reservedEnd = Math.max(this.#reservedEnd, end);
    yield* this.#grow(end);
  }

  /** A write to what was reserved may still be under way, and nobody knows when it lands: what comes next goes behind it. */
  leaveReserved(): void {
    this.position = Math.max(this.position, this.#reservedEnd);
  }

  /**
   * A whole commit: append, sync, check that the file is still ours, flip, sync. A blocking call that takes over an
   * asynchronous one begins the same commit again, however far that one had come. `file` is told where its contents end.
   */
  *commit(append: Append, body?: (append: Append) => Io<void>, file?: { end: number }): Io<void> {
    const { end, root, extension } = append;
    const next = encodeSuperblock({ base: this.base, end, root, extension }, this.#version);
    if (sameBytes(this.#superblock, next)) {
      if (file) file.end = end;
      return;
    }
    yield* this.#fence();
    if (this.#begun && sameBytes(this.#found, next)) {
      // The asynchronous call had flipped the superblock: only the last sync may be missing.
      if (this.#power) yield* this.#orPutBack(sync());
    } else {
      if (this.#begun && !sameBytes(this.#begun, next)) yield* this.#putBack();
      yield* this.#orPutBack(this.#append(append, body));
      yield* this.#fence();
      yield* this.#orPutBack(this.#flip(next, append.end));
    }
    this.#superblock = next;
    this.#begun = null;
    this.committedEnd = append.end;
    if (file) file.end = end;
  }

  *#append(append: Append, body?: (append: Append) => Io<void>): Io<void> {
    yield* this.#grow(append.end);
    if (body) yield* body(append);
    else yield { op: 'write', parts: append.parts, offset: this.base + append.at };
    if (!this.#power) return;
    try {
      yield { op: 'sync' };
    } catch (error) {
      // After a failed sync the system may drop what it holds and report success the next time: the bytes must go elsewhere.
      this.#fixedEnd = Math.max(this.#fixedEnd, append.end);
      throw error;
    }
  }

  /**
   * Takes back the space of the last planned append, which failed or was never begun, so that the next one uses it again: on a
   * full disk every retry would otherwise need new space. What a reader may have seen stays.
   */
  retreat({ at, end }: Append): void {
    if (this.position === end && at >= this.#fixedEnd) this.position = at;
  }

  *#flip(superblock: Uint8Array, end: number): Io<void> {
    this.#begun = superblock;
    this.#fixedEnd = Math.max(this.#fixedEnd, end);
    yield { op: 'flip', parts: [superblock], offset: this.base };
    if (this.#power) yield { op: 'sync' };
  }

  /**
   * Restores the old superblock when `work` fails. A flip that failed may have reached the file, but the commit is reported as
   * failed, so the old superblock must count.
   */
  *#orPutBack(work: Io<void>): Io<void> {
    try {
      yield* work;
    } catch (error) {
      try {
        yield* this.#putBack();
      } catch {
        // The storage refuses every write now. Both superblocks describe a whole file; the next commit tries again.
      }
      throw error;
    }
  }

  *#putBack(): Io<void> {
    if (!this.#begun) return;
    yield { op: 'flip', parts: [this.#superblock], offset: this.base };
    this.#begun = null;
  }

  *#grow(end: number): Io<void> {
    const needed = this.base + end;
    if (this.#size !== undefined && needed + MARGIN <= this.#size) return;
    yield* this.#resize(needed + Math.min(LARGE_STEP, Math.max(SMALL_STEP, Math.floor(needed / 8))));
  }

  *#resize(size: number): Io<void> {
    this.#resizing = size;
    yield { op: 'truncate', size };
    this.#size = size;
    this.#resizing = undefined;
  }

  /** Throws if the size or the superblock is not as we left it: another program has opened the file for writing. */
  *#fence(): Io<void> {
    const size = yield { op: 'size' };
    // If the file could not be grown, other ranks may have written up to there all the same.
    const known = this.#size;
    const resizing = this.#resizing ?? -1;
    if (known === undefined || size === resizing || (size > known && size < resizing)) this.#size = size;
    if (this.#found.length !== this.#superblock.length) this.#found = new Uint8Array(this.#superblock.length);
    const found = this.#found;
    const count = yield { op: 'read', into: found, offset: this.base, now: true };
    let isOurs = true;
    for (let i = 0; i < found.length; i++) isOurs &&= found[i] === this.#superblock[i] || found[i] === this.#begun?.[i];
    if (size !== this.#size || count < found.length || !isOurs) {
      const what = size === this.#size ? 'superblock' : `size (${this.#size} bytes, now ${size})`;
      throw new H5LogError(
        'STORAGE',
        `another program changed the file: its ${what} is not what h5log left; nothing was committed`,
        { file: this.#name },
      );
    }
  }

  /** Cuts the file to its contents, unless another program has changed it. */
  *close(): Io<void> {
    try {
      yield* this.#fence();
    } catch {
      return;
    }
    yield* this.#putBack();
    const size = this.base + this.committedEnd;
    if (this.#size === size) return;
    yield* this.#resize(size);
    if (this.#power) yield { op: 'sync' };
  }
}

function* sync(): Io<void> {
  yield { op: 'sync' };
}
