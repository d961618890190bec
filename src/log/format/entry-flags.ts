// Flags of the entries of a table. Read as ENTRY.multi and so on.

export const multi = 0x01;
export const encoded = 0x04;
export const compressed = 0x08;
export const reference = 0x10;
export const record = 0x20;
