import { H5LogError, isH5LogError } from '../../base/errors.ts';
import type { DType } from '../../dtype/model.ts';
import type { DatasetParts } from '../../hdf5/graph/dataset-header.ts';
import type { Link, ObjectNode } from '../../hdf5/graph/object-node.ts';
import { type Dataspace, encodeDataspace } from '../../hdf5/messages/dataspace.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import { openStructure } from '../../hdf5/open.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { driveSync, type Io } from '../../storage/io.ts';
import type { ByteStorage } from '../../storage/storage.ts';
import type { NewDatasetOptions } from '../file-session.ts';
import { ACCESS, type Library, libraryError } from './library.ts';
import { linkedFile } from './linked-file.ts';
import { memoryForm } from './memory-form.ts';
import { NativeDataset } from './native-dataset.ts';
import { attributeRequest, datasetRequest } from './new-objects.ts';
import { Placed, packValues } from './packed.ts';
import { closeIn, createPlace, openIn, openPlace, type Place } from './place.ts';

/** An object, the file it is in (another one behind an external link) and its path there. */
export interface Found {
  readonly file: NativeFile;
  readonly node: ObjectNode;
  readonly path: string;
}

/** Kinds of what h5wasm finds at a path, as in H5G_obj_t; -1 is nothing. */
const KIND = { none: -1, group: 0, dataset: 1 } as const;
/** Soft and external links on one way, as libhdf5 counts them. */
const MOST_LINKS = 16;
/** libhdf5 keeps an attribute in one message of less than 64 KiB; its type and name need room as well. */
const MOST_ATTRIBUTE = 64_000;
/** H5Dwrite without data: h5wasm writes whatever it makes, and the way not to is to give it nothing. */
const NOT_WRITTEN = /H5D__write\w*\(\): no (?:output|input) buffer|buf parameter can't be NULL/;

/**
 * A regular HDF5 file: h5log's own reader for everything that describes it, h5wasm for data and for changes. Every call blocks. Changes
 * are h5wasm's own; before the structure is looked at again they are flushed, so that both see the same.
 */
export class NativeFile {
  readonly library: Library;
  readonly storage: ByteStorage;
  readonly mode: 'r' | 'r+';
  /** Cannot look for other files: external links, virtual datasets and external data lead nowhere. */
  readonly alone: boolean;
  /** Grows with every structure read anew; objects of an older one must be looked up again. */
  generation = 0;
  readonly #place: Place;
  #id: bigint | null;
  #structure: Structure | null = null;
  readonly #linked = new Map<string, NativeFile | null>();

  private constructor(library: Library, place: Place, mode: 'r' | 'r+') {
    this.library = library;
    this.#place = place;
    this.storage = place.storage;
    this.alone = place.mounted;
    this.mode = mode;
    this.#id = place.id;
  }

  /** Opens the file at a path, or one that is in a storage with a blocking half. */
  static open(library: Library, source: string | ByteStorage, mode: 'r' | 'r+'): NativeFile {
    // Whatever is not HDF5 is told apart by our own reader, with the byte that is wrong.
    const check = (storage: ByteStorage): void => {
      driveSync(storage, openStructure());
    };
    return new NativeFile(library, openPlace(library, source, mode, check), mode);
  }

  /** Opens a file for writing whose lock the caller has. */
  static openShared(library: Library, source: string | ByteStorage): NativeFile {
    return new NativeFile(
      library,
      openPlace(library, source, 'r+', () => {}, true),
      'r+',
    );
  }

  /** Makes a new file; one that exists is replaced unless `exclusive`. */
  static create(library: Library, target: string | ByteStorage, exclusive = false): NativeFile {
    return new NativeFile(library, createPlace(library, target, exclusive), 'r+');
  }

  get name(): string {
    return this.storage.name;
  }

  get closed(): boolean {
    return this.#id === null;
  }

