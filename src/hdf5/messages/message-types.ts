// Type numbers and flags of object header messages (HDF5 file format specification, IV.A.1 and IV.A.2).

/** The type number of each header message. */
export const MESSAGE = {
  nil: 0x00,
  dataspace: 0x01,
  linkInfo: 0x02,
  datatype: 0x03,
  oldFill: 0x04,
  fill: 0x05,
  link: 0x06,
  externalFiles: 0x07,
  layout: 0x08,
  bogus: 0x09,
  groupInfo: 0x0a,
  filters: 0x0b,
  attribute: 0x0c,
  comment: 0x0d,
  oldTime: 0x0e,
  sharedTable: 0x0f,
  continuation: 0x10,
  symbolTable: 0x11,
  time: 0x12,
  btreeK: 0x13,
  driverInfo: 0x14,
  attributeInfo: 0x15,
  referenceCount: 0x16,
  freeSpaceInfo: 0x17,
  cacheImage: 0x18,
} as const;

/** Whether a type of message is known. Types have no gaps; `bogus` is only known to the tests of libhdf5. */
export function isKnownMessage(type: number): boolean {
  return type <= MESSAGE.cacheImage && type !== MESSAGE.bogus;
}

/** Bits of the flags that stand before each message. */
export const MESSAGE_FLAG = {
  constant: 0x01,
  shared: 0x02,
  unshareable: 0x04,
  /** A program that does not know the message must not change the object. */
  failIfUnknownOnWrite: 0x08,
  /** A program that does not know the message and changes the object sets `wasUnknown`. */
  markIfUnknown: 0x10,
  wasUnknown: 0x20,
  shareable: 0x40,
  /** A program that does not know the message must not open the object. */
  failIfUnknown: 0x80,
} as const;
