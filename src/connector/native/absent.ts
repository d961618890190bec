import { H5LogError } from '../../base/errors.ts';
import type * as Engine from './engine.ts';

// What `#native` is in a browser: pages that never open ordinary HDF5 do not load the code for it.

type Native = typeof Engine;
let engine: Native | null = null;

/** From then on it is there. */
export function provide(given: Native): void {
  engine = given;
}

function present(): Native {
  if (engine) return engine;
  throw new H5LogError('UNSUPPORTED', 'ordinary HDF5 needs h5wasm; import h5log/native first');
}

export const loadLibrary: Native['loadLibrary'] = (from) =>
  engine ? engine.loadLibrary(from) : new Promise((_resolve, reject) => reject(asError(present)));

export const readyLibrary: Native['readyLibrary'] = () => present().readyLibrary();
export const createNative: Native['createNative'] = (...given) => present().createNative(...given);
export const openNative: Native['openNative'] = (...given) => present().openNative(...given);

/** Without it nobody knows which objects the data refers to, so that none of them may move. */
export const rawReferences: Native['rawReferences'] = function* (...given) {
  return engine ? yield* engine.rawReferences(...given) : 'references, which need h5log/native to be found';
};

export class RegularData {
  constructor(owner: ConstructorParameters<Native['RegularData']>[0]) {
    const { RegularData: Present } = present();
    // biome-ignore lint/correctness/noConstructorReturn: it stands for the class that came later
    return new Present(owner);
  }
}

function asError(work: () => unknown): unknown {
  try {
    work();
    return undefined;
  } catch (error) {
    return error;
  }
}
