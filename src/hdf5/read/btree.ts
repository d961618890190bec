// B-trees of version 1 (groups and chunks) and of version 2 (chunks and dense storage), read only (HDF5 file format specification,
// III.A).

import { formatError } from '../../base/errors.ts';
import type { Io } from '../../storage/io.ts';
import { bytesFor } from '../format/byte-writer.ts';
import { Cursor, checkSum, UNDEFINED } from '../format/cursor.ts';
import type { Budget, FileBytes } from '../format/file-bytes.ts';

/** The header of a version 2 B-tree. */
export interface TreeHeader {
  readonly type: number;
  readonly nodeSize: number;
  readonly recordSize: number;
  readonly depth: number;
  /** How full a node may be, and must be, in percent. */
  readonly splitPercent: number;
  readonly mergePercent: number;
  /** Address of the root, or UNDEFINED; its records; the records of the whole tree. */
  readonly root: number;
  readonly rootCount: number;
  readonly total: number;
}

/** Bytes of signature, version, type and checksum of a node. */
export const NODE_OVERHEAD = 10;

/** What follows from a version 2 B-tree's sizes. */
export class TreeShape {
  readonly type: number;
  readonly nodeSize: number;
  readonly recordSize: number;
  readonly addressSize: number;
  /** Width of the field for the records of a node. */
  readonly countBytes: number;
  // By the depth of a node: the most records in it and below it, and the width of the field for all records below it.
  readonly #most: number[];
  readonly #cumulative: number[];
  readonly #totalBytes: number[] = [0];

  constructor(sizes: Pick<TreeHeader, 'type' | 'nodeSize' | 'recordSize'>, addressSize: number) {
    this.type = sizes.type;
    this.nodeSize = sizes.nodeSize;
    this.recordSize = sizes.recordSize;
    this.addressSize = addressSize;
    const most = Math.floor((sizes.nodeSize - NODE_OVERHEAD) / sizes.recordSize);
    this.countBytes = bytesFor(most);
    this.#most = [most];
    this.#cumulative = [most];
  }