  /** The file's number in h5wasm. */
  get id(): bigint {
    if (this.#id === null) throw new H5LogError('CLOSED', `${this.name} is closed`, { file: this.name });
    return this.#id;
  }

  /** The objects of the file as they are now. */
  get structure(): Structure {
    if (this.#structure) return this.#structure;
    if (this.mode === 'r+' && this.#id !== null) this.flush();
    this.#structure = this.now(openStructure()).structure;
    this.generation++;
    return this.#structure;
  }

  /** Runs a call that reads. What was got from a file can be read after it was closed: it is opened for each call then. */
  reading<T>(work: (id: bigint) => T): T {
    if (this.#id !== null) return work(this.#id);
    // Throws if another file has taken its place.
    this.storage.blocking?.size();
    const path = this.alone ? this.library.mounts.add(this.storage) : this.#place.path;
    try {
      const id = openIn(this.library, path, this.name, ACCESS.read);
      try {
        return work(id);
      } finally {
        closeIn(this.library, id, this.name);
      }
    } finally {
      if (this.alone) this.library.mounts.remove(path);
    }
  }

  now<T>(io: Io<T>): T {
    return driveSync(this.storage, io);
  }

  /** Throws unless the file may be changed. */
  writable(): void {
    if (this.closed) throw new H5LogError('CLOSED', `${this.name} is closed`, { file: this.name });
    if (this.mode === 'r')
      throw new H5LogError('READ_ONLY', `${this.name} is open for reading only`, { file: this.name });
  }

  #changed(): void {
    this.#structure = null;
  }

  /** Data was written. Variable-length values go to heaps that the structure may have read already. */
  dataChanged(vlen: boolean): void {
    if (vlen) this.#changed();
  }

  // ---------------------------------------------------------------- finding

  /** What a path leads to, through soft and external links. */
  find(path: string, from: Found = { file: this, node: this.structure.root, path: '/' }): Found | undefined {
    return this.#walk(path.startsWith('/') ? { file: this, node: this.structure.root, path: '/' } : from, path, {
      links: 0,
    });
  }

  #walk(start: Found, path: string, followed: { links: number }): Found | undefined {
    let at: Found | undefined = start;
    for (const name of path.split('/')) {
      if (name === '' || name === '.') continue;
      const link: Link | undefined = at.node.links.get(name);
      at = link && at.file.#follow(at, link, followed);
      if (!at) return undefined;
    }
    return at;
  }

  /** What a link of a group leads to. */
  follow(group: Found, link: Link): Found | undefined {
    return this.#follow(group, link, { links: 0 });
  }

