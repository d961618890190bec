// The attribute message and the attribute info message (HDF5 file format specification, IV.A.2.m and IV.A.2.v).

import type { FullType } from '../../dtype/model.ts';
import { Cursor, textFrom } from '../format/cursor.ts';
import { type Dataspace, parseDataspace } from './dataspace.ts';
import { mayRefer, parseDatatype } from './datatype.ts';

/** A decoded attribute message. Positions count from the start of the message. */
export interface AttributeMessage {
  readonly name: string;
  /** The type, or the position of a record that points to a shared one. */
  readonly type: FullType | { readonly sharedAt: number; readonly sharedSize: number };
  readonly space: Dataspace | { readonly sharedAt: number; readonly sharedSize: number };
  readonly dataAt: number;
}

/** The name alone, without parsing type and space. */
export function attributeName(cursor: Cursor): string {
  return textFrom(attributeNameBytes(cursor));
}

/** The name as it is encoded. */
export function attributeNameBytes(cursor: Cursor): Uint8Array {
  const version = cursor.u8();
  if (version < 1 || version > 3) cursor.fail(`attribute version ${version} is not known`);
  cursor.skip(1);
  const nameSize = cursor.u16();
  cursor.skip(version === 3 ? 5 : 4);
  return trimName(cursor.take(nameSize, 'attribute name'));
}

function trimName(bytes: Uint8Array): Uint8Array {
  const stop = bytes.indexOf(0);
  return stop < 0 ? bytes : bytes.subarray(0, stop);
}

/** Parses an attribute message of version 1 (parts padded to 8 bytes), 2 or 3 (with a character set). */
export function parseAttribute(cursor: Cursor, lengthSize: number): AttributeMessage {
  const from = cursor.at;
  const version = cursor.u8();
  if (version < 1 || version > 3) cursor.fail(`attribute version ${version} is not known`);
  const second = cursor.u8();
  const flags = version === 1 ? 0 : second; // reserved in version 1
  const nameSize = cursor.u16();
  const typeSize = cursor.u16();
  const spaceSize = cursor.u16();
  if (version === 3) cursor.skip(1);
  const padded = (size: number): number => (version === 1 ? Math.ceil(size / 8) * 8 : size);
  const name = textFrom(trimName(cursor.take(padded(nameSize), 'attribute name').subarray(0, nameSize)));
  const typeAt = cursor.need(padded(typeSize), 'attribute type');
  const spaceAt = cursor.need(padded(spaceSize), 'attribute dataspace');
  const part = (at: number, size: number): Cursor => new Cursor(cursor.bytes, cursor.base, at, at + size);
  return {
    name,
    type: flags & 1 ? { sharedAt: typeAt - from, sharedSize: typeSize } : parseDatatype(part(typeAt, typeSize)),
    space:
      flags & 2
        ? { sharedAt: spaceAt - from, sharedSize: spaceSize }
        : parseDataspace(part(spaceAt, spaceSize), lengthSize),
    dataAt: cursor.at - from,
  };
}

/** Whether an attribute may refer to objects, by its value or because its type is elsewhere; false only if it surely does not. */
export function attributeMayRefer(bytes: Uint8Array, from: number, to: number): boolean {
  const version = bytes[from] as number;
  if (from + 9 > to || version < 1 || version > 3) return true;
  // In version 1 parts are padded, and none is shared.
  if (version > 1 && bytes[from + 1] !== 0) return true;
  const nameSize = (bytes[from + 2] as number) | ((bytes[from + 3] as number) << 8);
  return mayRefer(bytes, from + (version === 1 ? 8 + Math.ceil(nameSize / 8) * 8 : version + 6 + nameSize), to);
}

/** Where the attributes of an object are: in its header (`heap` is UNDEFINED), or in dense storage. */
interface AttributeInfo {
  readonly tracked: boolean;
  readonly indexed: boolean;
  /** The next creation order. */
  readonly nextOrder: number;
  /** Address of the fractal heap of dense storage, and of the version 2 B-tree that finds attributes in it by name. */
  readonly heap: number;
  readonly names: number;
}

export function parseAttributeInfo(cursor: Cursor, addressSize: number): AttributeInfo {
  cursor.expect(0, 'version of the attribute info message');
  const flags = cursor.u8();
  const nextOrder = flags & 1 ? cursor.u16() : 0;
  const heap = cursor.address(addressSize);
  const names = cursor.address(addressSize);
  return { tracked: (flags & 1) !== 0, indexed: (flags & 2) !== 0, nextOrder, heap, names };
}
