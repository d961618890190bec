import type { Link, ObjectNode } from '../hdf5/graph/object-node.ts';
import type { Names } from '../log/format/names.ts';
import type { OrdinaryDataset } from '../log/read/ordinary.ts';
import type { Io } from '../storage/io.ts';
import type { FileSession, Found } from './file-session.ts';

/** A file that knows those which its links name. */
export interface LinkedSession extends FileSession {
  /** The file that a link or a mapping names; null if there is none. */
  linked(name: string): LinkedSession | null;
  ordinary(node: ObjectNode, path: string): OrdinaryDataset;
}

interface Place extends Found {
  readonly session: LinkedSession;
}

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
    const link: Link | undefined = node.links.get(stored);
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
    const link: Link | undefined = node.links.get(storedIn(session, node, name));
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
  if (stored === name || group === structure.root || group.links.has(stored)) return stored;
  return group.links.has(name) ? name : stored;
}

export function storedPath(names: Names, path: string): string {
  return path
    .split('/')
    .map((name) => (name === '' || name === '.' ? name : names.stored(name)))
    .join('/');
}
