import type { Random } from '../../src/bench/random.ts';
import { type Piece, sectorsOf } from './disk-model.ts';

/** The operations that can fail; 'any' counts them all together. */
export type FaultKind = 'read' | 'write' | 'truncate' | 'sync' | 'any';

/** An operation that shall fail. */
export interface Fault {
  readonly op: FaultKind;
  /** The number of the operation among those of its kind, from 0, in the order of the calls. */
  readonly at: number;
  /** How many in a row fail: 1 unless told, Infinity for a disk that stays full. */
  readonly times?: number;
  /** The system's word for it, EIO unless told. It is `error.cause.code`. */
  readonly code?: string;
  /**
   * What a failing write has written: nothing, so many bytes, a random beginning ('prefix', unless told) or random sectors
   * of 512 bytes ('torn').
   */
  readonly landed?: 'none' | 'prefix' | 'torn' | number;
}

/** Counts operations and says which of them fail. */
export class Faults {
  readonly counts: Record<FaultKind, number> = { read: 0, write: 0, truncate: 0, sync: 0, any: 0 };
  injected = 0;
  #faults: readonly Fault[];
  readonly #random: Random;

  constructor(faults: readonly Fault[], random: Random) {
    this.#faults = faults;
    this.#random = random;
  }

  add(fault: Fault): void {
    this.#faults = [...this.#faults, fault];
  }

  clear(): void {
    this.#faults = [];
  }

  /** Counts an operation and gives the fault it meets. */
  next(kind: Exclude<FaultKind, 'any'>): Fault | undefined {
    const counts = { [kind]: this.counts[kind]++, any: this.counts.any++ };
    const fault = this.#faults.find(({ op, at, times = 1 }) => {
      const count = counts[op];
      return count !== undefined && count >= at && count < at + times;
    });
    if (fault) this.injected++;
    return fault;
  }

  /** The pieces of a failing write that landed all the same. */
  landed(fault: Fault, whole: Piece): Piece[] {
    const { offset, bytes } = whole;
    const landed = fault.landed ?? 'prefix';
    if (landed === 'torn') return sectorsOf(whole).filter(() => this.#random.chance(0.5));
    const length = landed === 'none' ? 0 : landed === 'prefix' ? this.#random.below(bytes.byteLength + 1) : landed;
    return length > 0 && bytes.byteLength > 0 ? [{ offset, bytes: bytes.subarray(0, length) }] : [];
  }
}
