import { RegularData } from '#native';
import { openBeside } from '#platform';
import { formatError, H5LogError, inObject } from '../base/errors.ts';
import type { CollectiveFile, Communicator } from '../comm/communicator.ts';
import { readSuperblock } from '../hdf5/format/superblock.ts';
import type { Link, ObjectNode } from '../hdf5/graph/object-node.ts';
import { loadBelow } from '../hdf5/open.ts';
import type { Structure } from '../hdf5/write/structure.ts';
import { type Flushed, flushDone, flushFailed, planFlush, writeFlush } from '../log/flush/flush.ts';
import type { FlushPlan } from '../log/flush/write.ts';
import { logNames, type Names, plainNames } from '../log/format/names.ts';
import type { Log } from '../log/log.ts';
import type { LogDataset } from '../log/post/dataset.ts';
import { OrdinaryDataset, type OrdinaryOptions } from '../log/read/ordinary.ts';
import { VirtualDataset, type VirtualSource } from '../log/read/virtual.ts';
import { driveSync, type Io, onStorage } from '../storage/io.ts';
import type { Job } from '../storage/jobs.ts';
import type { ByteStorage, WriteTarget } from '../storage/storage.ts';
import type { Commit, Found, RegularDataset } from './file-session.ts';
import { behind, findIn, type LinkedSession, reach, storedIn, storedPath } from './find.ts';
import { LinkedFiles, refuse } from './linked.ts';
import type { Ranks } from './ranks.ts';
import {
  addLog,
  commitsOf,
  createState,
  type FileState,
  newestState,
  openState,
  readState,
  type SessionOptions,
} from './state.ts';

/** Virtual datasets whose shapes depend on one another. */
const MAX_NESTED = 16;

/**
 * An open file: its present state, the commits made to it, and what its objects share. Users hold {@link File}, {@link Group}
 * and {@link Dataset} instead. Every rank has a session; all make the same changes to its structure, and rank 0 writes it.
 */
export class Session implements LinkedSession {
  readonly storage: ByteStorage;
  readonly target: WriteTarget | null;
  readonly comm: Communicator;
  readonly direct = null;
  readonly #options: SessionOptions;
  #state: FileState;
  names: Names = plainNames;
  closed = false;
  /** Flushes, for posts that find the buffer full. */
  makeRoom: (() => void) | null = null;
  /** Grows when a reader moves to a newer state, so that objects look themselves up again. */
  generation = 0;
  last: Commit;
  #next: number;
  /** For `storage: 'mpi-io'`. */
  #collectiveFile: CollectiveFile | null = null;
  #regular: RegularData | null = null;
  /** Files with data of this one, by name. */
  readonly #others = new Map<string, ByteStorage>();
  /** Files that links and virtual datasets name, and whether this is one of them. */
  readonly #linked: LinkedFiles;
  readonly #isLinked: boolean;
  /** Ordinary datasets of the present state that were read. */
  #ordinary = new WeakMap<ObjectNode, OrdinaryDataset>();
  /** What was loaded on demand, by path, and how deep: the same is loaded of a newer state. */
  readonly #loaded = new Map<string, number>();
  /** Counts changes of the file, for caches of the library that reads regular datasets. */
  #changes = 0;

  private constructor(options: SessionOptions, state: FileState, linked?: LinkedFiles) {
    this.#linked = linked ?? new LinkedFiles();
    this.#isLinked = linked !== undefined;
    this.storage = options.storage;
    this.target = options.target;
    this.comm = options.ranks.comm;
    this.#options = options;
    this.#state = state;
    this.last = state.last;
    this.#next = state.next;
    this.#use(state);
    if (options.mpiIo && this.log && this.target)
      this.#collectiveFile = options.ranks.openCollectiveFile(this.log, options);
  }

  /** A new file, with its first commit written and under its name. */
  static *create(options: SessionOptions): Io<Session> {
    return new Session(options, yield* createState(options));
  }

  /** `linked`: those that it was reached from. */
  static *open(options: SessionOptions, linked?: LinkedFiles): Io<Session> {
    try {
      return new Session(options, yield* openState(options), linked);
    } catch (error) {
      for (const storage of options.openSubfiles.values()) storage.blocking?.close();
      throw error;
    }
  }

