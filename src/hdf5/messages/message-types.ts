// The numbers of object header messages (HDF5 file format, section IV.A.2). Read as MESSAGE.layout and so on.

export const nil = 0x00;
export const dataspace = 0x01;
export const linkInfo = 0x02;
export const datatype = 0x03;
export const oldFill = 0x04;
export const fill = 0x05;
export const link = 0x06;
export const externalFiles = 0x07;
export const layout = 0x08;
export const bogus = 0x09;
export const groupInfo = 0x0a;
export const filters = 0x0b;
export const attribute = 0x0c;
export const comment = 0x0d;
export const oldTime = 0x0e;
export const sharedTable = 0x0f;
export const continuation = 0x10;
export const symbolTable = 0x11;
export const time = 0x12;
export const btreeK = 0x13;
export const driverInfo = 0x14;
export const attributeInfo = 0x15;
export const referenceCount = 0x16;
export const freeSpaceInfo = 0x17;
export const cacheImage = 0x18;
