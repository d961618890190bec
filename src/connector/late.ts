import type { Communicator } from '../comm/communicator.ts';
import { arrayKind, numberArray } from '../dtype/convert.ts';
import type { TypedArray } from '../dtype/model.ts';
import { ObjectNode } from '../hdf5/graph/object-node.ts';
import { draftDataset } from '../hdf5/layouts/new-dataset.ts';
import { anchorDataset, type createAnchor, describeAnchor, type NewAnchor } from '../log/format/anchor.ts';

// All ranks keep the whole structure, and the first one writes it. What the others know of a new dataset is made when somebody
// asks for it, and mostly nobody does.

const LATE = ['attributes', 'otherMessages'] as const;
type Work = () => void;
const waiting = new WeakMap<ObjectNode, Work[]>();

/** Adds messages to an object when somebody looks at them for the first time. */
export function later(node: ObjectNode, add: Work): void {
  const works = waiting.get(node);
  if (works) {
    works.push(add);
    return;
  }
  const list = [add];
  waiting.set(node, list);
  for (const name of LATE) {
    const value: unknown = node[name];
    const get = (): unknown => {
      if (waiting.delete(node)) for (const work of list) work();
      return value;
    };
    Object.defineProperty(node, name, { get, configurable: true });
  }
}

/** How a dataset is made whose messages can wait. Those of types other than numbers may be too large, which has to be said at once. */
export function anchorMaker({ rank }: Communicator, { dtype }: NewAnchor): typeof createAnchor | undefined {
  return rank > 0 && typeof dtype === 'string' ? createAnchorLater : undefined;
}

const createAnchorLater: typeof createAnchor = (structure, parent, name, id, anchor) => {
  const node = structure.create(parent, name, new ObjectNode('dataset'), []);
  later(node, () => {
    const { drafts } = draftDataset(anchorDataset(anchor), structure.chunkFanout);
    for (const draft of drafts) structure.addMessage(node, draft);
    describeAnchor(structure, node, id, anchor);
  });
  return node;
};

/** Characters, bytes and attributes up to which an object header surely has room. */
const SHORT = 10_000;
// biome-ignore lint/suspicious/noControlCharactersInRegex: attributes may hold them, all but NUL.
const PLAIN = /^[\x01-\x7e]*$/;

/** A copy of attributes that can wait: it is sure that all of them can be set, whenever that will be. Otherwise null. */
export function copyOf<V>(
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