  #use(state: FileState): void {
    const { log, structure } = state;
    this.#state = state;
    this.#ordinary = new WeakMap();
    // Without commit records the numbering continues where it was.
    if (state.next > 0) {
      this.last = state.last;
      this.#next = state.next;
    }
    const names = log ? logNames : plainNames;
    this.names = names;
    const shown = (path: string): string =>
      path
        .split('/')
        .map((name) => names.shownInside(name))
        .join('/');
    structure.paths = { stored: (path) => this.storedPath(path), shown };
    if (!log) return;
    log.log.makeRoom = () => this.makeRoom?.();
    if (!log.isBehind) log.log.committed(false);
  }

  get mode(): 'r' | 'r+' {
    return this.target ? 'r+' : 'r';
  }

  get connector(): 'log' | 'native' {
    return this.log ? 'log' : 'native';
  }

  get structure(): Structure {
    return this.#state.structure;
  }

  /** null for a file without a log. */
  get log(): Log | null {
    return this.#state.log?.log ?? null;
  }

  get #ranks(): Ranks {
    return this.#options.ranks;
  }

  // ---------------------------------------------------------------- ranks

  /** Throws MISMATCH on all ranks unless all of them make this call. */
  sameCall(call: string, details: () => Readonly<Record<string, unknown>>): void {
    if (this.comm.size > 1) this.#ranks.sameCall(call, details);
  }

  collective<T>(work: () => T): T {
    return this.#ranks.collective(work);
  }

  onAnyRank(holds: boolean): boolean {
    return this.#ranks.onAny(holds);
  }

  /** Reads what other ranks have committed, before something else is read. */
  catchUp(): void {
    const { log } = this.#state;
    if (log?.isBehind) this.now(log.catchUp());
  }

  /** Closes the communicators that were made for this file. */
  leave(): void {
    const { log, comm } = this;
    if (comm.size === 1) return;
    if (log && log.own.comm !== comm) log.own.comm.close();
    comm.close();
  }

  // ---------------------------------------------------------------- objects

  /** Runs code that finds everything in memory, or on a storage that can block. */
  now<T>(io: Io<T>): T {
    return driveSync(this.storage, io);
  }

  writable(): void {
    if (this.closed) throw new H5LogError('CLOSED', `${this.storage.name} is closed`, { file: this.storage.name });
    const { name } = this.storage;
    const how = this.#isLinked
      ? 'was opened through an external link and can only be read'
      : 'is open for reading only';
    if (!this.target) throw new H5LogError('READ_ONLY', `${name} ${how}`, { file: name });
  }

  find(from: ObjectNode, path: string): Found | undefined {
    return findIn(this, from, path);
  }

  follow(group: ObjectNode, path: string, link: Link): Found | undefined {
    return behind({ session: this, node: group, path: path === '/' ? '' : path }, link.name, link);
  }

  linked(name: string): LinkedSession | null {
    return this.#linked.open(this, this.#options, name, (options) => Session.open(options, this.#linked));
  }

  /** Whether structure has to be loaded before it can be looked at. */
  get lazy(): boolean {
    return this.#options.lazy && !this.storage.blocking;
  }

  *load(path: string, depth: number): Io<void> {
    if (!this.lazy) return;
    const { structure } = this;
    const node = yield* reach(this, path);
    if (!node) return;
    yield* loadBelow(structure, node, depth, true);
    this.#loaded.set(path, Math.max(depth, this.#loaded.get(path) ?? 0));
  }

  storedIn(group: ObjectNode, name: string): string {
    return storedIn(this, group, name);
  }

  shownIn(group: ObjectNode, name: string): string | undefined {
    return group === this.structure.root ? this.names.shown(name) : this.names.shownInside(name);
  }

  storedPath(path: string): string {
    return storedPath(this.names, path);
  }

  /** The log's view of a dataset; undefined for datasets of another kind. */
  logDataset(node: ObjectNode, path: string): LogDataset | undefined {
    return this.log ? this.now(this.log.dataset(node, path)) : undefined;
  }

  /** The log, begun if the file has none yet. */
  beginLog(): Log {
    if (this.log) return this.log;
    const log = addLog(this.#options, this.structure, this.#state.committer);
    this.#use({ ...this.#state, last: this.last, next: this.#next, log });
    return log.log;
  }

  /** A dataset may have been deleted: the next flush then rewrites the tables in which others refer to its entries. */
  dropped(): void {
    const { log } = this;
    if (!log?.rewrite || log.hasSubfiles) return;
    this.collective(() => {
      if (log.main.committer) this.now(log.main.loadTables());
    });
  }

  ordinary(node: ObjectNode, path: string): OrdinaryDataset {
    const known = this.#ordinary.get(node);
    if (known) return known;
    const options = { codecs: this.#options.log.codecs, open: (name: string) => this.#open(name) };
    const isVirtual = this.structure.dataset(node).layout?.kind === 'virtual';
    const dataset = isVirtual
      ? this.#virtual(node, path, options)
      : new OrdinaryDataset(this.structure, node, path, options);
    // A source in this file may grow.
    if (!isVirtual || !this.target) this.#ordinary.set(node, dataset);
    return dataset;
  }

  #virtual(node: ObjectNode, path: string, options: OrdinaryOptions): VirtualDataset {
    const files = this.#linked;
    // Their shapes may depend on one another.
    if (files.nested >= MAX_NESTED) throw formatError('virtual datasets lead to one another without end');
    files.nested++;
    try {
      const source = (file: string, name: string) => this.#source(file, name);
      return this.now(VirtualDataset.open(this.structure, node, path, { ...options, source }));
    } catch (error) {
      throw inObject(error, path);
    } finally {
      files.nested--;
    }
  }

  /** What a virtual dataset shows; null if it is missing. */
  #source(file: string, name: string): VirtualSource | null {
    const other = file === '.' ? this : this.linked(file);
    const found = other && findIn(other, other.structure.root, name);
    if (found?.node.kind !== 'dataset') return null;
    const { session, node, path } = found;
    const dataset = session.logDataset(node, path) ?? session.ordinary(node, path);
    return { dataset, storage: session === this ? null : session.storage };
  }

  /** A file that this one names; null if there is none. */
  #open(name: string): ByteStorage | null {
    const known = this.#others.get(name);
    if (known) return known;
    refuse(this.#options, name);
    const found = openBeside(this.#options.path as string, name);
    if (found) this.#others.set(name, found);
    return found;
  }

  /** A dataset of ordinary HDF5, which another library reads and writes. */
  regular(node: ObjectNode, path: string): RegularDataset {
    const changes = (): number => this.#changes;
    this.#regular ??= new RegularData({
      source: this.#options.path ?? this.storage,
      get stamp() {
        return changes();
      },
      storedPath: (given) => this.storedPath(given),
      lend: (work) => this.#lend(work),
    });
    return this.#regular.dataset(node, path);
  }

  /** Lets another library change the file: what is pending is committed before, and everything is read again after. */
  #lend<T>(work: () => T): T {
    this.writable();
    if (this.comm.size > 1)
      throw new H5LogError('UNSUPPORTED', 'several ranks can only read the data of ordinary datasets');
    this.makeRoom?.();
    this.now(this.finish());
    try {
      return work();
    } finally {
      this.#use(this.now(readState(this.#options)));
      this.#changes++;
      this.generation++;
    }
  }

  // ---------------------------------------------------------------- commits

  /** The commit of everything that changed, planned and ready to be written; undefined if nothing changed. */
  commit(): Job<Commit> | undefined {
    this.writable();
    const { log, comm } = this;
    if (!log) return this.#commitStructure();
    const plan = planFlush(log, comm, this.#next, Date.now());
    if (plan) return this.#flushJob(log, plan, this.#next++);
    // The caller gets the last commit, whose bytes in subfiles are not counted yet if an earlier session made it.
    if (log.hasSubfiles) this.commits();
    return undefined;
  }

  #flushJob(log: Log, plan: FlushPlan, sequence: number): Job<Commit> {
    const { comm } = this;
    const options = { power: this.#options.power, file: this.#collectiveFile };
    let flushed: Flushed;
    const start = function* (): Io<Commit> {
      flushed = yield* writeFlush(log, comm, plan, options);
      return { sequence, time: new Date(flushed.time), bytes: flushed.bytes, requests: plan.requests };
    };
    const done = (commit: Commit, overtaken: boolean): void => {
      this.#committed(commit);
      flushDone(log, plan, flushed, overtaken);
      if (comm.size === 1) return;
      if (this.#state.log) this.#state.log.isBehind = true;
      if (!this.#state.committer) this.structure.forgetChanges();
    };
    const failed = (_error: unknown, overtaken: boolean): void => {
      this.#next = Math.min(this.#next, sequence);
      // Whose sync failed is not known among several ranks: with power their bytes must go elsewhere.
      const reuse = !overtaken && (comm.size === 1 || !options.power);
      flushFailed(log, plan, reuse);
    };
    return { start, done, failed };
  }

  /** Of a file without a log: structure alone. */
  #commitStructure(): Job<Commit> | undefined {
    const { committer } = this.#state;
    if (!committer?.pending) return undefined;
    const sequence = this.#next++;
    const planned = committer.plan();
    const commit = { sequence, time: new Date(), bytes: planned.bytes, requests: 0 };
    const start = function* (): Io<Commit> {
      yield* committer.write(planned);
      return commit;
    };
    const failed = (_error: unknown, overtaken: boolean): void => {
      this.#next = Math.min(this.#next, sequence);
      committer.undo(planned, !overtaken);
    };
    return { start, done: () => this.#committed(commit), failed };
  }

  #committed(commit: Commit): void {
    this.last = commit;
    this.#changes++;
  }

  commits(): Commit[] {
    this.catchUp();
    const list = this.log ? commitsOf(this.log) : [];
    const newest = list[list.length - 1];
    if (newest?.sequence === this.last.sequence) this.last = newest;
    else if (newest && newest.sequence < this.last.sequence) list.push(this.last);
    return list;
  }

  /** For readers: moves to the newest state; false if there is none newer. */
  *refresh(): Io<boolean> {
    const others = this.#isLinked || this.comm.size > 1 ? false : yield* this.#refreshLinked();
    const isNew = yield* this.#ranks.collectiveIo(this.#hasChanged());
    if (!this.onAnyRank(isNew)) return others;
    this.#use(yield* newestState(this.#options, this.#state));
    for (const [path, depth] of this.#loaded) yield* this.load(path, depth);
    this.#changes++;
    this.generation++;
    return true;
  }

  *#refreshLinked(): Io<boolean> {
    let isNew = false;
    for (const other of this.#linked.others) if (yield* onStorage(other.storage, other.refresh())) isNew = true;
    // Their shapes may be others now.
    if (isNew) this.#ordinary = new WeakMap();
    return isNew;
  }

  /** Compares the superblock alone: a watching reader asks again and again. */
  *#hasChanged(): Io<boolean> {
    const known = this.#state.superblock;
    const { bytes } = yield* readSuperblock();
    return bytes.length !== known.length || bytes.some((byte, i) => byte !== known[i]);
  }

  // ---------------------------------------------------------------- the end

  /** Cuts the file to size; the caller closes the storages. */
  *finish(): Io<void> {
    this.#regular?.close();
    this.#collectiveFile?.close();
    this.#collectiveFile = null;
    for (const store of this.log?.stores ?? []) {
      if (store.committer && store.storage) yield* store.run(store.committer.appender.close());
    }
    if (this.#state.committer) yield* this.#state.committer.appender.close();
  }

  giveUp(): void {
    this.now(this.finish());
  }

  release(): void {
    this.target?.release();
  }

  /** Every open file: this one, and its subfiles. */
  get storages(): ByteStorage[] {
    const subfiles = (this.log?.stores ?? []).flatMap(({ storage }) => (storage ? [storage] : []));
    const linked = this.#isLinked ? [] : this.#linked.others.flatMap(({ storages }) => storages);
    return [
      ...new Set([
        this.storage,
        ...subfiles,
        ...this.#options.openSubfiles.values(),
        ...this.#others.values(),
        ...linked,
      ]),
    ];
  }
}
