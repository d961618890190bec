import { h5py } from './h5py.ts';
import type { Peer } from './peer.ts';
import { plain } from './plain.ts';
import { pythonLacks } from './python.ts';

/** A peer, or what has to be installed for it. */
export type Found = Peer | { readonly name: string; readonly missing: string };

/** All peers of one process, the fastest first. */
export async function findPeers(): Promise<Found[]> {
  const lacks = await pythonLacks('h5py', 'python3-h5py');
  const ofPython = (['contiguous', 'chunked'] as const).map((layout): Found => {
    const peer = h5py(layout);
    return lacks === undefined ? peer : { name: peer.name, missing: lacks };
  });
  return [
    plain,
    ...ofPython,
    await ofPackage('h5wasm', async () => (await import('./h5wasm.ts')).wasm),
    await ofPackage('zarrita', async () => (await import('./zarrita.ts')).zarrita),
  ];
}

async function ofPackage(name: string, load: () => Promise<Peer>): Promise<Found> {
  try {
    return await load();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    return { name, missing: `the package ${name} is not installed; npm install` };
  }
}
