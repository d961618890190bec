import type { Communicator } from '../comm/communicator.ts';
import { arrayKind, numberArray } from '../dtype/convert.ts';
import type { TypedArray } from '../dtype/model.ts';
import { ObjectNode } from '../hdf5/graph/object-node.ts';
import { draftDataset } from '../hdf5/layouts/new-dataset.ts';
import { anchorDataset, type createAnchor, describeAnchor, type NewAnchor } from '../log/format/new-anchor.ts';

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

/** Bytes of an attribute that may be encoded before its dataset is there. */
const BRIEF = 1024;
/** Whoever looks for dimension scales, and for what has them, leaves datasets alone whose messages nobody has asked for. */
const OF_SCALES = /^(CLASS|NAME|DIMENSION_LIST|REFERENCE_LIST|_Netcdf4.*)$/;

/** Whether attributes are short plain texts, numbers and typed arrays. */
export function areBrief(attributes: Readonly<Record<string, unknown>>): boolean {
  for (const name of Object.keys(attributes)) {
    const value = attributes[name];
    if (!isPlainName(name) || !isBrief(value)) return false;
  }
  return true;
}

function isBrief(value: unknown): boolean {
  if (typeof value === 'number') return true;
  if (typeof value === 'string') return value.length < BRIEF && isPlain(value);
  const length = arrayKind(value) ? (value as TypedArray).byteLength : 0;
  return length > 0 && length < BRIEF;
}

/** Names that were found to be plain: those of attributes are the same for hundreds of datasets. */
const plainNames = new Set<string>();
const MOST_NAMES = 1000;
const LONGEST_NAME = 64;

function isPlainName(name: string): boolean {
  if (plainNames.has(name)) return true;
  if (name === '' || !isPlain(name) || OF_SCALES.test(name)) return false;
  if (plainNames.size < MOST_NAMES && name.length <= LONGEST_NAME) plainNames.add(name);
  return true;
}

/** Short, and text in every encoding: neither NUL nor halves of surrogate pairs. */
function isPlain(text: string): boolean {
  return text.length <= SHORT && PLAIN.test(text);
}
