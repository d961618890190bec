// B-trees of version 1 (groups and chunks) and of version 2 (chunks and dense storage), read only (HDF5 file format specification,
// III.A).

import { formatError } from '../../base/errors.ts';
import type { Io } from '../../storage/io.ts';
import { bytesFor } from '../format/byte-writer.ts';
import { Cursor, checkSum, UNDEFINED } from '../format/cursor.ts';
import type { Budget, FileBytes } from '../format/file-bytes.ts';

/** The header of a version 2 B-tree, and what follows from it. */
export interface Btree2 {
  readonly type: number;
  readonly nodeSize: number;
  readonly recordSize: number;
  /** The level of the root; leaves have 0. */
  readonly depth: number;
  readonly root: number;
  readonly rootCount: number;
  /** Records in the whole tree. */
  readonly total: number;
  /** By the depth of a node: the most records in it, and the width of the field for all records below it. */
  readonly maxRecords: readonly number[];
  readonly totalBytes: readonly number[];
}

/** Reads the header of a version 2 B-tree, which must be of one of these types. */
export function* openBtree2(file: FileBytes, address: number, expectedType: readonly number[]): Io<Btree2> {
  const header = yield* file.cursor(
    address,
    4 + 1 + 1 + 4 + 2 + 2 + 2 + file.addressSize + 2 + file.lengthSize + 4,
    'B-tree header',
  );
  header.signature('BTHD');
  header.expect(0, 'version of the B-tree');
  const type = header.u8();
  if (!expectedType.includes(type)) header.fail(`B-tree of type ${type}, expected ${expectedType.join(' or ')}`);
  const nodeSize = header.u32();
  const recordSize = header.u16();
  const depth = header.u16();
  header.skip(2);
  const root = header.address(file.addressSize);
  const rootCount = header.u16();
  const total = header.uint(file.lengthSize);
  checkSum(header, header.at, address + file.base);
  if (depth > 32 || recordSize === 0 || nodeSize < 16) header.fail('B-tree with impossible sizes');
  return { type, nodeSize, recordSize, depth, root, rootCount, total, ...layoutOf(file, nodeSize, recordSize, depth) };
}

/** Reads all records of a version 2 B-tree in key order, each as a cursor over its bytes. Nodes count against the budget. */
export function* readBtree2(
  file: FileBytes,
  address: number,
  expectedType: readonly number[],
  budget: Budget,
): Io<Cursor[]> {
  const tree = yield* openBtree2(file, address, expectedType);
  const { root, rootCount, depth, total } = tree;
  const records: Cursor[] = [];
  if (root === UNDEFINED || total === 0) return records;
  yield* readNode(file, tree, root, rootCount, depth, records, budget);
  if (records.length !== total)
    throw formatError(`B-tree with ${records.length} records where ${total} are announced`, file.base + address);
  return records;
}

function layoutOf(
  file: FileBytes,
  nodeSize: number,
  recordSize: number,
  depth: number,
): Pick<Btree2, 'maxRecords' | 'totalBytes'> {
  const maxRecords = [Math.floor((nodeSize - 10) / recordSize)];
  const totalBytes = [0];
  let cumulative = maxRecords[0] as number;
  for (let d = 1; d <= depth; d++) {
    const countBytes = bytesFor(maxRecords[0] as number);
    const pointer = file.addressSize + countBytes + (d > 1 ? (totalBytes[d - 1] as number) : 0);
    const max = Math.floor((nodeSize - 10 - pointer) / (recordSize + pointer));
    maxRecords.push(max);
    cumulative = (max + 1) * cumulative + max;
    totalBytes.push(bytesFor(Math.min(cumulative, Number.MAX_SAFE_INTEGER)));
  }
  return { maxRecords, totalBytes };
}

function* readNode(
  file: FileBytes,
  tree: Btree2,
  address: number,
  count: number,
  depth: number,
  records: Cursor[],
  budget: Budget,
): Io<void> {
  if (count > (tree.maxRecords[depth] ?? 0))
    throw formatError(`B-tree node with ${count} records`, file.base + address);
  const node = yield* file.cursor(address, tree.nodeSize, 'B-tree node');
  budget.spend(tree.nodeSize, address, 'B-tree nodes');
  node.signature(depth === 0 ? 'BTLF' : 'BTIN');
  node.expect(0, 'version of the B-tree node');
  node.expect(tree.type, 'type of the B-tree node');
  const from = node.at;
  node.skip(count * tree.recordSize);
  const record = (i: number): Cursor => {
    const at = from + i * tree.recordSize;
    return new Cursor(node.bytes, node.base, at, at + tree.recordSize);
  };
  if (depth === 0) {
    checkSum(node, node.at, address + file.base);
    for (let i = 0; i < count; i++) records.push(record(i));
    return;
  }
  const children: [number, number][] = [];
  for (let i = 0; i <= count; i++) {
    const child = node.address(file.addressSize);
    const childCount = node.uint(bytesFor(tree.maxRecords[0] as number));
    if (depth > 1) node.skip(tree.totalBytes[depth - 1] as number);
    children.push([child, childCount]);
  }
  checkSum(node, node.at, address + file.base);
  for (let i = 0; i <= count; i++) {
    const [child, childCount] = children[i] as [number, number];
    yield* readNode(file, tree, child, childCount, depth - 1, records, budget);
    if (i < count) records.push(record(i));
  }
}

/**
 * Visits the children of the leaves of a version 1 B-tree in key order. `type` is 0 for groups, 1 for chunks. The visitor gets
 * the key before each child and the child's address. Nodes count against the budget.
 */
export function* walkBtree1(
  file: FileBytes,
  root: number,
  type: 0 | 1,
  keySize: number,
  budget: Budget,
  visit: (key: Cursor, child: number) => Io<void>,
): Io<void> {
  yield* walkNode(root, -1);

  function* walkNode(address: number, expectedLevel: number): Io<void> {
    if (address === UNDEFINED) return;
    const head = yield* file.cursor(address, 8 + 2 * file.addressSize, 'B-tree node');
    head.signature('TREE');
    head.expect(type, 'type of the B-tree node');
    const level = head.u8();
    if (expectedLevel >= 0 && level !== expectedLevel)
      head.fail(`B-tree node of level ${level}, expected ${expectedLevel}`);
    const count = head.u16();
    const size = count * (keySize + file.addressSize) + keySize;
    const body = yield* file.cursor(address + head.bytes.length, size, 'B-tree node');
    budget.spend(head.bytes.length + size, address, 'B-tree nodes');
    for (let i = 0; i < count; i++) {
      const keyAt = body.need(keySize, 'B-tree key');
      const child = body.address(file.addressSize);
      if (level > 0) yield* walkNode(child, level - 1);
      else yield* visit(new Cursor(body.bytes, body.base, keyAt, keyAt + keySize), child);
    }
  }
}
