import { openBeside } from '#platform';
import { atOffset, H5LogError, inObject } from '../base/errors.ts';
import type { CollectiveKind } from '../comm/calls.ts';
import type { CollectiveFile, Communicator } from '../comm/communicator.ts';
import type { Codecs } from '../filter/pipeline.ts';
import { readSuperblock } from '../hdf5/format/superblock.ts';
import type { Link, ObjectNode } from '../hdf5/graph/object-node.ts';
import type { Structure } from '../hdf5/write/structure.ts';
import { planFlush } from '../log/flush/flush.ts';
import { takePosts } from '../log/flush/ordinary.ts';
import { type PublishRequest, takeFlush } from '../log/flush/publish.ts';
import { logNames, type Names, plainNames } from '../log/format/names.ts';
import type { Log } from '../log/log.ts';
import type { LogDataset } from '../log/post/dataset.ts';
import { type Waiting, waitingIn } from '../log/post/posts.ts';
import { OrdinaryPosts, WritableDataset } from '../log/post/writable.ts';
import { OrdinaryDataset, type OrdinaryOptions } from '../log/read/ordinary.ts';
import { VirtualDataset } from '../log/read/virtual.ts';
import type { Renewed } from '../storage/http.ts';
import { driveSync, type Io, onStorage } from '../storage/io.ts';
import type { Job } from '../storage/jobs.ts';
import type { ByteStorage, WriteTarget } from '../storage/storage.ts';
import { FlushJob, lateJob, type Milestones, ordinaryJob, quietly } from './commit-jobs.ts';
import type { Commit, Found } from './file-session.ts';
import {
  behind,
  findIn,
  LinkedFiles,
  type LinkedSession,
  reach,
  refuse,
  storedIn,
  storedPath,
  virtualSource,
} from './find.ts';
import { createState } from './new-state.ts';
import { isLeftAlone, mustPublish, Publishing } from './publishing.ts';
import type { Ranks } from './ranks.ts';
import { publishOnRanks, restore } from './restore.ts';
import { commitsOf, type FileState, loadOnDemand, newestState, openState, type SessionOptions } from './state.ts';

/**
 * An open file: its present state, the commits made to it, and what its objects share. Users hold {@link File}, {@link Group}
 * and {@link Dataset} instead. Every rank has a session; all make the same changes to its structure, and rank 0 writes it.
 */
export class Session implements LinkedSession {
  readonly storage: ByteStorage;
  readonly target: WriteTarget | null;
  readonly comm: Communicator;
  readonly #options: SessionOptions;
  #state: FileState;
  names: Names = plainNames;
  closed = false;
  /** Flushes, for posts that find the buffer full. */
  makeRoom: (() => void) | null = null;
  /** Ends all flushes that are under way. */
  finishFlushes: (() => void) | null = null;
  /** Grows when a reader moves to a newer state, so that objects look themselves up again. */
  generation = 0;
  last: Commit;
  #next: number;
  /** For `storage: 'mpi-io'`. */
  #collectiveFile: CollectiveFile | null = null;
  /** Files with data of this one, by name. */
  readonly #others = new Map<string, ByteStorage>();
  /** Files that links and virtual datasets name, and whether this is one of them. */
  readonly #linked: LinkedFiles;
  readonly #isLinked: boolean;
  /** Ordinary datasets of the present state that were read. */
  #ordinary = new WeakMap<ObjectNode, OrdinaryDataset>();
  /** What was loaded on demand, by path, and how deep: the same is loaded of a newer state. */
  readonly #loaded = new Map<string, number>();
  /** What was posted to ordinary datasets. */
  readonly posts: OrdinaryPosts;
  /** Flushes that have not been planned yet. */
  #unplanned = 0;
  readonly publishing: Publishing;

  private constructor(options: SessionOptions, state: FileState, linked?: LinkedFiles) {
    this.#linked = linked ?? new LinkedFiles();
    this.#isLinked = linked !== undefined;
    this.storage = options.storage;
    this.target = options.target;
    this.comm = options.ranks.comm;
    this.#options = options;
    this.#state = state;
    this.posts = new OrdinaryPosts(options.log);
    this.posts.makeRoom = () => this.makeRoom?.();
    this.posts.find = (path) => {
      const found = this.find(this.structure.root, path);
      return found?.session === this ? found.node : undefined;
    };
    this.posts.open = (node) => this.changed(node, this.now(this.structure.pathOf(node.address)));
    this.publishing = new Publishing(options, state.log?.log ?? null);
    this.last = state.last;
    // An ordinary file as it was opened counts as commit 0.
    this.#next = state.log ? state.next : Math.max(1, state.next);
    this.#use(state);
    if (!import.meta.page && options.mpiIo && this.log && this.target)
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
    if (this.storage.blocking && this.target) structure.beforeChange = () => this.#finishUnplanned();
    structure.paths = { stored: (path) => this.storedPath(path), shown };
    this.posts.besideLog = log !== null;
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

  get codecs(): Codecs | undefined {
    return this.#options.log.codecs;
  }

  // ---------------------------------------------------------------- ranks

  get #ranks(): Ranks {
    return this.#options.ranks;
  }

