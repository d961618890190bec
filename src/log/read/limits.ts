/** Pieces closer together than this in the file are read together. */
export const GAP = 16 * 1024;
/** At most this much is read at once into memory of our own. */
export const WINDOW = 8 * 2 ** 20;
/** Windows up to this size go through the page cache, for many small reads in the same area. */
export const CACHED = 16 * 1024;
