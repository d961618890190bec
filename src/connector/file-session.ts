import type { Communicator } from '../comm/communicator.ts';
import type { DType } from '../dtype/model.ts';
import type { DatasetParts } from '../hdf5/graph/dataset-header.ts';
import type { Link, ObjectNode } from '../hdf5/graph/object-node.ts';
import type { Dataspace } from '../hdf5/messages/dataspace.ts';
import type { Structure } from '../hdf5/write/structure.ts';
import type { Names } from '../log/format/names.ts';
import type { Filter } from '../log/format/properties.ts';
import type { Log } from '../log/log.ts';
import type { LogDataset, PostOptions } from '../log/post/dataset.ts';
import type { OrdinaryDataset } from '../log/read/ordinary.ts';
import type { ReadRequest } from '../log/read/reading.ts';
import type { Where } from '../space/select.ts';
import type { Coordinates } from '../space/shape.ts';
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

/** A dataset whose data another library reads and writes, at once. */
export interface RegularDataset {
  readonly parts: DatasetParts;
  read(where: Where | undefined, request: ReadRequest): unknown;
  readMany(starts: Coordinates, counts: Coordinates, request: ReadRequest): unknown;
  write(data: unknown, where: Where | undefined, options: PostOptions | undefined): void;
  writeMany(data: unknown, starts: Coordinates, counts: Coordinates): void;
  resize(shape: readonly number[]): void;
}

export interface NewDatasetOptions {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly maxShape: readonly (number | null)[];
  readonly chunks: readonly number[] | null;
  readonly filters: readonly Filter[];
  readonly fill?: unknown;
}

/** Changes that another library makes, at once. Paths begin at the root. */
export interface DirectChanges {
  createGroup(path: string): void;
  createDataset(path: string, options: NewDatasetOptions): void;
  createSoftLink(path: string, target: string): void;
  createHardLink(path: string, target: string): void;
  createExternalLink(path: string, file: string, target: string): void;
  move(from: string, to: string): void;
  delete(path: string): void;
  setAttribute(path: string, name: string, dtype: DType, space: Dataspace, value: unknown): void;
  deleteAttribute(path: string, name: string): void;
}

/** An open file, whichever connector is behind it: what its objects share. */
export interface FileSession {
  readonly connector: 'log' | 'native';
  readonly storage: ByteStorage;
  readonly comm: Communicator;
  readonly mode: 'r' | 'r+';
  readonly structure: Structure;
  readonly names: Names;
  readonly log: Log | null;
  readonly last: Commit;
  closed: boolean;
  /** Flushes, for posts that find no room. */
  makeRoom: (() => void) | null;
  /** Grows when the structure is another one, so that objects look themselves up again. */
  readonly generation: number;
  /** null: changes are made in the structure and wait for a commit. */
  readonly direct: DirectChanges | null;

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
  /** Whether something holds on any rank. */
  onAnyRank(holds: boolean): boolean;
  /** Gives the communicators up that were made for this file. */
  leave(): void;
  /** Does something on every rank; when it fails on one, the same error is thrown on all. */
  collective<T>(work: () => T): T;
  /** Throws MISMATCH on all ranks unless all of them make this call. */
  sameCall(call: string, details: () => Readonly<Record<string, unknown>>): void;
  catchUp(): void;
  dropped(): void;
  beginLog(): Log;
  logDataset(node: ObjectNode, path: string): LogDataset | undefined;
  /** A dataset that is not in the log, for reads; null where another library has to read it. */
  ordinary(node: ObjectNode, path: string): OrdinaryDataset | null;
  /** A dataset that is not in the log; throws if its data cannot be reached. */
  regular(node: ObjectNode, path: string): RegularDataset;

  /** The commit of everything that changed, planned and ready to be written; undefined if nothing changed. */
  commit(): Job<Commit> | undefined;
  commits(): Commit[];
  refresh(): Io<boolean>;
  /** Ends the work on the file; its storages are closed by the caller. */
  finish(): Io<void>;
  /** The same whatever becomes of it. */
  giveUp(): void;
  readonly storages: readonly ByteStorage[];
  /** Gives up the right to be the only writer. */
  release(): void;
}
