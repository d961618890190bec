import { readFileSync } from 'node:fs';
import { File } from '../../src/api/file.ts';
import { sessionOf } from '../../src/api/handle.ts';
import type { CreateOptions } from '../../src/connector/options.ts';
import { T } from '../../src/dtype/construct.ts';
import { FileExtent } from '../../src/hdf5/graph/object-node.ts';
import { chunked, compact, contiguous, unallocated, virtual } from '../../src/hdf5/layouts/new-dataset.ts';
import { simpleSpace } from '../../src/hdf5/messages/dataspace.ts';
import { select } from '../../src/space/select.ts';
import { memoryStorage } from '../../src/storage/memory.ts';
import { full } from '../seed.ts';

/** A good file of a few KiB that the tests damage. */
export interface Sample {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Written by libhdf5 (see make.py beside them) and by the original. */
const STORED = [
  'earliest',
  'references',
  'raw-references',
  'chunk-indexes',
  'dense-links',
  'dense-attributes',
  'huge-attribute',
  'types',
  'shared',
  'four-byte-sizes',
  'superblock-1',
  'user-block',
  'empty_1r',
  'memsel_1r',
];

export function stored(name: string): Uint8Array {
  return new Uint8Array(readFileSync(new URL(`../fixtures/hostile/${name}.h5`, import.meta.url)));
}

/** All kinds of files: groups, headers, links, attributes and datasets of every age. */
export function samples(): Sample[] {
  return [
    { name: 'ours', bytes: ours() },
    { name: 'ours, after many commits', bytes: oursInBlocks() },
    { name: 'ours, appended to earliest', bytes: appended() },
    { name: 'ours, logs of datasets', bytes: numbered({ logs: 'dataset' }) },
    { name: 'ours, classic tables', bytes: numbered({ logs: 'group', table: { format: 'classic' } }) },
    { name: 'ours, classic tables, big-endian', bytes: numbered({ table: { format: 'classic', bigEndian: true } }) },
    ...STORED.map((name) => ({ name, bytes: stored(name) })),
  ];
}

/** Ten of different kinds, which are damaged at every byte in every run; the others at every eighth unless it is a full one. */
const ALWAYS = [
  'ours',
  'ours, after many commits',
  'earliest',
  'references',
  'dense-links',
  'types',
  'four-byte-sizes',
  'superblock-1',
  'user-block',
  'memsel_1r',
];

/** How far apart the bytes are at which a sample is damaged. */
export function stride(name: string): number {
  return full || ALWAYS.includes(name) ? 1 : 8;
}

/** A sample by its name. */
export function sample(name: string): Uint8Array {
  const found = samples().find((one) => one.name === name);
  if (!found) throw new Error(`no sample ${name}`);
  return found.bytes;
}

/** Everything our writer can make: a log with anchors, links, attributes of all types, and datasets of every layout. */
function ours(): Uint8Array {
  const storage = memoryStorage();
  const file = File.createSync(storage);
  const { attributes } = file;
  attributes.set('most', 2n ** 64n - 1n);
  attributes.set('text', 'größer');
  attributes.set('texts', ['one', 'two', '']);
  attributes.set('nothing', null);
  attributes.set('yes', true);
  const point = T.compound({
    x: 'float64',
    in: T.compound({ n: 'int16', tag: T.string({ length: 5 }) }),
    list: T.array('uint8', [3]),
  });
  attributes.set('point', { x: 1.5, in: { n: 7, tag: 'abc' }, list: Uint8Array.of(1, 2, 3) }, { dtype: point });
  attributes.set('color', 1, { dtype: T.enum('int8', { red: 0, green: 1 }) });
  attributes.set('bytes', Uint8Array.of(1, 2), { dtype: T.opaque(2, 'tag') });
  attributes.set('sequence', [Int32Array.of(1, 2)], { dtype: T.vlen('int32') });
  const group = file.createGroup('group');
  group.createDataset('anchor', {
    dtype: 'float32',
    shape: [2, 3],
    maxShape: [null, 3],
    fill: 1.5,
    chunks: [1, 3],
    filters: ['shuffle', { deflate: 6 }],
  });
  attributes.set('reference', '/group', { dtype: T.reference });
  file.createSoftLink('soft', '/group/anchor');
  file.createExternalLink('external', 'other.h5', '/there');
  file.createHardLink('hard', '/group');
  const { structure } = sessionOf(file);
  const space = simpleSpace([2]);
  const type = structure.createDatatype(structure.root, 'type', point);
  structure.createDataset(structure.root, 'typed', { dtype: type, space, layout: unallocated });
  structure.createDataset(structure.root, 'compact', {
    dtype: 'int16',
    space,
    layout: compact(new Uint8Array(4)),
  });
  const region = new FileExtent(8, () => [new Uint8Array(8)]);
  structure.createDataset(structure.root, 'contiguous', {
    dtype: 'int32',
    space,
    layout: contiguous(region),
  });
  const chunk = new FileExtent(4, () => [new Uint8Array(4)]);
  const chunks = [{ cell: [0], address: chunk, size: 4, mask: 0 }];
  const layout = chunked([1], chunks);
  structure.createDataset(structure.root, 'fixed', { dtype: 'int32', space, layout });
  structure.createDataset(structure.root, 'growing', { dtype: 'int32', space: simpleSpace([2], [null]), layout });
  const box = { start: [0], count: [2] };
  const mappings = [{ file: '.', dataset: '/compact', source: box, target: box }];
  structure.createDataset(structure.root, 'virtual', { dtype: 'int16', space, layout: virtual(mappings) });
  file.closeSync();
  return storage.bytes();
}

/** Headers in several blocks, as commit after commit leaves them; older states lie in between. */
function oursInBlocks(): Uint8Array {
  const storage = memoryStorage();
  const file = File.createSync(storage);
  for (let i = 0; i < 3; i++) {
    for (let n = 0; n < 14; n++)
      file.attributes.set(`attribute ${i} ${n}`, 'some text of a fixed length'.slice(n), {
        dtype: T.string({ length: 40 }),
      });
    file.flushSync();
  }
  file.closeSync();
  return storage.bytes();
}

/** Logs with numbers, and tables of the classic format: blocks, points, filtered data, texts. */
function numbered(options: CreateOptions): Uint8Array {
  const storage = memoryStorage();
  const file = File.createSync(storage, { publish: 'never', ...options });
  const plain = file.createDataset('g/plain', { dtype: 'int16', shape: [4, 5] });
  const packed = file.createDataset('g/packed', { dtype: 'int8', shape: [64], filters: [{ deflate: 9 }] });
  const texts = file.createDataset('texts', { dtype: T.string(), shape: [3] });
  for (let i = 0; i < 3; i++) {
    plain.write(new Int16Array(4).fill(i), { start: [i, 1], count: [1, 4] });
    const at = [
      [0, 0],
      [3, i],
    ];
    plain.write(Int16Array.of(7, 8), select.points(at));
    packed.write(new Int8Array(64).fill(i));
    texts.write([`text ${i}`], { start: [i], count: [1] });
    file.flushSync();
  }
  file.closeSync();
  return storage.bytes();
}

/** Old and new structures side by side. */
function appended(): Uint8Array {
  const storage = memoryStorage(stored('earliest'));
  const file = File.openSync(storage, { mode: 'r+' });
  file.attributes.set('new', 'text');
  file.createGroup('group/new');
  file.closeSync();
  return storage.bytes();
}
