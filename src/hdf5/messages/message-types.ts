// Type numbers of object header messages (HDF5 file format specification, IV.A.2), imported as MESSAGE. Constants of their own,
// not members of an object: bundlers put the numbers in their place.
// Not named, because nothing asks for them: 0x0d comment, 0x17 freeSpaceInfo, 0x0e oldTime.

export const nil = 0x00;
export const dataspace = 0x01;
export const linkInfo = 0x02;
export const datatype = 0x03;
export const oldFill = 0x04;
export const fill = 0x05;
export const link = 0x06;
export const externalFiles = 0x07;
export const layout = 0x08;
const bogus = 0x09;
export const groupInfo = 0x0a;
export const filters = 0x0b;
export const attribute = 0x0c;
export const sharedTable = 0x0f;
export const continuation = 0x10;
export const symbolTable = 0x11;
export const time = 0x12;
export const btreeK = 0x13;
export const driverInfo = 0x14;
export const attributeInfo = 0x15;
export const referenceCount = 0x16;
export const cacheImage = 0x18;

/** The most bytes of a message: its size has 16 bits. */
export const MAX_SIZE = 0xffff;

/** Whether a type of message is known. Types have no gaps; `bogus` is only known to the tests of libhdf5. */
export function isKnownMessage(type: number): boolean {
  return type <= cacheImage && type !== bogus;
}
