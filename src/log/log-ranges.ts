import { formatError } from '../base/errors.ts';

/** A log dataset: where it is, how long it is, and where it was when it was written; -1 if that is not known. */
interface WrittenLog {
  readonly address: number;
  readonly size: number;
  readonly written: number;
}

/**
 * Where the data of a log is. Tables name file offsets; programs that copy objects (h5repack, h5copy) move the log and leave the
 * tables as they are. A log that knows where it was written is then read by the difference.
 */
export class LogRanges {
  /** Ascending, by where they were written; those that touch and moved together are one. */
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #shifts: number[] = [];
  /** The range that was asked for last: entries of a table ask for one after the other. */
  #last = 0;
  /** Why nothing can be located. */
  readonly #lost: WrittenLog | undefined;

  constructor(logs: readonly WrittenLog[]) {
    this.#lost = logs.find(({ written }) => written < 0);
    for (const { address, size, written } of [...logs].sort((a, b) => a.written - b.written)) {
      const last = this.#starts.length - 1;
      // Logs that were merged span what lies between, data of other logs too.
      if ((this.#ends[last] ?? -1) >= written && this.#shifts[last] === address - written)
        this.#ends[last] = Math.max(this.#ends[last] as number, written + size);
      else {
        this.#starts.push(written);
        this.#ends.push(written + size);
        this.#shifts.push(address - written);
      }
    }
  }

  get isMoved(): boolean {
    return this.#lost !== undefined || this.#shifts.some((shift) => shift !== 0);
  }

  /** The file offset of bytes that a table names. Throws FORMAT unless they are in the log. */
  locate(offset: number, size: number): number {
    if (size === 0) return offset;
    if (this.#lost)
      throw formatError('the log was moved by another program, and does not say from where', this.#lost.address);
    if (!this.#holds(this.#last, offset, size)) {
      let [low, high] = [0, this.#starts.length];
      while (low < high) {
        const middle = (low + high) >>> 1;
        if ((this.#starts[middle] as number) <= offset) low = middle + 1;
        else high = middle;
      }
      while (low > 0 && !this.#holds(low - 1, offset, size)) low--;
      if (low === 0) throw formatError(`a table names ${size} bytes that are not in the log`, offset);
      this.#last = low - 1;
    }
    return offset + (this.#shifts[this.#last] as number);
  }

  #holds(range: number, offset: number, size: number): boolean {
    return offset >= (this.#starts[range] ?? Infinity) && offset + size <= (this.#ends[range] as number);
  }
}

/**
 * Where a log dataset of an earlier version of h5log was written, which does not say so: where it is, unless it lies among the bytes
 * that commits are on record for and no commit begins with it. Then it has moved.
 */
export function whereWritten(
  { address, size }: Omit<WrittenLog, 'written'>,
  commits: readonly { readonly start: number; readonly end: number }[],
): number {
  const meets = size > 0 && commits.some(({ start, end }) => address < end && start < address + size);
  return meets && !commits.some(({ start }) => start === address) ? -1 : address;
}
