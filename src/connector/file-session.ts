import type { CollectiveKind } from '../comm/calls.ts';
import type { Communicator } from '../comm/communicator.ts';
import type { Codecs } from '../filter/pipeline.ts';
import type { Link, ObjectNode } from '../hdf5/graph/object-node.ts';
import type { Structure } from '../hdf5/write/structure.ts';
import type { PublishRequest } from '../log/flush/publish.ts';
import type { Names } from '../log/format/names.ts';
import type { Log } from '../log/log.ts';
import type { LogDataset } from '../log/post/dataset.ts';
import type { WritableDataset } from '../log/post/writable.ts';
import type { OrdinaryDataset } from '../log/read/ordinary.ts';
import type { Renewed } from '../storage/http.ts';
import type { Io } from '../storage/io.ts';
import type { Job } from '../storage/jobs.ts';
import type { ByteStorage } from '../storage/storage.ts';

/** A state of the file that was made to last. */
export interface Commit {
  readonly sequence: number;
  readonly time: Date;
  /** Bytes that the commit added to the file. */
  readonly bytes: number;
  readonly requests: number;
}

/** An object, and the file it is in: another one behind an external link. */
export interface Found {
  readonly session: FileSession;
  readonly node: ObjectNode;
  readonly path: string;
}

/** An open file: what its objects share. */
export interface FileSession {
  readonly connector: 'log' | 'native';
  readonly storage: ByteStorage;
  readonly comm: Communicator;
  readonly mode: 'r' | 'r+';
  readonly structure: Structure;
  readonly names: Names;
  readonly log: Log | null;
  /** Filters of the user, for this file. */
  readonly codecs: Codecs | undefined;
  readonly last: Commit;
  closed: boolean;
  /** Flushes, for posts that find no room. */
  makeRoom: (() => void) | null;
  /** Ends all flushes that are under way. */
  finishFlushes: (() => void) | null;
  /** Grows when the structure is another one, so that objects look themselves up again. */
  readonly generation: number;

  /** Whether structure has to be loaded before it can be looked at. */
  readonly lazy: boolean;
  /** Loads the object at a path, and what is below it down to a depth; nothing where it is there, or comes when it is needed. */
  load(path: string, depth: number): Io<void>;

  find(from: ObjectNode, path: string): Found | undefined;
  /** What a link of the group at `path` leads to. */
  follow(group: ObjectNode, path: string, link: Link): Found | undefined;
  storedIn(group: ObjectNode, name: string): string;
  shownIn(group: ObjectNode, name: string): string | undefined;
  storedPath(path: string): string;

  /** Runs code that should find everything in memory, or a storage that can block. */
  now<T>(io: Io<T>): T;
  writable(): void;
  /** For readers that watch: whether any rank has had enough. */
  stopsOnAnyRank(stops: boolean): boolean;
  /** Gives the communicators up that were made for this file. */
  leave(): void;
  /** Does something on every rank; when it fails on one, the same error is thrown on all. */
  collective<T>(work: () => T): T;
  /** Makes a change that all ranks make, each by itself. What they did is compared when the next collective begins. */
  change<T>(call: string, details: () => Readonly<Record<string, unknown>>, work: () => T): T;
  /** Changes what rank 0 alone writes, as a part of a collective that follows. An error is thrown there, on all ranks. */
  onOneRank(call: string, work: () => void): void;
  /** Begins a collective of this kind. Throws the same error on all ranks if they do not make the same one, or did not do the same before. */
  agree(kind: CollectiveKind): void;
  catchUp(): void;
  dropped(): void;
  logDataset(node: ObjectNode, path: string): LogDataset | undefined;
  /** A dataset that is not in the log, for reads. */
  ordinary(node: ObjectNode, path: string): OrdinaryDataset;
  /** A dataset that is not in the log, for posts and for reads that see them; undefined where the dataset cannot be changed. */
  changed(node: ObjectNode, path: string): WritableDataset | undefined;
  /** What waits for a flush; or all that is not committed, what is being flushed included. */
  waiting(withFlushes?: boolean): { readonly requests: number; readonly bytes: number };

  /**
   * The commit of everything that changed, planned and ready to be written; undefined if nothing changed. Collective: it begins like
   * {@link agree}, with the kind of call that commits. With `publish` other programs see it.
   */
  commit(kind: CollectiveKind, publish: PublishRequest | null): Job<Commit> | undefined;
  /** Several ranks: makes other programs see the last commit, when nothing is pending. */
  publishTogether(request: PublishRequest): void;
  /** When others are to see what is committed: whether with a commit made now; else in so many milliseconds, null: no time is set. */
  readonly publishing: { now(): PublishRequest | null; readonly due: number | null };
  /** Whether they do. */
  readonly isPublished: boolean;
  /** Whether anything waits for a flush. */
  readonly hasChanges: boolean;
  /** What the last commit is to publish; null: nothing. */
  closing(): PublishRequest | null;
  commits(): Commit[];
  refresh(renewed?: Renewed): Io<boolean>;
  /** Ends the work on the file; its storages are closed by the caller. */
  finish(): Io<void>;
  /** The same whatever becomes of it. */
  giveUp(): void;
  readonly storages: readonly ByteStorage[];
  /** Gives up the right to be the only writer. */
  release(): void;
}
