// An object may say where its header is. Whoever copies it copies that as well, so that copies can be told from originals.

import { readUint32 } from '../../dtype/heap-ids.ts';
import { putAddress } from '../format/byte-writer.ts';
import type { HeaderMessage, ObjectNode } from './object-node.ts';

/** An attribute with the address of the header that it is in: one int64. */
export const OWN_ADDRESS = '_at';
/** Bytes of its message, at the end of which the address is, and where the class of its type is. */
const SIZE = 45;
const TYPE_AT = 13;
const INTEGER = 0x10;
/** Objects that are taken for what they say to be, although it is not said as h5log writes it. */
const claimed = new WeakSet<ObjectNode>();

/** The message in which an object says where it is, if it is as h5log writes it. */
function addressMessage({ attributes }: ObjectNode): HeaderMessage | undefined {
  const message = attributes.get(OWN_ADDRESS)?.message;
  return message && message.bytes === message.content && stated(message) >= 0 ? message : undefined;
}

/** NaN: another program has written it in its own way. */
function stated({ content }: HeaderMessage): number {
  if (content.length !== SIZE || content[TYPE_AT] !== INTEGER) return NaN;
  return readUint32(content, SIZE - 8) + readUint32(content, SIZE - 4) * 2 ** 32;
}

/** Whether an object says that it is where it is; undefined: it says nothing. Otherwise it is a copy, or a program that does not know the attribute has moved it. */
export function isAtHome(node: ObjectNode): boolean | undefined {
  const message = node.attributes.get(OWN_ADDRESS)?.message;
  return message && (stated(message) === node.address || claimed.has(node));
}

export function isStray(node: ObjectNode): boolean {
  return isAtHome(node) === false;
}

/** Whether an object comes before another one that has the same number: it has it, and the other is a copy. */
export function comesFirst(node: ObjectNode, other: ObjectNode | undefined): boolean {
  if (!other) return true;
  const isHome = isAtHome(node) === true;
  return isHome === (isAtHome(other) === true) ? node.origin < other.origin : isHome;
}

/** The message in which an object rightly says where it is, which a commit that moves it has to change. */
export function homeMessage(node: ObjectNode): HeaderMessage | undefined {
  return isAtHome(node) ? addressMessage(node) : undefined;
}

/** An object is what it says to be, wherever that was: the next commit that writes it says where it is then. */
export function claim(node: ObjectNode): void {
  if (addressMessage(node)) putOwnAddress(node);
  else claimed.add(node);
}

/** Puts the address of an object into its message, if it has one. */
export function putOwnAddress(node: ObjectNode): void {
  const message = addressMessage(node);
  if (!message) return;
  if (!message.owned) message.bytes = message.content = message.content.slice();
  message.owned = true;
  putAddress(message.bytes, SIZE - 8, node.address);
}
