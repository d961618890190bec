import { H5LogError } from '../../base/errors.ts';
import type { Communicator } from '../../comm/communicator.ts';
import type { DType } from '../../dtype/model.ts';
import type { Link, ObjectNode } from '../../hdf5/graph/object-node.ts';
import type { Dataspace } from '../../hdf5/messages/dataspace.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { plainNames } from '../../log/format/names.ts';
import type { Io } from '../../storage/io.ts';
import type { ByteStorage } from '../../storage/storage.ts';
import type { Commit, DirectChanges, FileSession, Found, NewDatasetOptions, RegularDataset } from '../file-session.ts';
import { NativeDataset } from './native-dataset.ts';
import type { NativeFile, Found as NativeFound } from './native-file.ts';

/** A regular file as the public classes see it. Every change is made at once; there are no commits. */
export class NativeSession implements FileSession, DirectChanges {
  readonly connector = 'native' as const;
  readonly log = null;
  readonly names = plainNames;
  readonly comm: Communicator;
  closed = false;
  makeRoom: (() => void) | null = null;
  last: Commit = { sequence: 0, time: new Date(), bytes: 0, requests: 0 };
  readonly #file: NativeFile;
  readonly #power: boolean;
  /** Of files behind external links. */
  readonly #linked = new Map<NativeFile, NativeSession>();

  constructor(file: NativeFile, comm: Communicator, power: boolean) {
    this.#file = file;
    this.comm = comm;
    this.#power = power;
  }

  get storage(): ByteStorage {
    return this.#file.storage;
  }

  get mode(): 'r' | 'r+' {
    return this.#file.mode;
  }

  get structure(): Structure {
    return this.#file.structure;
  }

  /** Asking for the structure may read it anew, which this has to know of. */
  get generation(): number {
    void this.#file.structure;
    return this.#file.generation;
  }

  readonly lazy = false;

  *load(): Io<void> {}

  get direct(): DirectChanges {
    return this;
  }

  // ---------------------------------------------------------------- finding

  find(from: ObjectNode, path: string): Found | undefined {
    return this.#found(this.#file.find(path, { file: this.#file, node: from, path: this.#pathOf(from) }));
  }

  follow(group: ObjectNode, path: string, link: Link): Found | undefined {
    return this.#found(this.#file.follow({ file: this.#file, node: group, path }, link));
  }

  #pathOf(node: ObjectNode): string {
    return node === this.structure.root ? '/' : this.now(this.structure.pathOf(node.address));
  }

  #found(found: NativeFound | undefined): Found | undefined {
    if (!found) return undefined;
    const { file, node, path } = found;
    return { session: this.#sessionOf(file), node, path };
  }

  #sessionOf(file: NativeFile): NativeSession {
    if (file === this.#file) return this;
    let session = this.#linked.get(file);
    if (!session) {
      session = new NativeSession(file, this.comm, this.#power);
      this.#linked.set(file, session);
    }
    return session;
  }

  storedIn(_group: ObjectNode, name: string): string {
    return name;
  }

  shownIn(_group: ObjectNode, name: string): string {
    return name;
  }

  storedPath(path: string): string {
    return path;
  }

  now<T>(io: Io<T>): T {
    return this.#file.now(io);
  }

  regular(node: ObjectNode, path: string): RegularDataset {
    return new NativeDataset(this.#file, path, node);
  }

  ordinary(): null {
    return null;
  }

  logDataset(): undefined {
    return undefined;
  }

  // ---------------------------------------------------------------- changing

  writable(): void {
    if (this.closed) throw new H5LogError('CLOSED', `${this.storage.name} is closed`, { file: this.storage.name });
    this.#file.writable();
  }

  sameCall(): void {}

  onAnyRank(holds: boolean): boolean {
    return holds;
  }

  collective<T>(work: () => T): T {
    return work();
  }

  leave(): void {}
  catchUp(): void {}
  dropped(): void {}

  beginLog(): never {
    throw new H5LogError('UNSUPPORTED', `${this.storage.name} is open through the native connector, which has no log`);
  }

  createGroup(path: string): void {
    this.#file.createGroup(path);
  }

  createDataset(path: string, options: NewDatasetOptions): void {
    this.#file.createDataset(path, options);
  }

  createSoftLink(path: string, target: string): void {
    this.#file.createSoftLink(path, target);
  }

  createHardLink(path: string, target: string): void {
    this.#file.createHardLink(path, target);
  }

  createExternalLink(path: string, file: string, target: string): void {
    this.#file.createExternalLink(path, file, target);
  }

  move(from: string, _to: string): void {
    this.#file.refuseRemoval(from);
  }

  delete(path: string): void {
    this.#file.refuseRemoval(path);
  }

  setAttribute(path: string, name: string, dtype: DType, space: Dataspace, value: unknown): void {
    this.#file.setAttribute(path, name, dtype, space, value);
  }

  deleteAttribute(path: string, name: string): void {
    this.#file.deleteAttribute(path, name);
  }

  // ---------------------------------------------------------------- the whole file

  /** There is nothing to plan: libhdf5 writes what it holds, and that is all. */
  commit(): undefined {
    this.writable();
    this.#file.flush();
    if (this.#power) this.storage.blocking?.sync();
    return undefined;
  }

  commits(): Commit[] {
    return [];
  }

  // biome-ignore lint/correctness/useYield: the library blocks
  *refresh(): Io<boolean> {
    this.#file.reopen();
    return true;
  }

  // biome-ignore lint/correctness/useYield: the library blocks
  *finish(): Io<void> {
    this.#file.close();
  }

  giveUp(): void {
    this.#file.discard();
  }

  /** The library's own file has the lock. */
  release(): void {}

  /** Closed by the library's own file. */
  get storages(): readonly ByteStorage[] {
    return [];
  }
}
