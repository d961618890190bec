// Bits of the configuration, element 3 of the counts. Read as CONFIG.subfiling and so on.

export const merge = 0x001;
export const encode = 0x002;
export const zip = 0x004;
export const share = 0x008;
export const passthru = 0x010;
export const aligned = 0x100;
export const subfiling = 0x200;
