import type { Communicator } from '../comm/communicator.ts';
import { arrayKind, numberArray } from '../dtype/convert.ts';
import type { TypedArray } from '../dtype/model.ts';
import { ObjectNode } from '../hdf5/graph/object-node.ts';
import { draftDataset } from '../hdf5/layouts/new-dataset.ts';
import { anchorDataset, type createAnchor, describeAnchor, type NewAnchor } from '../log/format/anchor.ts';

// All ranks hold the whole structure, and rank 0 writes it. On the others the messages of a new dataset are deferred until
// something asks for them, which is rare.

/** Creates an anchor with deferred messages; undefined where they cannot wait: on rank 0, and for types that may be too large for a header. */
export function anchorMaker({ rank }: Communicator, { dtype }: NewAnchor): typeof createAnchor | undefined {
  return rank > 0 && typeof dtype === 'string' ? createAnchorDeferred : undefined;
}

const createAnchorDeferred: typeof createAnchor = (structure, parent, name, identity, anchor) => {
  const node = structure.create(parent, name, new ObjectNode('dataset'), []);
  node.defer(() => {
    const { drafts } = draftDataset(anchorDataset(anchor), structure.chunkFanout);
    for (const draft of drafts) structure.addMessage(node, draft);
    describeAnchor(structure, node, identity, anchor);
  });
  return node;
};

/** Characters, bytes and attributes up to which an object header surely has room. */
const SHORT = 10_000;
// biome-ignore lint/suspicious/noControlCharactersInRegex: attributes may hold them, all but NUL.
const PLAIN = /^[\x01-\x7e]*$/;

/** A copy of attributes that are sure to be accepted later; null where they have to be checked now. */
export function deferrable<V>(
  { rank }: Communicator,
  attributes: Readonly<Record<string, V>>,
): Readonly<Record<string, V>> | null {
  const names = Object.keys(attributes);
  if (rank === 0 || names.length > SHORT) return null;
  const copy: Record<string, V> = Object.create(null);
  for (const name of names) {
    if (name === '' || !isPlain(name)) return null;
    const value = attributes[name] as V;
    if (typeof value === 'number' || (typeof value === 'string' && isPlain(value))) copy[name] = value;
    else {
      const kind = arrayKind(value);
      if (!kind || (value as TypedArray).byteLength > SHORT) return null;
      const numbers = numberArray(kind, (value as TypedArray).length);
      numbers.set(value as never);
      copy[name] = numbers as V;
    }
  }
  return copy;
}

/** Short, and text in every encoding: neither NUL nor halves of surrogate pairs. */
function isPlain(text: string): boolean {
  return text.length <= SHORT && PLAIN.test(text);
}