  #follow(group: Found, link: Link, followed: { links: number }): Found | undefined {
    const { target } = link;
    const path = group.path === '/' ? `/${link.name}` : `${group.path}/${link.name}`;
    if (target.kind === 'hard') {
      const node = this.now(this.structure.target(group.node, link));
      return node && { file: this, node, path };
    }
    if (followed.links++ >= MOST_LINKS) return undefined;
    const root = (file: NativeFile): Found => ({ file, node: file.structure.root, path: '/' });
    if (target.kind === 'soft')
      return this.#walk(target.path.startsWith('/') ? root(this) : group, target.path, followed);
    if (target.kind !== 'external') return undefined;
    const file = this.#linkedTo(target.file);
    return file ? file.#walk(root(file), target.path, followed) : undefined;
  }

  /** The file that an external link names, opened once and for reading only. */
  #linkedTo(name: string): NativeFile | null {
    if (this.alone) return null;
    let file = this.#linked.get(name);
    if (file === undefined) {
      file = linkedFile(this.#place.path, name, (path) => NativeFile.open(this.library, path, 'r'));
      this.#linked.set(name, file);
    }
    return file;
  }

  dataset(path: string): NativeDataset {
    const found = this.find(path);
    if (found?.node.kind !== 'dataset') throw this.#error('NOT_FOUND', `there is no dataset ${path}`, path);
    return new NativeDataset(found.file, found.path, found.node);
  }

  // ---------------------------------------------------------------- changing

  createGroup(path: string): void {
    this.#makeRoom(path);
    this.#make('group', path, (calls, id) => calls.create_group(id, path, true));
  }

  createDataset(path: string, given: NewDatasetOptions): void {
    const form = memoryForm(given.dtype, path);
    const request = datasetRequest(given, form, path);
    this.#makeRoom(path);
    this.#make('dataset', path, (calls, id) => calls.create_dataset(id, path, 0n, request), NOT_WRITTEN);
    if (this.#kindOf(path) !== KIND.dataset)
      throw this.#error('STORAGE', `the dataset ${path} could not be made`, path);
  }

  createSoftLink(path: string, target: string): void {
    this.#makeRoom(path);
    this.#make('link', path, (calls, id) => calls.create_soft_link(id, target, path));
  }

  createHardLink(path: string, target: string): void {
    this.writable();
    if (this.#kindOf(target) === KIND.none) throw this.#error('NOT_FOUND', `there is no ${target} to link to`, target);
    this.#makeRoom(path);
    this.#make('link', path, (calls, id) => calls.create_hard_link(id, target, path));
  }

  createExternalLink(path: string, file: string, target: string): void {
    this.#makeRoom(path);
    this.#make('link', path, (calls, id) => calls.create_external_link(id, file, target, path));
  }

  /** h5wasm can make links and cannot remove them. */
  refuseRemoval(path: string): never {
    this.writable();
    throw this.#error('UNSUPPORTED', `h5wasm cannot remove or rename ${path}: it has no call for that`, path);
  }

  setAttribute(path: string, name: string, dtype: DType, space: Dataspace, value: unknown): void {
    this.writable();
    const what = `attribute ${name} of ${path}`;
    if (space.kind === 'null') throw this.#error('UNSUPPORTED', `${what}: h5wasm cannot make a NULL dataspace`, path);
    const shape = space.kind === 'simple' ? space.shape : [];
    const count = shape.reduce((product, n) => product * n, 1);
    const form = memoryForm(dtype, what);
    const request = attributeRequest(dtype, form, shape, what);
    const packed = packValues(dtype, value, count, (target) => this.referenceTo(target));
    if (packed.bytes.length > MOST_ATTRIBUTE) {
      throw this.#error(
        'UNSUPPORTED',
        `${what}: ${packed.bytes.length} bytes, an attribute holds at most ${MOST_ATTRIBUTE}`,
        path,
      );
    }
    const placed = new Placed(this.library, form, packed, 0, count, what);
    try {
      const put = (): void =>
        this.#make(what, path, (calls, id) => calls.create_attribute(id, path, name, BigInt(placed.pointer), request));
      try {
        put();
      } catch (error) {
        // Asking first would cost a look at the structure for each.
        if (!isH5LogError(error, 'EXISTS')) throw error;
        this.deleteAttribute(path, name);
        put();
      }
    } finally {
      placed.free();
    }
  }

  deleteAttribute(path: string, name: string): void {
    this.writable();
    this.#make(`attribute ${name}`, path, (calls, id) => calls.delete_attribute(id, path, name));
  }

  resize(path: string, node: ObjectNode, parts: DatasetParts, shape: readonly number[]): void {
    if (parts.layout?.kind !== 'chunked' || parts.space.kind !== 'simple')
      throw this.#error('UNSUPPORTED', `${path} has no chunks; only a chunked dataset can change its shape`, path);
    const known = this.#structure;
    this.#make('shape', path, (calls, id) => calls.resize_dataset(id, path, shape.map(BigInt)));
    // Nothing else of the structure has changed: a program that grows a dataset step by step need not wait for it to be read anew.
    const message = node.message(MESSAGE.dataspace);
    if (known && message) {
      message.content = encodeDataspace({ ...parts.space, shape });
      this.#structure = known;
    }
  }

  /** The 8 bytes of an object reference. */
  referenceTo(path: string): Uint8Array {
    if (this.#kindOf(path) === KIND.none) throw this.#error('NOT_FOUND', `there is no ${path} to refer to`, path);
    const { id } = this;
    return Uint8Array.from(
      this.library.call(
        (calls) => calls.create_object_reference(id, path),
        libraryError('STORAGE', `no reference to ${path}`, this.name, path),
      ),
    );
  }

  #make(
    what: string,
    path: string,
    work: (calls: Parameters<Parameters<Library['call']>[0]>[0], id: bigint) => number,
    expected?: RegExp,
  ): void {
    this.writable();
    const { id } = this;
    this.#changed();
    this.library.call(
      (calls) => work(calls, id),
      (reason, stack) => {
        const code = /already exists/.test(stack)
          ? 'EXISTS'
          : /can't locate|not found/.test(stack)
            ? 'NOT_FOUND'
            : 'STORAGE';
        return this.#error(code, `${what} at ${path} could not be changed: ${reason}`, path);
      },
      expected,
    );
  }

  /** Makes the groups on the way to a new name, once it is sure that the name is free. */
  #makeRoom(path: string): void {
    this.writable();
    const names = path.split('/').filter((name) => name !== '' && name !== '.');
    if (names.length === 0 || this.#kindOf(path) !== KIND.none)
      throw this.#error('EXISTS', `${path} exists already`, path);
    const missing: string[] = [];
    for (let depth = 1; depth < names.length; depth++) {
      const above = `/${names.slice(0, depth).join('/')}`;
      const kind = this.#kindOf(above);
      if (kind === KIND.none) missing.push(above);
      else if (kind !== KIND.group) throw this.#error('EXISTS', `${above} on the way to ${path} is not a group`, path);
    }
    for (const above of missing) this.#make('group', above, (calls, id) => calls.create_group(id, above, true));
  }

  #kindOf(path: string): number {
    const { id } = this;
    const failure = libraryError('STORAGE', `${path} could not be looked up`, this.name, path);
    try {
      // Looking for what is not there makes libhdf5 complain, too.
      return this.library.call((calls) => ({ kind: calls.get_type(id, path) }), failure, /./).kind;
    } catch (error) {
      if (this.closed) throw error;
      return KIND.none;
    }
  }

  #error(code: H5LogError['code'], message: string, path: string): H5LogError {
    return new H5LogError(code, `${this.name}: ${message}`, { file: this.name, object: path });
  }

  // ---------------------------------------------------------------- the whole file

  /** Everything that libhdf5 holds goes to the file. */
  flush(): void {
    const { id } = this;
    this.library.call((calls) => calls.flush(id), libraryError('STORAGE', 'the flush failed', this.name, '/'));
  }

  /** For readers: forgets what is in memory, so that the file is read as it is now. */
  reopen(): void {
    if (this.mode === 'r+') return;
    // Closed first: as long as it is open, libhdf5 shares what it knows of the file with whoever opens it again.
    closeIn(this.library, this.id, this.name);
    this.#id = null;
    this.#id = openIn(this.library, this.#place.path, this.name, ACCESS.read);
    this.#closeLinked();
    this.#changed();
  }

  #closeLinked(): void {
    for (const file of this.#linked.values()) file?.close();
    this.#linked.clear();
  }

  /** If what libhdf5 holds cannot be written, the file stays open: it can be tried again, or given up with {@link discard}. */
  close(): void {
    if (this.#id === null) return;
    if (this.mode === 'r+') this.flush();
    this.#release(() => closeIn(this.library, this.id, this.name));
  }

  /** Closes whatever becomes of it. */
  discard(): void {
    if (this.#id === null) return;
    const { id } = this;
    this.#release(() => this.library.call((calls) => ({ status: calls.close_file(id) }), giveUp, /./));
  }

  #release(work: () => void): void {
    try {
      work();
    } finally {
      this.#id = null;
      this.#closeLinked();
      this.#place.release();
    }
  }
}

const giveUp = libraryError('STORAGE', 'closing failed', '', '/');
