import type { ByteStorage } from './storage.ts';

/** A file that may be written: its bytes, and the right to be the only writer. */
export interface WriteTarget {
  readonly storage: ByteStorage;
  /** Where a new file is until it has its name, for others who write into it. */
  readonly at?: string;
  /** Gives the right up; at the end, or when opening failed. */
  release(): void;
  /** Makes a new file appear under its name. `durable` also survives a power loss. */
  publish(durable: boolean): void;
  /** Removes a new file that was never published. */
  discard(): void;
}

/** A storage of the caller's own: nothing to lock, nothing to rename. */
export function plainTarget(storage: ByteStorage): WriteTarget {
  return { storage, release() {}, publish() {}, discard() {} };
}
