// The link, link info and group info messages (HDF5 file format specification, IV.A.2.g, IV.A.2.c and IV.A.2.k).

import { ByteWriter, textLength } from '../format/byte-writer.ts';
import { type Cursor, textFrom } from '../format/cursor.ts';

/** Where a link leads. */
export type LinkTarget =
  | { readonly kind: 'hard'; readonly address: number }
  | { readonly kind: 'soft'; readonly path: string }
  | { readonly kind: 'external'; readonly file: string; readonly path: string }
  | { readonly kind: 'user'; readonly type: number; readonly data: Uint8Array };

interface LinkMessage {
  readonly name: string;
  /** Creation order, or -1 if the group does not track it. */
  readonly order: number;
  readonly target: LinkTarget;
  /** Position of a hard link's address in the message. */
  readonly addressAt: number;
}

export function parseLink(cursor: Cursor, addressSize: number): LinkMessage {
  const from = cursor.at;
  cursor.expect(1, 'version of the link message');
  const flags = cursor.u8();
  if (flags & 0xe0) cursor.fail(`link flags ${flags} are not known`);
  const type = flags & 8 ? cursor.u8() : 0;
  const order = flags & 4 ? cursor.u64() : -1;
  if (flags & 16) cursor.skip(1);
  const length = cursor.uint(1 << (flags & 3));
  if (length === 0) cursor.fail('link without a name');
  const name = cursor.string(length, 'link name');
  if (name.includes('\0')) cursor.fail('link name with a NUL');
  const addressAt = cursor.at - from;
  if (type === 0) return { name, order, target: { kind: 'hard', address: cursor.address(addressSize) }, addressAt };
  const data = cursor.take(cursor.u16(), 'link value');
  if (type === 1) return { name, order, target: { kind: 'soft', path: textFrom(data) }, addressAt };
  if (type === 64) return { name, order, target: parseExternal(cursor, data), addressAt };
  return { name, order, target: { kind: 'user', type, data: data.slice() }, addressAt };
}

/** Where a hard link leads, without looking at its name; null for links of another kind, and for those that need a closer look. */
export function hardLinkAddress(bytes: Uint8Array): number | null {
  const version = bytes[0];
  const flags = bytes[1] ?? 0;
  if (version !== 1 || flags & 0xe8) return null;
  const lengthAt = nameLengthAt(flags);
  const lengthSize = 1 << (flags & 3);
  if (lengthSize > 2) return null;
  const length = (bytes[lengthAt] ?? 0) | (lengthSize > 1 ? (bytes[lengthAt + 1] ?? 0) << 8 : 0);
  const at = lengthAt + lengthSize + length;
  if (length === 0 || at + 8 > bytes.length) return null;
  let address = 0;
  for (let i = 7; i >= 0; i--) address = address * 256 + (bytes[at + i] as number);
  return address <= Number.MAX_SAFE_INTEGER ? address : null;
}

/** Where the length of the name is in the message of a hard link: behind the creation order and the character set, if it has them. */
function nameLengthAt(flags: number): number {
  return 2 + (flags & 4 ? 8 : 0) + (flags & 16 ? 1 : 0);
}

/** Whether a hard link, of which {@link hardLinkAddress} knows where it leads, has a name of these bytes. */
export function isNamed(link: Uint8Array, name: Uint8Array): boolean {
  const flags = link[1] as number;
  const lengthAt = nameLengthAt(flags);
  const at = lengthAt + 1 + (flags & 1);
  const length = (link[lengthAt] as number) | (flags & 1 ? (link[lengthAt + 1] as number) << 8 : 0);
  if (length !== name.length) return false;
  // Names of one length often differ at the end only.
  for (let i = length - 1; i >= 0; i--) if (link[at + i] !== name[i]) return false;
  return true;
}

function parseExternal(cursor: Cursor, data: Uint8Array): LinkTarget {
  const [file, path] = textFrom(data.subarray(1)).split('\0');
  if (file === undefined || path === undefined) return cursor.fail('external link without a path');
  return { kind: 'external', file, path };
}

/** Encodes a link; the address of a hard link is the last 8 bytes. A creation order of -1 is left out. */
export function encodeLink(name: string, order: number, target: LinkTarget): Uint8Array {
  const length = textLength(name);
  const type = target.kind === 'hard' ? 0 : target.kind === 'soft' ? 1 : target.kind === 'external' ? 64 : target.type;
  const ascii = length === name.length;
  const lengthCode = length < 0x100 ? 0 : length < 0x10000 ? 1 : 2;
  const out = new ByteWriter(24 + length);
  out.u8(1).u8(lengthCode | (order >= 0 ? 4 : 0) | (type !== 0 ? 8 : 0) | (ascii ? 0 : 16));
  if (type !== 0) out.u8(type);
  if (order >= 0) out.u64(order);
  if (!ascii) out.u8(1);
  out.uint(length, 1 << lengthCode).text(name);
  if (target.kind === 'hard') return out.u64(target.address).done();
  const data =
    target.kind === 'soft'
      ? new TextEncoder().encode(target.path)
      : target.kind === 'external'
        ? new TextEncoder().encode(`\0${target.file}\0${target.path}\0`)
        : target.data;
  return out.u16(data.length).put(data).done();
}

/** Where the links of a group are: in its header (`heap` is UNDEFINED), or in dense storage. */
interface LinkInfo {
  readonly tracked: boolean;
  readonly indexed: boolean;
  /** The next creation order. */
  readonly nextOrder: number;
  /** Address of the fractal heap of dense storage, and of the version 2 B-tree that finds links in it by name. */
  readonly heap: number;
  readonly names: number;
}

export function parseLinkInfo(cursor: Cursor, addressSize: number): LinkInfo {
  cursor.expect(0, 'version of the link info message');
  const flags = cursor.u8();
  const nextOrder = flags & 1 ? cursor.u64() : 0;
  const heap = cursor.address(addressSize);
  const names = cursor.address(addressSize);
  return { tracked: (flags & 1) !== 0, indexed: (flags & 2) !== 0, nextOrder, heap, names };
}

/** A group info message without any estimates. */
export const GROUP_INFO = Uint8Array.of(0, 0);
