import type { Link, ObjectNode } from '../hdf5/graph/object-node.ts';
import type { Structure } from '../hdf5/write/structure.ts';
import type { Names } from '../log/format/names.ts';
import type { Io } from '../storage/io.ts';

/** A structure and how names appear in it. */
interface Named {
  readonly structure: Structure;
  readonly names: Names;
  now<T>(io: Io<T>): T;
}

/** Follows a path of the user's from a group. */
export function findIn(file: Named, from: ObjectNode, path: string): ObjectNode | undefined {
  const { structure } = file;
  let node: ObjectNode | undefined = path.startsWith('/') ? structure.root : from;
  for (const name of path.split('/')) {
    if (name === '' || name === '.') continue;
    const link: Link | undefined = node.links.get(storedIn(file, node, name));
    node = link && file.now(structure.target(node, link));
    if (!node) return undefined;
  }
  return node;
}

/** The name in the file for a user's name in a group; one that the original left undoubled is found, too. */
export function storedIn({ structure, names }: Named, group: ObjectNode, name: string): string {
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
