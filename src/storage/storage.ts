/**
 * Where a file's bytes live. The blocking half is optional: without it (http, Blob) every ...Sync call throws UNSUPPORTED.
 * Without `write` the storage is read only.
 */
export interface ByteStorage {
  readonly name: string;
  size(): Promise<number>;
  /** Fills `into` from `offset`; resolves with the number of bytes, which is less than asked only at the end. */
  read(into: Uint8Array, offset: number): Promise<number>;
  close(): Promise<void>;
  write?(parts: readonly Uint8Array[], offset: number): Promise<void>;
  truncate?(size: number): Promise<void>;
  sync?(): Promise<void>;
  readonly blocking?: BlockingStorage;
}

/** The same calls, done when they return. */
export interface BlockingStorage {
  size(): number;
  read(into: Uint8Array, offset: number): number;
  write(parts: readonly Uint8Array[], offset: number): void;
  truncate(size: number): void;
  sync(): void;
  close(): void;
}
