import { expect, test } from 'vitest';
import { reseal, sealedParts, superblockAt } from './checksums.ts';
import { Cases, PATIENCE } from './outcome.ts';
import { sample } from './samples.ts';

/** [field, offset in the structure, width in bytes] */
type Field = readonly [string, number, number];

/** Where the n-th structure with a signature begins. */
function find(bytes: Uint8Array, signature: string, n = 0): number {
  const letters = [...signature].map((letter) => letter.charCodeAt(0));
  let left = n;
  for (let at = 0; at < bytes.length; at++)
    if (letters.every((letter, i) => bytes[at + i] === letter) && left-- === 0) return at;
  throw new Error(`no ${signature} ${n}`);
}

const rootOf = (bytes: Uint8Array): number => new DataView(bytes.buffer).getUint32(superblockAt(bytes) + 64, true);

const OLD_SUPERBLOCK: Field[] = [
  ['version', 8, 1],
  ['free space version', 9, 1],
  ['root entry version', 10, 1],
  ['shared version', 12, 1],
  ['address size', 13, 1],
  ['length size', 14, 1],
  ['leaf K', 16, 2],
  ['internal K', 18, 2],
  ['flags', 20, 4],
  ['base', 24, 8],
  ['free space', 32, 8],
  ['end', 40, 8],
  ['driver', 48, 8],
  ['root name', 56, 8],
  ['root', 64, 8],
  ['root cache', 72, 4],
  ['root B-tree', 80, 8],
  ['root heap', 88, 8],
];
const NEW_SUPERBLOCK: Field[] = [
  ['version', 8, 1],
  ['address size', 9, 1],
  ['length size', 10, 1],
  ['flags', 11, 1],
  ['base', 12, 8],
  ['extension', 20, 8],
  ['end', 28, 8],
  ['root', 36, 8],
];
const OLD_HEADER: Field[] = [
  ['version', 0, 1],
  ['messages', 2, 2],
  ['references', 4, 4],
  ['size', 8, 4],
  ['message type', 16, 2],
  ['message size', 18, 2],
  ['message flags', 20, 1],
];
const NEW_HEADER: Field[] = [
  ['version', 4, 1],
  ['flags', 5, 1],
  ['first message', 22, 4],
];
const TREE: Field[] = [
  ['type', 4, 1],
  ['level', 5, 1],
  ['entries', 6, 2],
  ['left', 8, 8],
  ['right', 16, 8],
  ['key', 24, 8],
  ['child', 32, 8],
];
const SYMBOLS: Field[] = [
  ['version', 4, 1],
  ['symbols', 6, 2],
  ['name', 8, 8],
  ['header', 16, 8],
  ['cache', 24, 4],
  ['scratch', 32, 8],
  ['second name', 48, 8],
];
const LOCAL_HEAP: Field[] = [
  ['version', 4, 1],
  ['size', 8, 8],
  ['free', 16, 8],
  ['data', 24, 8],
];
const GLOBAL_HEAP: Field[] = [
  ['version', 4, 1],
  ['size', 8, 8],
  ['index', 16, 2],
  ['count', 18, 2],
  ['object size', 24, 8],
];
const FRACTAL: Field[] = [
  ['version', 4, 1],
  ['id size', 5, 2],
  ['filter size', 7, 2],
  ['flags', 9, 1],
  ['largest managed', 10, 4],
  ['next huge id', 14, 8],
  ['huge tree', 22, 8],
  ['free space', 30, 8],
  ['managed space', 46, 8],
  ['huge objects', 86, 8],
  ['width', 110, 2],
  ['start size', 112, 8],
  ['largest direct', 120, 8],
  ['heap bits', 128, 2],
  ['start rows', 130, 2],
  ['root', 132, 8],
  ['rows', 140, 2],
];
const INDIRECT: Field[] = [
  ['version', 4, 1],
  ['heap', 5, 8],
  ['offset', 13, 4],
  ['first child', 17, 8],
  ['second child', 25, 8],
];
const TREE2: Field[] = [
  ['version', 4, 1],
  ['type', 5, 1],
  ['node size', 6, 4],
  ['record size', 10, 2],
  ['depth', 12, 2],
  ['split', 14, 1],
  ['root', 16, 8],
  ['root records', 24, 2],
  ['records', 26, 8],
];
const NODE2: Field[] = [
  ['version', 4, 1],
  ['type', 5, 1],
  ['hash', 6, 4],
  ['heap id', 10, 1],
  ['id offset', 11, 4],
  ['id length', 15, 2],
];
const INNER2: Field[] = [...NODE2, ['first child', 17, 8], ['its records', 25, 1], ['second child', 26, 8]];
const TABLE: Field[] = [
  ['version', 4, 1],
  ['index type', 5, 1],
  ['types', 6, 2],
  ['messages', 16, 2],
  ['index', 18, 8],
  ['heap', 26, 8],
];