  change<T>(call: string, details: () => Readonly<Record<string, unknown>>, work: () => T): T {
    return import.meta.page || this.comm.size === 1 ? work() : this.#ranks.change(call, details, work);
  }

  onOneRank(call: string, work: () => void): void {
    if (this.#ranks.leads) this.#ranks.alone(call, work);
  }

  agree(kind: CollectiveKind): void {
    if (!import.meta.page && this.comm.size > 1) this.#agree(kind, new Uint8Array(0));
  }

  /** The messages of all ranks. If their calls differ, their structure is that of the last commit again. */
  #agree(kind: CollectiveKind, message: Uint8Array): readonly Uint8Array[] {
    const { messages, error, hasSameCalls } = this.#ranks.agree(kind, message);
    if (error && !import.meta.page) {
      if (hasSameCalls) throw error;
      const restored = this.now(restore(this.#options, { ...this.#state, last: this.last, next: this.#next }, error));
      this.#use(restored.state);
      this.generation++;
      throw restored.error;
    }
    return messages;
  }

  collective<T>(work: () => T): T {
    return this.#ranks.collective(work);
  }

  stopsOnAnyRank(stops: boolean): boolean {
    return this.comm.size === 1 ? stops : this.#agree('watch', Uint8Array.of(stops ? 1 : 0)).some(([any]) => any === 1);
  }

  /** Reads what other ranks have committed, before something else is read. */
  catchUp(): void {
    const { log } = this.#state;
    if (!import.meta.page && log?.isBehind) this.now(log.catchUp());
  }

  /** Closes the communicators that were made for this file. */
  leave(): void {
    this.#ranks.leave(this.log?.own.comm);
  }

  // ---------------------------------------------------------------- objects

  /** Runs code that finds everything in memory, or on a storage that can block. */
  now<T>(io: Io<T>): T {
    return driveSync(this.storage, io);
  }

  writable(): void {
    if (!this.closed && this.target) return;
    const { name } = this.storage;
    if (this.closed) throw new H5LogError('CLOSED', `${name} is closed`, { file: name });
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

  get lazy(): boolean {
    return this.#options.lazy && !this.storage.blocking;
  }

  *load(path: string, depth: number): Io<void> {
    if (!this.lazy) return;
    const { structure } = this;
    const node = yield* reach(this, path);
    if (!node) return;
    yield* loadOnDemand(structure, this.log, node, depth);
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

  /** A dataset may have been deleted: the next flush then rewrites the tables in which others refer to its entries. */
  dropped(): void {
    const { log } = this;
    if (log?.rewrite && !log.hasSubfiles && log.main.committer) this.now(log.main.loadTables());
  }

  ordinary(node: ObjectNode, path: string): OrdinaryDataset {
    const known = this.#ordinary.get(node);
    if (known) return known;
    const isVirtual = this.#isVirtual(node);
    const dataset = isVirtual
      ? this.#virtual(node, path)
      : new OrdinaryDataset(this.structure, node, path, this.#readOptions);
    // A source in this file may grow.
    if (!isVirtual || !this.target) this.#ordinary.set(node, dataset);
    return dataset;
  }

  #isVirtual(node: ObjectNode): boolean {
    return this.structure.dataset(node).layout?.kind === 'virtual';
  }

  get #readOptions(): OrdinaryOptions {
    return { codecs: this.codecs, open: (name: string) => this.#open(name) };
  }

  changed(node: ObjectNode, path: string): WritableDataset | undefined {
    if (!this.target || this.comm.size > 1 || this.log?.hasSubfiles) return undefined;
    const { posts, structure } = this;
    const known = posts.dataset(node);
    if (known || this.#isVirtual(node)) return known;
    return posts.add(
      new WritableDataset(posts, structure, () => new OrdinaryDataset(structure, node, path, this.#readOptions)),
    );
  }

  #virtual(node: ObjectNode, path: string): VirtualDataset {
    const source = (file: string, name: string) => virtualSource(this, file, name);
    const open = VirtualDataset.open(this.structure, node, path, { ...this.#readOptions, source });
    try {
      return this.#linked.nested(() => this.now(open));
    } catch (error) {
      throw inObject(atOffset(error, this.structure.loader.file.base + node.address), path);
    }
  }

  /** A file that this one names; null if there is none. */
  #open(name: string): ByteStorage | null {
    const known = this.#others.get(name);
    if (known) return known;
    refuse(this.#options, name);
    const found = (this.#options.openExternal ?? ((other) => openBeside(this.#options.path as string, other)))(name);
    if (found) this.#others.set(name, found);
    return found;
  }

  // ---------------------------------------------------------------- commits

  waiting(withFlushes = false): Waiting {
    return waitingIn([this.posts, this.log], withFlushes);
  }

  /** The commit of everything that changed, ready to be written; undefined if nothing changed. */
  commit(kind: CollectiveKind, publish: PublishRequest | null): Job<Commit> | undefined {
    this.writable();
    const { log, comm } = this;
    if (!log) return this.#ordinaryJob();
    if (publish) mustPublish(log);
    // A commit is planned behind those that wait to be planned.
    if (publish || !this.posts.isEmpty || this.#unplanned > 0) return this.#lateJob(log, publish);
    const agree = (message: Uint8Array) => this.#agree(kind, message);
    const plan = planFlush(log, comm, this.#next, Date.now(), { agree, now: (io) => this.now(io) });
    if (plan) {
      const sequence = this.#next++;
      const options = { power: this.#options.power, file: this.#collectiveFile };
      return new FlushJob(log, comm, plan, options, this.#ends(sequence));
    }
    // The caller gets the last commit, whose bytes in subfiles are not counted yet if an earlier session made it.
    if (log.hasSubfiles) this.commits();
    return undefined;
  }

  publishTogether(request: PublishRequest): void {
    const { log } = this;
    if (!log) return;
    mustPublish(log);
    const known = { ...this.#state, last: this.last, next: this.#next };
    if (!import.meta.page) this.#use(this.now(publishOnRanks(this.#options, known, request)));
    this.generation++;
  }

  closing(): PublishRequest | null {
    // Several ranks find out together whether anything is to be published.
    const isDone = this.comm.size === 1 && this.isPublished && !this.#state.committer?.pending;
    const request = isDone ? null : this.publishing.closing();
    if (!request?.auto || !this.log || this.hasChanges || !this.storage.blocking) return request;
    return this.now(isLeftAlone(this.log)) ? null : request;
  }

  /** Whether everything that is committed is what others see, as far as they can be shown it. */
  get isPublished(): boolean {
    const { log } = this;
    return !log || (!log.hasUnpublished && log.published === this.last.sequence && !log.hasRequests);
  }

  get hasChanges(): boolean {
    const { log, posts } = this;
    const isPending = this.#state.committer?.pending === true || !posts.isEmpty || this.#unplanned > 0;
    return isPending || (log !== null && (log.hasRequests || log.grown.size > 0));
  }

  /** The flush of a log that publishes, or in whose file ordinary datasets change as well. */
  #lateJob(log: Log, publish: PublishRequest | null): Job<Commit> | undefined {
    const { posts } = this;
    if (!this.hasChanges && !(publish && !this.isPublished)) return undefined;
    const taken = takeFlush(log, posts.isEmpty ? null : takePosts(posts), publish);
    const sequence = this.#next++;
    this.#unplanned++;
    return lateJob(log, posts, taken, this.#ends(sequence));
  }

  /**
   * Of a file without a log. A change of the structure while the job waits to be planned belongs to the next commit, and so it waits
   * where the storage can block.
   */
  #ordinaryJob(): Job<Commit> | undefined {
    const { posts } = this;
    const { committer } = this.#state;
    const taken = takePosts(posts);
    if (!committer || (!taken && !committer.pending)) return undefined;
    const sequence = this.#next++;
    this.#unplanned++;
    return ordinaryJob(committer, posts, taken, this.#ends(sequence));
  }

  /** What the session does when a job gets so far. */
  #ends(sequence: number): Milestones {
    return {
      sequence,
      planned: () => {
        this.#unplanned--;
      },
      done: (commit, isPublished) => {
        this.last = commit;
        if (isPublished) this.publishing.done(commit.time);
        if (import.meta.page || this.comm.size === 1) return;
        if (this.#state.log) this.#state.log.isBehind = true;
        if (!this.#state.committer) this.structure.forgetChanges();
      },
      failed: () => {
        this.#next = Math.min(this.#next, sequence);
      },
    };
  }

  #finishUnplanned(): void {
    if (this.#unplanned > 0) quietly(() => this.finishFlushes?.());
  }

  commits(): Commit[] {
    this.catchUp();
    // Only the last state of an ordinary file can be opened.
    if (!this.log) return [this.last];
    const list = commitsOf(this.log);
    const newest = list[list.length - 1];
    if (newest?.sequence === this.last.sequence) this.last = newest;
    else if (newest && newest.sequence < this.last.sequence) list.push(this.last);
    return list;
  }

  /** For readers: moves to the newest state; false if there is none newer. */
  *refresh(renewed?: Renewed): Io<boolean> {
    const others = this.#isLinked || this.comm.size > 1 ? false : yield* this.#refreshLinked();
    // Another file may have the same superblock.
    const isNew = renewed?.isOther || (yield* this.#ranks.isNewOnAny(this.#hasChanged()));
    if (isNew) this.#use(yield* newestState(this.#options, this.#state));
    renewed?.accept(this.log?.main.lastRecord());
    if (!isNew) return others;
    if (!this.log) this.last = { sequence: this.last.sequence + 1, time: new Date(), bytes: 0, requests: 0 };
    // Also if something cannot be loaded any more: objects of the earlier state must not be read of the new one.
    this.generation++;
    for (const [path, depth] of this.#loaded) yield* this.load(path, depth);
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
    const { openSubfiles } = this.#options;
    return [...new Set([this.storage, ...subfiles, ...openSubfiles.values(), ...this.#others.values(), ...linked])];
  }
}
