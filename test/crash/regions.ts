// Raw data beside the structure: bytes that follow from the commit's number. Their names are the connector's, so `stateOf` leaves them out.
import { simpleSpace } from '../../src/hdf5/dataspace.ts';
import { Region } from '../../src/hdf5/object-node.ts';
import { File } from '../../src/index.ts';
import { memoryStorage } from '../../src/storage/memory.ts';
import { applyCommit, commitOf } from './states.ts';

const KEPT = 5;
const nameOf = (n: number): string => `_raw${n % KEPT}`;
const sizeOf = (n: number): number => 100 + ((n * 577) % 6000);

function content(n: number): Uint8Array {
  const bytes = new Uint8Array(sizeOf(n));
  for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 31 + n * 7 + (i >> 8)) & 0xff;
  return bytes;
}

/** A contiguous dataset with data of its own becomes part of the next commit, in the place of an older one. */
function addRegion(file: File, n: number): void {
  const { structure } = file.session;
  const { root } = structure;
  if (root.links.has(nameOf(n))) structure.removeLink(root, nameOf(n));
  const data = content(n);
  // In two parts, as gathered writes have.
  const region = new Region(data.length, () => [data.subarray(0, 99), data.subarray(99)]);
  structure.createDataset(root, nameOf(n), {
    dtype: 'uint8',
    space: simpleSpace([data.length]),
    layout: { kind: 'contiguous', data: region },
  });
}

/** Throws unless the image holds the data of the last commits up to `n`. */
export function expectRegions(file: File, n: number, image: Uint8Array): void {
  const { structure } = file.session;
  for (let i = Math.max(1, n - KEPT + 1); i <= n; i++) {
    const node = file.session.now(structure.lookup(structure.root, nameOf(i)));
    const layout = node && structure.dataset(node).layout;
    if (layout?.kind !== 'contiguous') throw new Error(`the data of commit ${i} is missing`);
    const at = structure.loader.file.base + layout.address;
    const found = image.subarray(at, at + sizeOf(i));
    if (Buffer.compare(found, content(i)) !== 0) throw new Error(`the data of commit ${i} is damaged`);
  }
}

/** Everything of commit `n`: structure and data. */
export function change(file: File, n: number): void {
  applyCommit(file, n);
  addRegion(file, n);
}

/** The commit whose state an image of a file is in; throws unless all of it is there. */
export function commitIn(image: Uint8Array): number {
  const file = File.openSync(memoryStorage(image));
  const n = commitOf(file);
  expectRegions(file, n, image);
  return n;
}
