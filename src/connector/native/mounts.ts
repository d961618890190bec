import { H5LogError } from '../../base/errors.ts';
import type { BlockingStorage, ByteStorage } from '../../storage/storage.ts';

/** What h5wasm's file system knows of an open file; only what is used here. */
interface Stream {
  readonly fd?: number;
  node?: { mode: number };
  position?: number;
  stream_ops?: StreamCalls;
  storage?: BlockingStorage;
}

export interface StreamCalls {
  read?(stream: Stream, buffer: Uint8Array, offset: number, length: number, position: number): number;
  write?(stream: Stream, buffer: Uint8Array, offset: number, length: number, position: number): number;
  llseek?(stream: Stream, offset: number, whence: number): number;
}

/** The file system under libhdf5: of Node itself, or in memory. Its system calls look these functions up each time. */
export interface FileSystem {
  getStream(fd: number): Stream | null;
  createStream(stream: object): Stream;
  open(path: string, flags: number, mode: number): Stream;
  fstat(fd: number): object;
  stat(path: string, noFollow?: boolean): object;
  lstat(path: string): object;
  ftruncate(fd: number, size: number): void;
  readonly ErrnoError: new (errno: number) => Error;
}

const FOLDER = '/h5log-storage/';
export const REGULAR_FILE = 0o100666;
const TRUNCATE = 0o1000;
const EIO = 29;
const EINVAL = 28;
const EROFS = 69;

/** Storages that libhdf5 sees as files: whatever it reads and writes there goes through them. */
export class Mounts {
  readonly #system: FileSystem;
  readonly #storages = new Map<string, ByteStorage & { readonly blocking: BlockingStorage }>();
  #next = 0;
  #hooked = false;
  /** What a storage threw, until somebody asks: libhdf5 only knows that something failed. */
  #failure: unknown;

  constructor(system: FileSystem) {
    this.#system = system;
  }

  /** Makes a storage a file and gives its path. */
  add(storage: ByteStorage): string {
    const { blocking } = storage;
    if (!blocking) {
      throw new H5LogError('UNSUPPORTED', `${storage.name} cannot be read with blocking calls, as h5wasm needs it`, {
        file: storage.name,
      });
    }
    if (!this.#hooked) this.#hook();
    const path = `${FOLDER}${this.#next++}.h5`;
    this.#storages.set(path, storage as ByteStorage & { readonly blocking: BlockingStorage });
    return path;
  }

  remove(path: string): void {
    this.#storages.delete(path);
  }

  /** What a storage has thrown since the last time. */
  takeFailure(): unknown {
    const failure = this.#failure;
    this.#failure = undefined;
    return failure;
  }

  #hook(): void {
    const system = this.#system;
    const { open, fstat, stat, lstat, ftruncate } = system;
    const streamOf = (fd: number): Stream | null => (system.getStream(fd)?.storage ? system.getStream(fd) : null);
    const byPath = (path: string): object | null => {
      const storage = this.#storages.get(path);
      return storage ? this.#facts(storage.blocking, path) : null;
    };
    system.open = (path, flags, mode) => this.#open(path, flags) ?? open.call(system, path, flags, mode);
    system.stat = (path, noFollow) => byPath(path) ?? stat.call(system, path, noFollow);
    system.lstat = (path) => byPath(path) ?? lstat.call(system, path);
    system.fstat = (fd) => {
      const stream = streamOf(fd) as (Stream & { path: string }) | null;
      return stream?.storage ? this.#facts(stream.storage, stream.path) : fstat.call(system, fd);
    };
    system.ftruncate = (fd, size) => {
      const storage = streamOf(fd)?.storage;
      if (storage) this.#guard(() => storage.truncate(size));
      else ftruncate.call(system, fd, size);
    };
    this.#hooked = true;
  }

  #open(path: string, flags: number): Stream | null {
    const storage = this.#storages.get(path);
    if (!storage) return null;
    const { blocking } = storage;
    const writing = (flags & 3) !== 0;
    if (writing && !storage.write) throw new this.#system.ErrnoError(EROFS);
    if (flags & TRUNCATE) this.#guard(() => blocking.truncate(0));
    return this.#system.createStream({
      path,
      flags,
      position: 0,
      seekable: true,
      node: { mode: REGULAR_FILE },
      storage: blocking,
      stream_ops: this.#calls(blocking),
    });
  }

  #calls(storage: BlockingStorage): StreamCalls {
    return {
      read: (_stream, buffer, offset, length, position) =>
        this.#guard(() => storage.read(buffer.subarray(offset, offset + length), position)),
      write: (_stream, buffer, offset, length, position) =>
        this.#guard(() => {
          storage.write([buffer.subarray(offset, offset + length)], position);
          return length;
        }),
      llseek: (stream, offset, whence) => {
        const from = whence === 1 ? (stream.position ?? 0) : whence === 2 ? this.#guard(() => storage.size()) : 0;
        if (from + offset < 0) throw new this.#system.ErrnoError(EINVAL);
        return from + offset;
      },
    };
  }

  #facts(storage: BlockingStorage, path: string): object {
    const size = this.#guard(() => storage.size());
    const time = new Date(0);
    const [, number] = /(\d+)\.h5$/.exec(path) ?? [];
    return {
      dev: 0x6835,
      ino: Number(number ?? 0) + 1,
      mode: REGULAR_FILE,
      nlink: 1,
      uid: 0,
      gid: 0,
      rdev: 0,
      size,
      blocks: Math.ceil(size / 512),
      atime: time,
      mtime: time,
      ctime: time,
    };
  }

  #guard<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      this.#failure = error;
      throw new this.#system.ErrnoError(EIO);
    }
  }
}
