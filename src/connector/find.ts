import { linkedFile, openSource, realFile } from '#platform';
import { formatError, H5LogError, inFile } from '../base/errors.ts';
import { solo } from '../comm/solo.ts';
import { NotLoaded } from '../hdf5/format/file-bytes.ts';
import type { Link, ObjectNode } from '../hdf5/graph/object-node.ts';
import type { Names } from '../log/format/names.ts';
import type { OrdinaryDataset } from '../log/read/ordinary.ts';
import type { VirtualSource } from '../log/read/virtual.ts';
import { driveSync, type Io } from '../storage/io.ts';
import type { FileSession, Found } from './file-session.ts';
import { OneRank } from './ranks.ts';
import type { SessionOptions } from './state.ts';

/** A file that knows those which its links name. */
export interface LinkedSession extends FileSession {
  /** The file that a link or a mapping names; null if there is none. */
  linked(name: string): LinkedSession | null;
  ordinary(node: ObjectNode, path: string): OrdinaryDataset;
}

interface Place extends Found {
  readonly session: LinkedSession;
}

/** Virtual datasets whose shapes depend on one another. */
const MAX_NESTED = 16;
/** Soft and external links that are followed on the way to an object, as in libhdf5. */
const MAX_LINKS = 16;

/** Follows a path of the user's from a group, also into other files. */
export function findIn(
  session: LinkedSession,
  from: ObjectNode,
  path: string,
  followed = { links: 0 },
): Place | undefined {
  const start = { session, node: path.startsWith('/') ? session.structure.root : from, path: '' };
  return walk(start, path, false, followed);
}

/** `isStored`: the path is one of the file, whose names a log may have escaped. */
function walk(start: Place, path: string, isStored: boolean, followed: { links: number }): Place | undefined {
  let place: Place | undefined = start;
  for (const name of path.split('/')) {
    if (name === '' || name === '.') continue;
    const { session, node }: Place = place;
    const stored: string = isStored && session === start.session ? name : storedIn(session, node, name);
    const link: Link | undefined = node.link(stored);
    if (!link && node.unread && !node.unread.absent.has(stored)) throw new NotLoaded();
    place = link && behind(place, name, link, followed);
    if (!place) return undefined;
  }
  return place;
}

/** What a link of a group leads to. `followed` counts links over the whole path: their paths contain others. */
export function behind(place: Place, name: string, link: Link, followed = { links: 0 }): Place | undefined {
  const { session, node } = place;
  const { target } = link;
  const path = `${place.path}/${name}`;
  if (target.kind === 'hard') {
    const child = session.now(session.structure.loader.follow(link));
    return child ? { session, node: child, path } : undefined;
  }
  if (target.kind === 'user' || followed.links++ >= MAX_LINKS) return undefined;
  const absolute = target.path.startsWith('/');
  let found: Place | undefined;
  if (target.kind === 'soft')
    found = walk({ session, node: absolute ? session.structure.root : node, path: '' }, target.path, true, followed);
  else {
    const other = session.linked(target.file);
    found = other ? findIn(other, other.structure.root, target.path, followed) : undefined;
  }
  // In another file an object has the path that it has there.
  return found?.session === session ? { ...found, path } : found;
}

/** Loads what is on the way of a user's path from the root, as far as it stays in the file. Gives the object at its end. */
export function* reach(session: FileSession, path: string): Io<ObjectNode | undefined> {
  const { structure } = session;
  let node: ObjectNode | undefined = structure.root;
  for (const name of path.split('/')) {
    if (name === '' || name === '.') continue;
    const link: Link | undefined = yield* structure.loader.link(node, storedIn(session, node, name));
    node = link && (yield* structure.target(node, link));
    if (!node) return undefined;
  }
  return node;
}

/** The name in the file for a user's name in a group; one that the original left undoubled is found, too. */
export function storedIn(
  { structure, names }: Pick<FileSession, 'structure' | 'names'>,
  group: ObjectNode,
  name: string,
): string {
  const stored = names.stored(name);
  if (stored === name || group === structure.root || group.link(stored)) return stored;
  // What has two underscores there is shown by another name: that of which it is the doubled form.
  return names.shownInside(name) === name && group.link(name) ? name : stored;
}

export function storedPath(names: Names, path: string): string {
  return path
    .split('/')
    .map((name) => (name === '' || name === '.' ? name : names.stored(name)))
    .join('/');
}

/** What a virtual dataset of a file shows; null if it is missing. */
export function virtualSource(session: LinkedSession, file: string, name: string): VirtualSource | null {
  const other = file === '.' ? session : session.linked(file);
  const found = other && findIn(other, other.structure.root, name);
  if (found?.node.kind !== 'dataset') return null;
  const { session: owner, node, path } = found;
  const dataset = owner.logDataset(node, path) ?? owner.ordinary(node, path);
  return { dataset, storage: owner === session ? null : owner.storage };
}

// ---------------------------------------------------------------- other files

/** A file and those that its links and virtual datasets name, each open once, whichever of them names it. */
export class LinkedFiles {
  /** By their real paths. */
  readonly #sessions = new Map<string, LinkedSession>();
  #nested = 0;

  /** Opens a virtual dataset, whose shape may depend on others. */
  nested<T>(open: () => T): T {
    if (this.#nested >= MAX_NESTED) throw formatError('virtual datasets lead to one another without end');
    this.#nested++;
    try {
      return open();
    } finally {
      this.#nested--;
    }
  }

  /** Every file but the first. */
  get others(): LinkedSession[] {
    return [...this.#sessions.values()].slice(1);
  }

  /** The file that `from`, a file of these, names; null if there is none. It is open for reading only. */
  open(
    from: LinkedSession,
    options: SessionOptions,
    name: string,
    start: (options: SessionOptions) => Io<LinkedSession>,
  ): LinkedSession | null {
    const { path, openExternal } = options;
    refuse(options, name);
    if (this.#sessions.size === 0) this.#sessions.set(path === null ? '' : realFile(path), from);
    const place = openExternal || path === null ? name : linkedFile(path, name);
    if (place === null) return null;
    const real = openExternal ? name : realFile(place);
    const known = this.#sessions.get(real);
    if (known) return known;
    const storage = openExternal?.(name);
    if (storage === null) return null;
    const source = storage ? { storage, path: null, target: null, subfiles: null } : openSource(place, false, true);
    const own = { asOf: undefined, newSubfiles: 0, mpiIo: false, openSubfiles: new Map(), ranks: new OneRank(solo()) };
    try {
      const session = driveSync(source.storage, start({ ...options, ...source, ...own }));
      this.#sessions.set(real, session);
      return session;
    } catch (error) {
      source.storage.blocking?.close();
      throw inFile(error, place);
    }
  }
}

/** Throws if a file may not open others, or cannot. */
export function refuse({ path, external, openExternal }: SessionOptions, name: string): void {
  if (!external) throw new H5LogError('UNSUPPORTED', `the file ${name}, which external: false keeps closed`);
  if (path === null && !openExternal)
    throw new H5LogError('UNSUPPORTED', `the file ${name}, which only a file that was opened by its path can find`);
}