  /** The most records in a node of a depth; leaves have depth 0. */
  maxRecords(depth: number): number {
    for (let d = this.#most.length; d <= depth; d++) {
      const pointer = this.pointerSize(d);
      const max = Math.max(0, Math.floor((this.nodeSize - NODE_OVERHEAD - pointer) / (this.recordSize + pointer)));
      const total = (max + 1) * (this.#cumulative[d - 1] as number) + max;
      this.#most.push(max);
      this.#cumulative.push(total);
      this.#totalBytes.push(bytesFor(Math.min(total, Number.MAX_SAFE_INTEGER)));
    }
    return this.#most[depth] as number;
  }

  /** Width of the field for all records in and below the children of a node of a depth; 0 if they are leaves. */
  totalBytes(depth: number): number {
    return this.#totalBytes[depth - 1] as number;
  }

  /** Bytes of a pointer to a child in a node of a depth. */
  pointerSize(depth: number): number {
    return this.addressSize + this.countBytes + this.totalBytes(depth);
  }
}

/** Reads the header of a version 2 B-tree. */
export function* readTreeHeader(file: FileBytes, address: number, expectedType: readonly number[]): Io<TreeHeader> {
  const header = yield* file.cursor(address, 22 + file.addressSize + file.lengthSize, 'B-tree header');
  header.signature('BTHD');
  header.expect(0, 'version of the B-tree');
  const type = header.u8();
  if (!expectedType.includes(type)) header.fail(`B-tree of type ${type}, expected ${expectedType.join(' or ')}`);
  const nodeSize = header.u32();
  const recordSize = header.u16();
  const depth = header.u16();
  const splitPercent = header.u8();
  const mergePercent = header.u8();
  const root = header.address(file.addressSize);
  const rootCount = header.u16();
  const total = header.uint(file.lengthSize);
  checkSum(header, header.at, address + file.base);
  if (depth > 32 || recordSize === 0 || nodeSize < 16) header.fail('B-tree with impossible sizes');
  return { type, nodeSize, recordSize, depth, splitPercent, mergePercent, root, rootCount, total };
}

/** A node of a version 2 B-tree as it is in the file. */
interface StoredNode {
  /** The cursor's bytes have the records from `from` on, one after the other. */
  readonly cursor: Cursor;
  readonly from: number;
  /** Of an inner node, one more than it has records: address, records in it, and records in and below it. */
  readonly children: readonly (readonly [address: number, count: number, total: number])[];
}

/** Reads a node that has `count` records, which only the pointer to it says. Nodes count against the budget, if there is one. */
export function* readTreeNode(
  file: FileBytes,
  shape: TreeShape,
  address: number,
  count: number,
  depth: number,
  budget?: Budget,
): Io<StoredNode> {
  if (count > shape.maxRecords(depth)) throw formatError(`B-tree node with ${count} records`, file.base + address);
  const cursor = yield* file.cursor(address, shape.nodeSize, 'B-tree node');
  budget?.spend(shape.nodeSize, address, 'B-tree nodes');
  cursor.signature(depth === 0 ? 'BTLF' : 'BTIN');
  cursor.expect(0, 'version of the B-tree node');
  cursor.expect(shape.type, 'type of the B-tree node');
  const from = cursor.at;
  cursor.skip(count * shape.recordSize);
  const children: [number, number, number][] = [];
  for (let i = 0; depth > 0 && i <= count; i++) {
    const child = cursor.address(shape.addressSize);
    const childCount = cursor.uint(shape.countBytes);
    children.push([child, childCount, depth > 1 ? cursor.uint(shape.totalBytes(depth)) : childCount]);
  }
  checkSum(cursor, cursor.at, address + file.base);
  return { cursor, from, children };
}

/** Reads all records of a version 2 B-tree in key order, each as a cursor over its bytes. Nodes count against the budget. */
export function* readBtree2(
  file: FileBytes,
  address: number,
  expectedType: readonly number[],
  budget: Budget,
): Io<Cursor[]> {
  const { root, rootCount, total, depth, ...sizes } = yield* readTreeHeader(file, address, expectedType);
  const records: Cursor[] = [];
  if (root === UNDEFINED || total === 0) return records;
  const shape = new TreeShape(sizes, file.addressSize);
  yield* readNode(file, shape, root, rootCount, depth, records, budget);
  if (records.length !== total)
    throw formatError(`B-tree with ${records.length} records where ${total} are announced`, file.base + address);
  return records;
}

function* readNode(
  file: FileBytes,
  shape: TreeShape,
  address: number,
  count: number,
  depth: number,
  records: Cursor[],
  budget: Budget,
): Io<void> {
  const { cursor, from, children } = yield* readTreeNode(file, shape, address, count, depth, budget);
  yield* file.ahead(children.map(([child]) => ({ address: child, length: shape.nodeSize })));
  for (let i = 0; i <= count; i++) {
    const child = children[i];
    if (child) yield* readNode(file, shape, child[0], child[1], depth - 1, records, budget);
    const at = from + i * shape.recordSize;
    if (i < count) records.push(new Cursor(cursor.bytes, cursor.base, at, at + shape.recordSize));
  }
}

/**
 * Looks for a hash in the tree of the names of dense links or attributes. Gives the cursor behind the hash of a record, or null. Where
 * several names have the same hash, it is any of them.
 */
export function* findHash(file: FileBytes, address: number, hash: number): Io<Cursor | null> {
  const { root, rootCount, depth, ...sizes } = yield* readTreeHeader(file, address, [5]);
  const shape = new TreeShape(sizes, file.addressSize);
  let [at, count] = [root, rootCount];
  for (let level = depth; level >= 0 && at !== UNDEFINED && count > 0; level--) {
    const { cursor, from, children } = yield* readTreeNode(file, shape, at, count, level);
    let i = 0;
    for (; i < count; i++) {
      const start = from + i * shape.recordSize;
      const record = new Cursor(cursor.bytes, cursor.base, start, start + shape.recordSize);
      const stored = record.u32();
      if (stored === hash) return record;
      if (stored > hash) break;
    }
    [at, count] = children[i] ?? [UNDEFINED, 0];
  }
  return null;
}

/** So many bytes are read ahead for a child whose size is not known yet: most children are shorter. */
const CHILD_BYTES = 1024;

/** A node of a version 1 B-tree: `body` begins with the first key, and has a child behind each key but the last. */
interface Btree1Node {
  readonly level: number;
  readonly count: number;
  readonly body: Cursor;
  /** Bytes of the node. */
  readonly size: number;
}

/** Reads a node of a version 1 B-tree. `type` is 0 for groups, 1 for chunks; a level of -1 is not known yet. */
export function* readBtree1Node(
  file: FileBytes,
  address: number,
  type: 0 | 1,
  keySize: number,
  expectedLevel: number,
): Io<Btree1Node> {
  const head = yield* file.cursor(address, 8 + 2 * file.addressSize, 'B-tree node');
  head.signature('TREE');
  head.expect(type, 'type of the B-tree node');
  const level = head.u8();
  if (expectedLevel >= 0 && level !== expectedLevel)
    head.fail(`B-tree node of level ${level}, expected ${expectedLevel}`);
  const count = head.u16();
  const size = count * (keySize + file.addressSize) + keySize;
  const body = yield* file.cursor(address + head.bytes.length, size, 'B-tree node');
  return { level, count, body, size: head.bytes.length + size };
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
    const { level, count, body, size } = yield* readBtree1Node(file, address, type, keySize, expectedLevel);
    budget.spend(size, address, 'B-tree nodes');
    const children: number[] = [];
    for (let i = 0; i < count; i++) {
      body.need(keySize, 'B-tree key');
      children.push(body.address(file.addressSize));
    }
    // Children of the leaves of a group are symbol table nodes; those of other leaves are data.
    if (level > 0 || type === 0) yield* file.ahead(children.map((child) => ({ address: child, length: CHILD_BYTES })));
    body.at = 0;
    for (const child of children) {
      const keyAt = body.need(keySize, 'B-tree key');
      body.skip(file.addressSize);
      if (level > 0) yield* walkNode(child, level - 1);
      else yield* visit(new Cursor(body.bytes, body.base, keyAt, keyAt + keySize), child);
    }
  }
}
