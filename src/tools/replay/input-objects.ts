import { H5LogError } from '../../base/errors.ts';
import type { FileSession } from '../../connector/file-session.ts';
import { type Attribute, type ObjectNode, OWN_ADDRESS } from '../../hdf5/graph/object-node.ts';
import type { LinkTarget } from '../../hdf5/messages/link.ts';
import { ANCHOR_ATTRIBUTES } from '../../log/format/anchor.ts';
import {
  COUNTS_ATTRIBUTE,
  LAYOUT,
  LOG_GROUP,
  LOG_NUMBER,
  LOGS_GROUP,
  PUBLISH,
  recordsGroup,
  TOKEN,
} from '../../log/format/log-group.ts';
import { freedAttribute, isAlias, NUMBER, NUMBERS, shortestFirst } from '../../log/format/names.ts';
import type { LogDataset } from '../../log/post/dataset.ts';
import type { Io } from '../../storage/io.ts';

/** A link for the output; `to` is the object of a hard link. */
export interface InputLink {
  readonly name: string;
  readonly target: LinkTarget;
  readonly to: InputObject | null;
}

/** An object of the input, with the names that users see. */
export interface InputObject {
  readonly node: ObjectNode;
  readonly path: string;
  readonly links: InputLink[];
  readonly attributes: ReadonlyMap<string, Attribute>;
  /** The log's view of the dataset; undefined for groups, datatypes and ordinary datasets. */
  readonly logged: LogDataset | undefined;
}

/** Every object that can be reached by hard links, each once, groups before their members. The log's own objects are left out. */
export function* inputObjects(session: FileSession): Io<InputObject[]> {
  const { structure, log } = session;
  const { root, loader } = structure;
  const found = new Map<ObjectNode, InputObject>();
  function* visit(node: ObjectNode, path: string): Io<InputObject> {
    const known = found.get(node);
    if (known) return known;
    const logged = log && node.kind === 'dataset' ? yield* log.dataset(node, path) : undefined;
    const made = { node, path, links: [], attributes: attributesOf(session, node, logged !== undefined), logged };
    found.set(node, made);
    return made;
  }
  const own = log ? [LOG_GROUP, LOGS_GROUP, recordsGroup(log.main.counts)] : [];
  yield* visit(root, '/');
  for (const group of found.values()) {
    const links = [...group.node.links.values()].filter(({ name }) => group.node !== root || !own.includes(name));
    const names = shownNames(
      links.map(({ name }) => name),
      session.names.shownInside,
    );
    for (const link of links) {
      const name = names.get(link.name) ?? link.name;
      const path = `${group.path === '/' ? '' : group.path}/${name}`;
      const node = link.target.kind === 'hard' ? yield* loader.follow(link) : null;
      if (link.target.kind === 'hard' && !node)
        throw new H5LogError('FORMAT', `${path} leads to no object`, { object: path });
      const to = node && (yield* visit(node, path));
      group.links.push({ name, target: shownTarget(session, link.target), to });
    }
  }
  return [...found.values()];
}

/** Names without the underscore that the log adds. A name keeps it if another object is shown by the name without it. */
function shownNames(stored: readonly string[], shownOf: (name: string) => string): Map<string, string> {
  const taken = new Set<string>();
  const shown = new Map<string, string>();
  for (const name of shortestFirst(stored)) {
    const plain = shownOf(name);
    const free = taken.has(plain) ? name : plain;
    taken.add(free);
    shown.set(name, free);
  }
  return shown;
}

/** Of the log itself. */
const ROOT_ATTRIBUTES: readonly string[] = [COUNTS_ATTRIBUTE, TOKEN, NUMBERS, PUBLISH, LAYOUT];

function attributesOf(session: FileSession, node: ObjectNode, isAnchor: boolean): ReadonlyMap<string, Attribute> {
  const { log, structure } = session;
  const isOwn = (name: string): boolean =>
    (isAnchor && ANCHOR_ATTRIBUTES.has(name)) ||
    (log !== null &&
      (name === NUMBER ||
        name === OWN_ADDRESS ||
        name === LOG_NUMBER ||
        (node === structure.root && ROOT_ATTRIBUTES.includes(name))));
  // Where others see the file, they know an attribute by the user's name, and may have changed it. It keeps its place.
  const aliasOf = (name: string): Attribute | undefined =>
    log !== null && name.startsWith('__') && isAlias(name.slice(1)) ? node.attributes.get(name.slice(1)) : undefined;
  const all = [...node.attributes.values()].filter(({ name }) => !isOwn(name));
  const aliases = new Set(all.flatMap(({ name }) => aliasOf(name) ?? []));
  const stored = all
    .filter((attribute) => !aliases.has(attribute))
    .map((attribute) => aliasOf(attribute.name) ?? attribute);
  const names = stored.map(({ name }) => name);
  const shown = shownNames(names, log ? freedAttribute : (name) => name);
  return new Map(stored.map((attribute) => [shown.get(attribute.name) ?? attribute.name, attribute]));
}

/** Soft links in the file hold stored names; the output gets those that users see. */
function shownTarget({ structure }: FileSession, target: LinkTarget): LinkTarget {
  return target.kind === 'soft' ? { kind: 'soft', path: structure.paths.shown(target.path) } : target;
}
