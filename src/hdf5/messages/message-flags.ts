// Bits of the flags that stand before each header message (HDF5 file format specification, IV.A.1), imported as MESSAGE_FLAG.
// Not named, because nothing asks for them: 0x40 shareable, 0x04 unshareable.

export const constant = 0x01;
export const shared = 0x02;
/** A program that does not know the message must not change the object. */
export const failIfUnknownOnWrite = 0x08;
/** A program that does not know the message and changes the object sets `wasUnknown`. */
export const markIfUnknown = 0x10;
export const wasUnknown = 0x20;
/** A program that does not know the message must not open the object. */
export const failIfUnknown = 0x80;
