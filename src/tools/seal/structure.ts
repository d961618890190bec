import { type Link, type ObjectNode, OWN_ADDRESS } from '../../hdf5/graph/object-node.ts';
import type { NewLayout } from '../../hdf5/layouts/new-dataset.ts';
import { copyAttribute, deleteAttribute } from '../../hdf5/write/attributes.ts';
import { renameAttribute, renameLink } from '../../hdf5/write/rewrite.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { ANCHOR_ATTRIBUTES } from '../../log/format/anchor.ts';
import {
  COUNTS_ATTRIBUTE,
  LAYOUT,
  LOG_GROUP,
  LOG_NUMBER,
  LOGS_GROUP,
  type LogCounts,
  PUBLISH,
  recordsGroup,
  TOKEN,
} from '../../log/format/log-group.ts';
import { freedAttribute, isAlias, logNames, NUMBER, NUMBERS, shortestFirst } from '../../log/format/names.ts';
import { numbersOf } from '../../log/pointers.ts';
import type { LogDataset } from '../../log/post/dataset.ts';
import { putLayout } from '../../log/publish/publish.ts';

/** Makes an ordinary dataset of an anchor. `layout` is null if it stays as it is. */
export function sealAnchor(
  structure: Structure,
  node: ObjectNode,
  dataset: LogDataset,
  layout: NewLayout | null,
): void {
  putLayout(structure, node, dataset, dataset.shape, layout);
}

/** Takes the attributes of the log from an anchor, before users' attributes of the same names lose their underscore. */
export function takeAnchor(structure: Structure, node: ObjectNode): void {
  for (const name of ANCHOR_ATTRIBUTES) if (node.attributes.has(name)) deleteAttribute(structure, node, name);
}

/** Takes the numbers by which logged data refers to objects away from them. */
export function takeNumbers(structure: Structure): Map<number, ObjectNode> {
  const numbers = numbersOf(structure);
  for (const node of structure.loader.nodes.values())
    if (node.attributes.has(NUMBER))
      for (const name of [NUMBER, OWN_ADDRESS]) if (node.attributes.has(name)) deleteAttribute(structure, node, name);
  return numbers;
}

/** Takes the log out of the file. */
export function removeLog(structure: Structure, counts: LogCounts): void {
  const { root } = structure;
  const own = new Set([LOG_GROUP, LOGS_GROUP, recordsGroup(counts)]);
  for (const name of own) if (root.links.has(name)) structure.removeLink(root, name);
  for (const name of [COUNTS_ATTRIBUTE, TOKEN, NUMBERS, PUBLISH, LAYOUT])
    if (root.attributes.has(name)) deleteAttribute(structure, root, name);
  for (const node of structure.loader.nodes.values())
    if (node.attributes.has(LOG_NUMBER)) deleteAttribute(structure, node, LOG_NUMBER);
}

/** Gives every link and attribute the name that users know. */
export function showNames(structure: Structure): void {
  const all = new Set([structure.root]);
  for (const node of all) {
    for (const link of [...node.links.values()]) if (link.node) all.add(link.node);
    for (const stored of shortestFirst(node.links.keys())) {
      const link = node.links.get(stored) as Link;
      const path = link.target.kind === 'soft' ? shownPath(link.target.path) : null;
      const name = free(link.name, logNames.shownInside(link.name), node.links);
      if (name === link.name && (path === null || link.target.kind !== 'soft' || path === link.target.path)) continue;
      renameLink(structure, node, link.name, name, path);
    }
    for (const stored of shortestFirst(node.attributes.keys())) {
      const name = freedAttribute(stored);
      if (name === stored) continue;
      if (node.attributes.has(name)) {
        if (!isAlias(name)) continue;
        // Others know it by that name already, and may have changed it.
        copyAttribute(structure, node, name, stored);
        deleteAttribute(structure, node, name);
      }
      renameAttribute(structure, node, stored, name);
    }
  }
}

/** A name that another one has already, in a file of the original, stays as it is. */
function free(stored: string, name: string, taken: ReadonlyMap<string, unknown>): string {
  return taken.has(name) ? stored : name;
}

function shownPath(path: string): string {
  return path
    .split('/')
    .map((name) => logNames.shownInside(name))
    .join('/');
}
