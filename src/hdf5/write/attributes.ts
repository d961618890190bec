import type { DType } from '../../dtype/model.ts';
import { ObjectNode, type Relocatable } from '../graph/object-node.ts';
import { draftType } from '../layouts/new-dataset.ts';
import { encodeTypedAttribute } from '../messages/attribute.ts';
import type { Dataspace } from '../messages/dataspace.ts';
import { encodeSharedObject, SHARED_ADDRESS_AT } from '../read/shared-messages.ts';
import type { Structure } from './structure.ts';

/** A committed datatype: one that datasets and attributes can share. */
export function createDatatype(structure: Structure, parent: ObjectNode, name: string, dtype: DType): ObjectNode {
  return structure.create(parent, name, new ObjectNode('datatype'), [draftType(dtype, null)]);
}

/**
 * An attribute whose value is encoded already and says itself what it points to. Its type is one as the file describes it, or a
 * committed one.
 */
export function setEncodedAttribute(
  structure: Structure,
  node: ObjectNode,
  name: string,
  type: Uint8Array | ObjectNode,
  space: Dataspace,
  value: Relocatable,
): void {
  const committed = type instanceof ObjectNode ? type : null;
  if (committed) structure.checkMutable(committed); // its count of uses grows
  const described = type instanceof ObjectNode ? encodeSharedObject(type.address) : type;
  const { body, typeAt, dataAt } = encodeTypedAttribute(name, described, committed !== null, space, value.bytes);
  const targets = value.targets.map(({ at, node: target }) => ({ at: at + dataAt, node: target }));
  if (committed) targets.push({ at: typeAt + SHARED_ADDRESS_AT, node: committed });
  const heap = value.heap.map(({ at, content }) => ({ at: at + dataAt, content }));
  structure.putAttribute(node, name, body, targets, heap, committed);
}
