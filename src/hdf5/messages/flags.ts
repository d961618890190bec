// Flags of object header messages. Read as MESSAGE_FLAG.shared and so on.

export const constant = 0x01;
export const shared = 0x02;
export const unshareable = 0x04;
/** A program that does not know the message must not change the object. */
export const failIfUnknownOnWrite = 0x08;
/** A program that does not know it and changes the object sets wasUnknown. */
export const markIfUnknown = 0x10;
export const wasUnknown = 0x20;
export const shareable = 0x40;
export const failIfUnknown = 0x80;
