import { openForReading, remoteUrl } from '#platform';
import { type Attributes, ObjectAttributes } from '../api/attributes.ts';
import { Dataset } from '../api/dataset.ts';
import { File } from '../api/file.ts';
import type { Group } from '../api/group.ts';
import { type Handled, handle, handleOf, ObjectHandle, sessionOf } from '../api/handle.ts';
import { H5LogError, isH5LogError } from '../base/errors.ts';
import type { FileSession } from '../connector/file-session.ts';
import type { DType } from '../dtype/model.ts';
import { Cursor } from '../hdf5/format/cursor.ts';
import { committedType } from '../hdf5/graph/dataset-header.ts';
import type { Link, ObjectNode } from '../hdf5/graph/object-node.ts';
import { parseAttribute } from '../hdf5/messages/attribute.ts';
import type { Layout } from '../hdf5/messages/layout.ts';
import type { LinkTarget } from '../hdf5/messages/link.ts';
import * as MESSAGE_FLAG from '../hdf5/messages/message-flags.ts';
import * as MESSAGE from '../hdf5/messages/message-types.ts';
import { parseShared } from '../hdf5/read/shared-messages.ts';
import type { Structure } from '../hdf5/write/structure.ts';
import { Log, type LogOptions } from '../log/log.ts';
import type { LogDataset } from '../log/post/dataset.ts';
import type { LogStore } from '../log/store.ts';
import { blobStorage } from '../storage/blob.ts';
import { httpStorage } from '../storage/http.ts';
import type { Io } from '../storage/io.ts';
import type { ByteStorage } from '../storage/storage.ts';
import { Runner } from './run.ts';

/*
 * Access of the tools to the internals of an open file: sessions, header messages, the log.
 */

/** What can be opened for reading. */
export type Source = string | URL | Blob | ByteStorage;

/** What a tool reads: something that it opens and closes, or a file that is open and stays so. */
export type Opened = Source | File;

/** Opens a file for reading, runs `work`, and closes the file even if `work` fails. A file that is open stays so. */
export async function reading<T>(source: Opened, work: (file: File) => Promise<T>): Promise<T> {
  if (source instanceof File) return work(await source.load('/', { depth: Infinity }));
  const file = await File.open(source);
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}

export const nameOf = (file: File): string => sessionOf(file).storage.name;

/** The log of an open file; null if it has none. */
export const logOf = (file: File): Log | null => sessionOf(file).log;

/** The file itself and its subfiles. */
export const storagesOf = (file: File): readonly ByteStorage[] => sessionOf(file).storages;

export function drive<T>(file: File, io: Io<T>): Promise<T> {
  return new Runner(sessionOf(file).storage).run(io);
}

const READING: LogOptions = {
  table: { merge: true, encode: true, share: true, compressFrom: Infinity },
  checksum: false,
  bufferLimit: Infinity,
  indexLimit: Infinity,
  flushWhenFull: false,
};

/** A log that is only read, of a file that is not open as a {@link File}. The stores are loaded. */
export function readingLog(structure: Structure, main: LogStore, stores: readonly LogStore[]): Log {
  const log = new Log(structure, main, stores, 0, READING);
  log.committed(false);
  log.mustHoldData();
  return log;
}

/** The node of an object: one for all hard links to it. */
export const identityOf = (object: Group | Dataset): ObjectNode => handleOf(object).node;

/** The log's view of a dataset; undefined for an ordinary dataset. */
export function logDatasetOf(dataset: Dataset): LogDataset | undefined {
  return sessionOf(dataset).logDataset(handleOf(dataset).node, dataset.path);
}

/** Whether the dataspace of a dataset is NULL. Anchors of the log have NULL dataspaces too, but their datasets have a shape. */
export function isNull(dataset: Dataset): boolean {
  if (logDatasetOf(dataset)) return false;
  return sessionOf(dataset).structure.dataset(handleOf(dataset).node).space.kind === 'null';
}

/** The storage layout of an ordinary dataset. */
export function layoutOf(dataset: Dataset): Layout | null {
  return sessionOf(dataset).structure.dataset(handleOf(dataset).node).layout;
}

/** A committed datatype. */
interface CommittedDatatype extends Handled {
  readonly node: ObjectNode;
  readonly dtype: DType;
  readonly attributes: Attributes;
}

/** The committed datatype that a dataset, or an attribute of an object, uses; undefined for a type of its own. */
export function committedTypeOf(object: Handled, attribute?: string): ObjectNode | undefined {
  const { session, node } = handleOf(object);
  const { loader } = session.structure;
  const record = attribute === undefined ? sharedType(node) : sharedTypeOfAttribute(session, node, attribute);
  const shared = record && parseShared(record, loader.file);
  return shared?.kind === 'object' ? loader.nodes.get(shared.address) : undefined;
}

function sharedType(node: ObjectNode): Cursor | undefined {
  const message = node.message(MESSAGE.datatype);
  return message && message.flags & MESSAGE_FLAG.shared ? new Cursor(message.bytes, message.offset) : undefined;
}

function sharedTypeOfAttribute({ names, structure }: FileSession, node: ObjectNode, name: string): Cursor | undefined {
  const message = node.attributes.get(names.stored(name))?.message;
  if (!message) return undefined;
  const { content, offset } = message;
  const { type } = parseAttribute(new Cursor(content, offset), structure.loader.file.lengthSize);
  if (!('sharedAt' in type)) return undefined;
  return new Cursor(content, offset, type.sharedAt, type.sharedAt + type.sharedSize);
}

