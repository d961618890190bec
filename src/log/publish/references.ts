// Object references in the raw data of ordinary datasets. Objects move when they change; data that refers to them is then written
// anew, and gets the new addresses when the commit has assigned them.

import { pointersOf, readAddress, visitPointers } from '../../dtype/heap-ids.ts';
import type { DType } from '../../dtype/model.ts';
import { applyLate, lateLength } from '../../filter/apply.ts';
import type { FilterStep } from '../../filter/pipeline.ts';
import { putU64 } from '../../hdf5/format/byte-writer.ts';
import { type AddressSlot, FileExtent, type ObjectNode } from '../../hdf5/graph/object-node.ts';
import { withReferrers } from '../../hdf5/graph/references.ts';
import type { Structure } from '../../hdf5/write/structure.ts';

/** Finds the object that a reference in element bytes stands for; undefined: none. */
export type ObjectOf = (reference: number) => ObjectNode | undefined;

/** The references in elements, with the objects they lead to. */
export function referencesIn(dtype: DType, bytes: Uint8Array, count: number, objectOf: ObjectOf): AddressSlot[] {
  const slots: AddressSlot[] = [];
  if (pointersOf(dtype).length === 0) return slots;
  visitPointers(dtype, bytes, count, (at, { kind }) => {
    const reference = kind === 'object' ? readAddress(bytes, at) : 0;
    const target = reference === 0 ? undefined : objectOf(reference);
    if (target) slots.push({ at, target });
  });
  return slots;
}

/** Bytes that are appended with the commit, with the addresses that objects have then. An object that is gone gets a null reference. */
export function referringExtent(
  bytes: Uint8Array,
  slots: readonly AddressSlot[],
  filters: readonly FilterStep[] = [],
): FileExtent {
  return new FileExtent(lateLength(filters, bytes.length).length, () => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    for (const { at, target } of slots) putU64(view, at, isGone(target as ObjectNode) ? 0 : target.address);
    return [applyLate(bytes, filters)];
  });
}

function isGone({ linkCount }: ObjectNode): boolean {
  return linkCount === 0;
}

/** Objects that are loaded, by the addresses that the last commit gave them. */
function objectsByAddress(structure: Structure): Map<number, ObjectNode> {
  const objects = new Map<number, ObjectNode>();
  const all = new Set([structure.root, ...structure.loader.nodes.values()]);
  for (const node of all) {
    if (isGone(node)) continue;
    objects.set(node.address, node);
    for (const { node: target } of node.links.values()) if (target) all.add(target);
  }
  return objects;
}

/** Finds objects by the addresses that the last commit gave them. One that is not loaded never moved. */
export function objectFinder(structure: Structure): ObjectOf {
  const known = objectsByAddress(structure);
  const { loader, referrers } = structure;
  return (address) => {
    const found = known.get(address);
    if (found || loader.nodes.has(address) || !referrers?.has(address)) return found;
    return structure.now(loader.node(address));
  };
}

/** The datasets that refer to objects which a commit moves, and that it must write as well: `changed` are those it changes anyway. */
export function movedHolders(structure: Structure, changed: readonly ObjectNode[]): ObjectNode[] {
  const { holders, dirty, extents, loader } = structure;
  const isMoving = (target: ObjectNode | number, moving: ReadonlySet<ObjectNode>): boolean => {
    // An object that is not loaded does not move.
    const node = typeof target === 'number' ? loader.nodes.get(target) : target;
    return node !== undefined && (moving.has(node) || isGone(node));
  };
  const found = new Set<ObjectNode>();
  if (holders.size === 0) return [];
  for (let before = -1; found.size > before; ) {
    before = found.size;
    const moving = withReferrers([...dirty, ...changed, ...found], extents);
    for (const [holder, targets] of holders) {
      if (found.has(holder) || holder.linkCount === 0) continue;
      if (![...targets].some((target) => isMoving(target, moving))) continue;
      structure.settle(holder);
      found.add(holder);
    }
  }
  return [...found].filter((holder) => !changed.includes(holder));
}
