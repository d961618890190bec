/** The native connector as a whole: what `#native` is on Node. In a browser it is loaded by `h5log/native`. */
export { rawReferences } from '../../hdf5/layouts/raw-references.ts';
export { type Library, loadLibrary, readyLibrary } from './library.ts';
export { createNative, openNative } from './opening.ts';
export { RegularData } from './regular-data.ts';

/** Nothing is missing here. */
export function provide(_engine: object): void {}
