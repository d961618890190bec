import { H5LogError } from '../../base/errors.ts';
import { draftDataset, type NewDataset } from '../graph/dataset-header.ts';
import { HeaderMessage, type ObjectNode } from '../graph/object-node.ts';
import { announce, renounce } from '../graph/references.ts';
import type { MessageDraft } from '../layouts/new-dataset.ts';
import * as MESSAGE_FLAG from '../messages/flags.ts';
import * as MESSAGE from '../messages/message-types.ts';
import { provisionalHeapIds } from '../read/global-heap.ts';
import { loosen } from './object-header.ts';
import type { Structure } from './structure.ts';

/** What a dataset is given besides the type it has. */
export type Rewritten = Omit<NewDataset, 'dtype' | 'plain'>;

/**
 * Gives an existing dataset another shape, fill value, layout and other filters. Its type, its attributes and everything that
 * points to it stay as they are.
 */
export function rewriteDataset(structure: Structure, node: ObjectNode, dataset: Rewritten): void {
  const { dtype } = structure.dataset(node);
  const { drafts, regions } = draftDataset({ ...dataset, dtype }, structure.chunkFanout);
  structure.touch(node);
  for (const draft of drafts) if (draft.type !== MESSAGE.datatype) put(structure, node, draft);
  for (const region of regions) structure.regions.add(region);
}

function put(structure: Structure, node: ObjectNode, draft: MessageDraft): void {
  const known = node.message(draft.type);
  if (known) replaceMessage(structure, node, draft.type, draft.bytes);
  const message = known ?? new HeaderMessage(node, draft.type, draft.flags, 0, draft.bytes, true);
  message.targets = draft.targets ?? [];
  message.heap = draft.heap ?? [];
  provisionalHeapIds(message);
  announce(message);
  if (known) return;
  message.changed = structure.tick;
  node.rest.push(message);
  node.hot.add(message);
}

/** Replaces a message of the rest, for example a datatype by the one that the input has. */
export function replaceMessage(structure: Structure, node: ObjectNode, type: number, bytes: Uint8Array): void {
  const message = node.message(type);
  if (!message) throw new H5LogError('UNSUPPORTED', `the object has no message of type ${type}`);
  structure.refuseShared(message);
  structure.touch(node);
  loosen(message);
  renounce(message);
  Object.assign(message, {
    bytes,
    content: bytes,
    owned: true,
    targets: [],
    heap: [],
    changed: structure.tick,
    flags: message.flags & ~MESSAGE_FLAG.shared,
  });
}