/** A link of a group, with the object of a hard link. */
export interface Member {
  readonly name: string;
  readonly path: string;
  readonly link: LinkTarget;
  /** What a hard link leads to, unless that is a committed datatype. */
  readonly object: Group | Dataset | undefined;
  readonly datatype: CommittedDatatype | undefined;
  /** Why the object of a hard link cannot be read. */
  readonly problem: H5LogError | undefined;
}

/** The links of a group. Soft and external links are not followed: their targets are listed by their own paths. */
export function* membersOf(group: Group): Iterable<Member> {
  const { session, node } = handleOf(group);
  for (const name of group.keys()) {
    const link = node.links.get(session.storedIn(node, name));
    if (!link) continue;
    const path = `${group.path === '/' ? '' : group.path}/${name}`;
    const { target } = link;
    const shown = target.kind === 'soft' ? { ...target, path: session.structure.paths.shown(target.path) } : target;
    yield { name, path, link: shown, ...(target.kind === 'hard' ? behind(group, path, name, link) : NOTHING) };
  }
}

const NOTHING = { object: undefined, datatype: undefined, problem: undefined };

/** The object of a hard link. An object that cannot be read becomes a problem, so that the others are still listed. */
function behind(group: Group, path: string, name: string, link: Link): Pick<Member, keyof typeof NOTHING> {
  try {
    const object = group.get(name);
    if (object) return { ...NOTHING, object };
    const { session, node } = handleOf(group);
    const leaf = session.now(session.structure.target(node, link));
    if (leaf?.kind !== 'datatype') return NOTHING;
    const own = new ObjectHandle(session, path, leaf);
    const attributes = new ObjectAttributes(own);
    return { ...NOTHING, datatype: { [handle]: own, node: leaf, dtype: committedType(leaf), attributes } };
  } catch (error) {
    return { ...NOTHING, problem: damage(error) };
  }
}

/** Returns an error about the contents of the file (FORMAT, UNSUPPORTED); rethrows any other. */
export function damage(error: unknown): H5LogError {
  if (isH5LogError(error, 'FORMAT') || isH5LogError(error, 'UNSUPPORTED')) return error;
  throw error;
}

/** What a file is, in the words of the original's h5ldump. */
export type FileKind =
  | 'HDF5'
  | 'HDF5-LogVOL'
  | 'NetCDF-4'
  | 'NetCDF classic'
  | 'NetCDF 64-bit offset'
  | 'NetCDF 64-bit data'
  | 'unknown';

const HDF5 = [0x89, 0x48, 0x44, 0x46, 0x0d, 0x0a, 0x1a, 0x0a];
const CLASSIC: Readonly<Record<number, FileKind>> = {
  1: 'NetCDF classic',
  2: 'NetCDF 64-bit offset',
  5: 'NetCDF 64-bit data',
};
/** Attributes that the NetCDF library leaves in its files. */
const NETCDF_ROOT = ['_NCProperties', '_nc3_strict'];
const NETCDF_DATASET = ['_Netcdf4Dimid', '_Netcdf4Coordinates'];

/**
 * What a file is: by its first bytes, and if it is HDF5 by what is in it.
 *
 * @example await fileKind('run.h5'); // 'HDF5-LogVOL'
 */
export async function fileKind(source: Source): Promise<FileKind> {
  const begins = await signature(source);
  return begins === 'HDF5' ? reading(source, async (file) => kindOf(file)) : begins;
}

/** The kind of a file that is open. */
export function kindOf(file: File): FileKind {
  if (logOf(file)) return 'HDF5-LogVOL';
  if (NETCDF_ROOT.some((name) => file.attributes.has(name))) return 'NetCDF-4';
  for (const { object } of membersOf(file)) {
    if (object instanceof Dataset && NETCDF_DATASET.some((name) => object.attributes.has(name))) return 'NetCDF-4';
  }
  return 'HDF5';
}

/** Runs `work`; if the file is not HDF5 but of a known kind, the error names that kind. */
export async function sayingKind<T>(source: Opened, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isH5LogError(error, 'FORMAT') || source instanceof File) throw error;
    const kind = await signature(source);
    if (kind === 'HDF5' || kind === 'unknown') throw error;
    throw new H5LogError('UNSUPPORTED', `${error.file ?? 'the file'} is ${kind}, not HDF5`, { cause: error });
  }
}

async function signature(source: Source): Promise<FileKind> {
  const isOurs = typeof source === 'string' || source instanceof URL || source instanceof Blob;
  const storage = storageOf(source);
  try {
    const bytes = new Uint8Array(8);
    const size = await storage.size();
    // Behind a user block the superblock is at 512, 1024, 2048 ...
    for (let at = 0; at + 8 <= size; at = at === 0 ? 512 : at * 2) {
      await storage.read(bytes, at);
      if (HDF5.every((byte, i) => bytes[i] === byte)) return 'HDF5';
      if (at === 0 && bytes[0] === 0x43 && bytes[1] === 0x44 && bytes[2] === 0x46)
        return CLASSIC[bytes[3] as number] ?? 'unknown';
    }
    return 'unknown';
  } finally {
    if (isOurs) await storage.close();
  }
}

function storageOf(source: Source): ByteStorage {
  if (typeof source === 'string' || source instanceof URL)
    return remoteUrl(source) === undefined ? openForReading(source) : httpStorage(source);
  return source instanceof Blob ? blobStorage(source) : source;
}