/** [sample, structure, where it is, its fields] */
const STRUCTURES: readonly (readonly [string, string, (bytes: Uint8Array) => number, readonly Field[]])[] = [
  ['earliest', 'superblock 0', superblockAt, OLD_SUPERBLOCK],
  ['dense-links', 'superblock 3', superblockAt, NEW_SUPERBLOCK],
  ['user-block', 'superblock behind a user block', superblockAt, OLD_SUPERBLOCK],
  ['earliest', 'header 1', rootOf, OLD_HEADER],
  ['dense-links', 'header 2', (bytes) => find(bytes, 'OHDR'), NEW_HEADER],
  ['ours', 'header 2', (bytes) => find(bytes, 'OHDR', 5), NEW_HEADER],
  [
    'ours, after many commits',
    'continuation',
    (bytes) => find(bytes, 'OCHK'),
    [
      ['type', 4, 1],
      ['size', 5, 2],
      ['flags', 7, 1],
      ['order', 8, 2],
    ],
  ],
  ['earliest', 'group B-tree', (bytes) => find(bytes, 'TREE'), TREE],
  ['raw-references', 'chunk B-tree', (bytes) => find(bytes, 'TREE', 2), TREE],
  ['earliest', 'symbol node', (bytes) => find(bytes, 'SNOD'), SYMBOLS],
  ['earliest', 'local heap', (bytes) => find(bytes, 'HEAP'), LOCAL_HEAP],
  ['references', 'global heap', (bytes) => find(bytes, 'GCOL'), GLOBAL_HEAP],
  ['dense-links', 'fractal heap', (bytes) => find(bytes, 'FRHP'), FRACTAL],
  ['huge-attribute', 'fractal heap', (bytes) => find(bytes, 'FRHP'), FRACTAL],
  ['shared', 'shared message heap', (bytes) => find(bytes, 'FRHP'), FRACTAL],
  ['dense-links', 'indirect block', (bytes) => find(bytes, 'FHIB'), INDIRECT],
  ['dense-links', 'B-tree 2', (bytes) => find(bytes, 'BTHD'), TREE2],
  ['dense-attributes', 'B-tree 2', (bytes) => find(bytes, 'BTHD'), TREE2],
  ['dense-links', 'B-tree 2 leaf', (bytes) => find(bytes, 'BTLF'), NODE2],
  ['dense-links', 'B-tree 2 inner node', (bytes) => find(bytes, 'BTIN'), INNER2],
  ['shared', 'shared message table', (bytes) => find(bytes, 'SMTB'), TABLE],
];

/** Zero, small, at the limits of each width, near 2^53 and 2^64, and places in the file. */
function values(bytes: Uint8Array, at: number): bigint[] {
  const edges = [
    0n,
    1n,
    2n,
    3n,
    63n,
    64n,
    65n,
    127n,
    128n,
    255n,
    0x7fffn,
    0xffffn,
    2n ** 31n - 1n,
    2n ** 31n,
    2n ** 32n - 1n,
    2n ** 32n,
    2n ** 52n,
    2n ** 53n - 1n,
    2n ** 53n,
    2n ** 63n - 1n,
    2n ** 63n,
    2n ** 64n - 2n,
    2n ** 64n - 1n,
  ];
  const size = BigInt(bytes.length);
  return [...edges, size - 1n, size, size + 1n, size / 2n, BigInt(at), BigInt(at + 8), BigInt(superblockAt(bytes))];
}

test('every field of every structure with values that hurt, checksums right', PATIENCE, () => {
  const cases = new Cases();
  const fields = new Set<string>();
  for (const [name, structure, where, list] of STRUCTURES) {
    const bytes = sample(name);
    const sealed = sealedParts(bytes);
    const at = where(bytes);
    for (const [field, offset, width] of list) {
      fields.add(`${structure}, ${field}`);
      for (const value of values(bytes, at)) {
        if (value >= 2n ** BigInt(8 * width)) continue;
        const changed = bytes.slice();
        for (let i = 0; i < width; i++) changed[at + offset + i] = Number((value >> BigInt(8 * i)) & 255n);
        reseal(changed, sealed);
        cases.run(name, `${structure}, ${field} = ${value}`, changed);
        cases.run(name, `${structure}, ${field} = ${value}`, changed, 'append');
      }
    }
  }
  process.stdout.write(`hostile, patched fields: ${fields.size}\n`);
  expect(fields.size).toBeGreaterThan(100);
  expect(cases.report('patched fields')).toEqual([]);
});
