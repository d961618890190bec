import type { Dataset } from '../api/dataset.ts';
import { File } from '../api/file.ts';
import type { Group } from '../api/group.ts';
import { type H5LogError, isH5LogError } from '../base/errors.ts';
import type { DType } from '../dtype/model.ts';
import { committedType } from '../hdf5/graph/dataset-header.ts';
import type { Link, ObjectNode } from '../hdf5/graph/object-node.ts';
import type { Layout } from '../hdf5/messages/layout.ts';
import type { LinkTarget } from '../hdf5/messages/link.ts';
import type { Log } from '../log/log.ts';
import type { LogDataset } from '../log/post/dataset.ts';
import { driveAsync, type Io } from '../storage/io.ts';
import type { ByteStorage } from '../storage/storage.ts';

/*
 * What tools see beneath the public classes. Nothing else in the tools looks into a session.
 */

/** What can be opened for reading. */
export type Source = string | URL | Blob | ByteStorage;

/** Opens a file for reading, and closes it whatever happens. */
export async function reading<T>(source: Source, work: (file: File) => Promise<T>): Promise<T> {
  const file = await File.open(source);
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}

export const nameOf = (file: File): string => file.session.storage.name;

/** null for a file without a log. */
export const logOf = (file: File): Log | null => file.session.log;

/** The file itself and its subfiles. */
export const storagesOf = (file: File): readonly ByteStorage[] => file.session.storages;

export function drive<T>(file: File, io: Io<T>): Promise<T> {
  return driveAsync(file.session.storage, io);
}

/** The same for every name of an object. */
export const identityOf = (object: Group | Dataset): ObjectNode => object.node;

/** What a dataset is in the log; undefined for one that is not in it. */
export function logDatasetOf(dataset: Dataset): LogDataset | undefined {
  return dataset.session.logDataset(dataset.node, dataset.path);
}

/** Whether a dataset has no elements because its dataspace is NULL. Anchors have that as well, but stand for something. */
export function isNull(dataset: Dataset): boolean {
  if (logDatasetOf(dataset)) return false;
  return dataset.session.structure.dataset(dataset.node).space.kind === 'null';
}

/** Where the data of a regular dataset is. */
export function layoutOf(dataset: Dataset): Layout | null {
  return dataset.session.structure.dataset(dataset.node).layout;
}

/** A name in a group, and what it leads to. */
export interface Member {
  readonly name: string;
  readonly path: string;
  readonly link: LinkTarget;
  /** What a hard link leads to, unless that is a committed datatype. */
  readonly object: Group | Dataset | undefined;
  /** Of a committed datatype. */
  readonly dtype: DType | undefined;
  /** Why nobody can say what it leads to. */
  readonly problem: H5LogError | undefined;
}

/** The names in a group. Soft and external links are not followed: what they lead to has names of its own. */
export function* membersOf(group: Group): Iterable<Member> {
  const { session, node } = group;
  for (const name of group.keys()) {
    const link = node.links.get(session.storedIn(node, name));
    if (!link) continue;
    const path = `${group.path === '/' ? '' : group.path}/${name}`;
    const { target } = link;
    const shown = target.kind === 'soft' ? { ...target, path: session.structure.paths.shown(target.path) } : target;
    yield { name, path, link: shown, ...(target.kind === 'hard' ? behind(group, name, link) : NOTHING) };
  }
}

const NOTHING = { object: undefined, dtype: undefined, problem: undefined };

/** One damaged object must not hide the others. */
function behind(group: Group, name: string, link: Link): Pick<Member, 'object' | 'dtype' | 'problem'> {
  try {
    const object = group.get(name);
    if (object) return { ...NOTHING, object };
    const { session, node } = group;
    const leaf = session.now(session.structure.target(node, link));
    return { ...NOTHING, dtype: leaf?.kind === 'datatype' ? committedType(leaf) : undefined };
  } catch (error) {
    return { ...NOTHING, problem: damage(error) };
  }
}

/** An error that is about the contents of the file; others are thrown on. */
export function damage(error: unknown): H5LogError {
  if (isH5LogError(error, 'FORMAT') || isH5LogError(error, 'UNSUPPORTED')) return error;
  throw error;
}
