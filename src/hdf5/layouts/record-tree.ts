// Version 2 B-trees that are changed by appending (HDF5 file format specification, III.A.2): an edit makes new nodes along the paths
// to what changed and shares all others with the tree before it. The nodes have no sibling pointers, so nothing else changes.
//
// Every node but the root holds at least its merge number of records and at most its split number, as in libhdf5, which compares
// with these numbers for equality and reads beyond a node that breaks the rule.

import { lookup3 } from '../../base/checksum.ts';
import { formatError, H5LogError } from '../../base/errors.ts';
import { type Io, runInMemory } from '../../storage/io.ts';
import { ByteWriter, putU64, putUint } from '../format/byte-writer.ts';
import { UNDEFINED } from '../format/cursor.ts';
import { Budget, type FileBytes } from '../format/file-bytes.ts';
import { type Addressable, FileExtent } from '../graph/object-node.ts';
import { NODE_OVERHEAD, readTreeHeader, readTreeNode, type TreeHeader, TreeShape } from '../read/btree.ts';

/** Type and sizes of a tree, which never change. */
type TreeFormat = Pick<TreeHeader, 'type' | 'nodeSize' | 'recordSize' | 'splitPercent' | 'mergePercent'>;

/** What libhdf5 uses for the trees of chunks; those of dense storage have other nodes. */
export const CHUNK_TREE = { nodeSize: 2048, splitPercent: 100, mergePercent: 40 } as const;

/** Compares the keys of two records, which begin at `i` in `a` and at `j` in `b`. */
export type CompareRecords = (a: Uint8Array, i: number, b: Uint8Array, j: number) => number;

const HEADER_SIZE = 38;
const EMPTY: readonly never[] = [];
/** Bytes of nodes that a tree and those made of it keep; beyond, they are read from the file again. */
const KEPT = 32 * 2 ** 20;

/** Encoded records. Those that begin with an address that a commit has not assigned yet have a target. */
export class Records {
  readonly bytes: Uint8Array;
  readonly size: number;
  readonly count: number;
  #targets: readonly (Addressable | undefined)[] | null;

  /** `size` is that of a record. */
  constructor(bytes: Uint8Array, size: number, targets: readonly (Addressable | undefined)[] | null = null) {
    this.bytes = bytes;
    this.size = size;
    this.count = bytes.length / size;
    this.#targets = targets;
  }

  target(i: number): Addressable | undefined {
    return this.#targets?.[i];
  }

  slice(from: number, to: number): Records {
    const { size } = this;
    return new Records(this.bytes.subarray(from * size, to * size), size, this.#targets?.slice(from, to) ?? null);
  }

  static concat(parts: readonly Records[], size: number): Records {
    const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.bytes.length, 0));
    const targets: (Addressable | undefined)[] | null = parts.some((part) => part.#targets) ? [] : null;
    let at = 0;
    for (const part of parts) {
      bytes.set(part.bytes, at);
      at += part.bytes.length;
      if (!targets) continue;
      for (let i = 0; i < part.count; i++) targets.push(part.#targets?.[i]);
    }
    return new Records(bytes, size, targets);
  }

  /** Copies the records to `at` in `into`, with the addresses that their targets have now. */
  encode(into: Uint8Array, at: number): void {
    into.set(this.bytes, at);
    if (!this.#targets) return;
    const view = new DataView(into.buffer, into.byteOffset, into.byteLength);
    for (const [i, target] of this.#targets.entries()) if (target) putU64(view, at + i * this.size, target.address);
  }

  /** The targets are in the file: their addresses are final. */
  settle(): void {
    if (this.#targets) this.encode(this.bytes, 0);
    this.#targets = null;
  }
}

/** What a node holds. A leaf has no children, another node one more than records. */
interface NodeContents {
  readonly records: Records;
  readonly children: readonly TreeNode[];
}

/** A node: where it is in the file, if a commit wrote it, and what it holds, unless that has to be read first. */
class TreeNode {
  readonly count: number;
  /** Records in it and below it. */
  readonly total: number;
  /** UNDEFINED as long as no commit has written it. */
  address: number;
  contents: NodeContents | null = null;

  constructor(count: number, total: number, address = UNDEFINED) {
    this.count = count;
    this.total = total;
    this.address = address;
  }

  static of(records: Records, children: readonly TreeNode[] = EMPTY): TreeNode {
    let total = records.count;
    for (const child of children) total += child.total;
    const node = new TreeNode(records.count, total);
    node.contents = { records, children };
    return node;
  }
}

/** Changes in key order, each key once. A record is put, in place of one with the same key, or removed if `removed` is 1. */
interface RecordChanges {
  readonly records: Records;
  readonly removed: Uint8Array;
}

/** Where in an extent a node goes, and what it holds, which the node itself may forget once a commit wrote it. */
interface Place extends NodeContents {
  readonly at: number;
}

/** What all trees that come from one share: how they look, and the file from which their nodes are read. */
interface Family {
  readonly format: TreeFormat;
  readonly shape: TreeShape;
  readonly compare: CompareRecords;
  file: FileBytes | null;
  budget: Budget | null;
  /** Bytes of nodes in memory, some of them perhaps forgotten. */
  bytes: number;
}

/** A version 2 B-tree as it is in a file, or will be. Immutable. */
export class RecordTree {
  readonly format: TreeFormat;
  readonly #family: Family;
  readonly #root: TreeNode | null;
  readonly #depth: number;
  #pending: { readonly extent: FileExtent; readonly places: Map<TreeNode, Place> } | null = null;

  private constructor(family: Family, root: TreeNode | null, depth: number) {
    this.format = family.format;
    this.#family = family;
    this.#root = root;
    this.#depth = depth;
  }

  static empty(format: TreeFormat, compare: CompareRecords): RecordTree {
    const family = { format, shape: new TreeShape(format, 8), compare, file: null, budget: null, bytes: 0 };
    return new RecordTree(family, null, 0);
  }

  /** A tree of records that are in the order of their keys. */
  static ofSorted(format: TreeFormat, records: Uint8Array): RecordTree {
    const put = new Records(records, format.recordSize);
    return runInMemory(RecordTree.empty(format, () => 0).edit({ records: put, removed: new Uint8Array(put.count) }));
  }

  /** Reads the header of a tree; nodes are read when they are needed. */
  static *open(file: FileBytes, address: number, types: readonly number[], compare: CompareRecords): Io<RecordTree> {
    const { depth, root, rootCount, total, ...format } = yield* readTreeHeader(file, address, types);
    const shape = new TreeShape(format, file.addressSize);
    const { splitPercent, mergePercent } = format;
    const isEmpty = root === UNDEFINED || total === 0;
    // Inner nodes must have room for some records however deep the tree becomes, that is with the widest pointers.
    const pointer = file.addressSize + shape.countBytes + 8;
    const room = (format.nodeSize - NODE_OVERHEAD - pointer) / (format.recordSize + pointer);
    if (splitPercent > 100 || mergePercent * 2 >= splitPercent || (room * splitPercent) / 100 < 3)
      throw formatError('B-tree with impossible sizes', file.base + address);
    const family = { format, shape, compare, file, budget: null, bytes: 0 };
    return new RecordTree(family, isEmpty ? null : new TreeNode(rootCount, total, root), isEmpty ? 0 : depth);
  }

  /** The number of records. */
  get count(): number {
    return this.#root?.total ?? 0;
  }

  // ---------------------------------------------------------------- reading

  /** The record with the same key as the one at `at`; null if there is none. */
  *find(key: Uint8Array, at: number): Io<Records | null> {
    let node = this.#root;
    for (let depth = this.#depth; node; depth--) {
      const { records, children } = node.contents ?? (yield* this.#load(node, depth));
      const i = this.#lowerBound(records, key, at, 0, records.count);
      if (this.#isAt(records, i, key, at)) return records.slice(i, i + 1);
      node = children[i] ?? null;
    }
    return null;
  }

  /** Visits every record, in key order. */
  *visit(visit: (records: Records, i: number) => void, node = this.#root, depth = this.#depth): Io<void> {
    if (!node) return;
    const { records, children } = node.contents ?? (yield* this.#load(node, depth));
    for (let i = 0; i <= records.count; i++) {
      const child = children[i];
      if (child) yield* this.visit(visit, child, depth - 1);
      if (i < records.count) visit(records, i);
    }
  }

  /** The contents of a node, read from the file if they are not in memory. */
  *#load(node: TreeNode, depth: number): Io<NodeContents> {
    if (node.contents) return node.contents;
    const { file, shape, compare } = this.#family;
    if (!file) throw new H5LogError('STORAGE', 'internal error: a B-tree node of no file');
    this.#family.budget ??= new Budget(file);
    const { address, count, total } = node;
    const stored = yield* readTreeNode(file, shape, address, count, depth, this.#family.budget);
    const { recordSize } = this.format;
    const { cursor, from } = stored;
    const records = new Records(cursor.bytes.slice(from, from + count * recordSize), recordSize);
    let sum = count;
    const children = stored.children.map(([at, childCount, childTotal]) => {
      sum += childTotal;
      return new TreeNode(childCount, childTotal, at);
    });
    if (sum !== total)
      throw formatError(`B-tree node with ${sum} records where ${total} are announced`, file.base + address);
    for (let i = 1; i < count; i++) {
      if (compare(records.bytes, (i - 1) * recordSize, records.bytes, i * recordSize) >= 0)
        throw formatError('B-tree node whose records are out of order', file.base + address);
    }
    this.#family.bytes += records.bytes.length;
    node.contents = { records, children };
    return node.contents;
  }

  /** Whether record `i` has the same key as the one at `at` in `key`. */
  #isAt(records: Records, i: number, key: Uint8Array, at: number): boolean {
    return i < records.count && this.#family.compare(records.bytes, i * records.size, key, at) === 0;
  }

  /** The first of the records [from, to) whose key is not less than that of the record at `at` in `key`. */
  #lowerBound(records: Records, key: Uint8Array, at: number, from: number, to: number): number {
    const { compare } = this.#family;
    let [low, high] = [from, to];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare(records.bytes, middle * records.size, key, at) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // ---------------------------------------------------------------- editing

  /** The tree with the changes; the same one if they change nothing. */
  *edit(changes: RecordChanges): Io<RecordTree> {
    const before = this.#root ?? TreeNode.of(changes.records.slice(0, 0));
    let depth = this.#depth;
    let node = yield* this.#apply(before, depth, changes, 0, changes.records.count);
    if (node === before) return this;
    for (;;) {
      if (node.count > this.#limit('split', depth)) {
        const { nodes, separators } = this.#divide(node, depth);
        node = this.#made(separators, nodes);
        depth++;
      } else if (node.count === 0 && depth > 0) {
        node = (yield* this.#load(node, depth)).children[0] as TreeNode;
        depth--;
      } else break;
    }
    const root = node.count === 0 ? null : node;
    return new RecordTree(this.#family, root, root ? depth : 0);
  }

  /** The most (split), or the fewest (merge), records of a node that is not the root. */
  #limit(which: 'split' | 'merge', depth: number): number {
    const percent = this.format[`${which}Percent`];
    return Math.max(1, Math.floor((this.#family.shape.maxRecords(depth) * percent) / 100));
  }

  #made(records: readonly Records[], children: readonly TreeNode[] = EMPTY): TreeNode {
    // A single part need not be copied: a tree of a million records is made of one.
    const joined = records.length === 1 ? (records[0] as Records) : Records.concat(records, this.format.recordSize);
    this.#family.bytes += joined.bytes.length;
    return TreeNode.of(joined, children);
  }

  /**
   * Applies the changes [from, to) to a node and what is below it. The node that comes out may hold any number of records;
   * everything below it follows the rules, unless it has a single child.
   */
  *#apply(node: TreeNode, depth: number, changes: RecordChanges, from: number, to: number): Io<TreeNode> {
    const { records, children } = yield* this.#load(node, depth);
    if (depth === 0) return this.#applyToLeaf(node, records, changes, from, to);
    const nodes: TreeNode[] = [];
    const separators: Records[] = [];
    let changed = false;
    let at = from;
    let isJoined = false;
    for (const [i, child] of children.entries()) {
      const isLast = i === records.count;
      const end = isLast ? to : this.#lowerBound(changes.records, records.bytes, i * records.size, at, to);
      const edited = end > at ? yield* this.#apply(child, depth - 1, changes, at, end) : child;
      changed ||= edited !== child;
      if (isJoined) nodes.push(yield* this.#join(nodes.pop() as TreeNode, null, edited, depth - 1));
      else nodes.push(edited);
      if (isLast) break;
      at = end;
      isJoined = false;
      let separator = records.slice(i, i + 1);
      if (at < to && this.#isAt(changes.records, at, records.bytes, i * records.size)) {
        isJoined = changes.removed[at] === 1;
        separator = changes.records.slice(at, ++at);
        changed = true;
      }
      if (!isJoined) separators.push(separator);
    }
    return changed ? yield* this.#balance(nodes, separators, depth) : node;
  }

  #applyToLeaf(node: TreeNode, records: Records, changes: RecordChanges, from: number, to: number): TreeNode {
    const parts: Records[] = [];
    let changed = false;
    let kept = 0;
    for (let k = from; k < to; k++) {
      const at = k * records.size;
      const i = this.#lowerBound(records, changes.records.bytes, at, kept, records.count);
      const isThere = this.#isAt(records, i, changes.records.bytes, at);
      const isRemoved = changes.removed[k] === 1;
      if (isRemoved && !isThere) continue;
      changed = true;
      if (i > kept) parts.push(records.slice(kept, i));
      kept = isThere ? i + 1 : i;
      if (isRemoved) continue;
      // Records that are put between two others are one part.
      const limit =
        kept < records.count ? this.#lowerBound(changes.records, records.bytes, kept * records.size, k + 1, to) : to;
      let end = k + 1;
      while (end < limit && changes.removed[end] === 0) end++;
      parts.push(changes.records.slice(k, end));
      k = end - 1;
    }
    if (!changed) return node;
    if (kept < records.count) parts.push(records.slice(kept, records.count));
    return this.#made(parts);
  }

  /** One node of two neighbours, with the record between them, which is null if it was removed. */
  *#join(left: TreeNode, between: Records | null, right: TreeNode, depth: number): Io<TreeNode> {
    const a = yield* this.#load(left, depth);
    const b = yield* this.#load(right, depth);
    const records = between ? [a.records, between, b.records] : [a.records, b.records];
    if (depth === 0) return this.#made(records);
    const children = [...a.children];
    let more = b.children;
    if (!between) {
      const inner = yield* this.#join(children.pop() as TreeNode, null, more[0] as TreeNode, depth - 1);
      children.push(inner);
      more = more.slice(1);
    }
    for (const child of more) children.push(child);
    const all = Records.concat(records, this.format.recordSize);
    const separators = Array.from({ length: all.count }, (_, i) => all.slice(i, i + 1));
    return yield* this.#balance(children, separators, depth);
  }

  /**
   * A node of a depth with these children, and these records between them, after joining children that hold too few records
   * with a neighbour and dividing those that hold too many.
   */
  *#balance(children: readonly TreeNode[], between: readonly Records[], depth: number): Io<TreeNode> {
    const fewest = this.#limit('merge', depth - 1);
    const most = this.#limit('split', depth - 1);
    const nodes: TreeNode[] = [];
    const separators: Records[] = [];
    const add = (node: TreeNode): void => {
      if (node.count <= most) {
        nodes.push(node);
        return;
      }
      const divided = this.#divide(node, depth - 1);
      for (const each of divided.nodes) nodes.push(each);
      for (const each of divided.separators) separators.push(each);
    };
    let current = children[0] as TreeNode;
    for (let i = 1; i < children.length; i++) {
      const next = children[i] as TreeNode;
      const separator = between[i - 1] as Records;
      if (current.count < fewest) current = yield* this.#join(current, separator, next, depth - 1);
      else {
        add(current);
        separators.push(separator);
        current = next;
      }
    }
    const last = nodes.pop();
    if (current.count < fewest && last) add(yield* this.#join(last, separators.pop() as Records, current, depth - 1));
    else {
      if (last) nodes.push(last);
      add(current);
    }
    return this.#made(separators, nodes);
  }

  /** Divides a node with too many records into as few as can be, all of about the same size, and the records between them. */
  #divide({ contents }: TreeNode, depth: number): { nodes: TreeNode[]; separators: Records[] } {
    const { records, children } = contents as NodeContents;
    const parts = Math.ceil((records.count + 1) / (this.#limit('split', depth) + 1));
    const nodes: TreeNode[] = [];
    const separators: Records[] = [];
    for (let p = 0, from = 0; p < parts; p++) {
      // The first ones get one more, so that every record is in a node or between two.
      const end = Math.ceil(((p + 1) * (records.count + 1)) / parts) - 1;
      nodes.push(TreeNode.of(records.slice(from, end), children.slice(from, end + 1)));
      if (p + 1 < parts) separators.push(records.slice(end, end + 1));
      from = end + 1;
    }
    return { nodes, separators };
  }

  // ---------------------------------------------------------------- writing

  /**
   * What must be appended so that the file holds this tree: its header and every node that no commit wrote. The header comes
   * first: the address of the extent is the tree's.
   */
  get extent(): FileExtent {
    if (this.#pending) return this.#pending.extent;
    const { nodeSize } = this.format;
    const places = new Map<TreeNode, Place>();
    const add = (node: TreeNode): void => {
      if (node.address !== UNDEFINED || !node.contents) return;
      places.set(node, { ...node.contents, at: HEADER_SIZE + places.size * nodeSize });
      for (const child of node.contents.children) add(child);
    };
    if (this.#root) add(this.#root);
    const size = HEADER_SIZE + places.size * nodeSize;
    const extent: FileExtent = new FileExtent(size, () => [this.#encode(extent, places)]);
    this.#pending = { extent, places };
    return extent;
  }

  /**
   * To be called once the commit that appended the extent is in the file: its nodes, and what their records point to, will not
   * move any more. Until then every tree that is made of this one appends them again.
   */
  committed(file: FileBytes): void {
    const family = this.#family;
    family.file = file;
    if (!this.#pending) return;
    const { extent, places } = this.#pending;
    const isTooMuch = family.bytes > KEPT;
    for (const [node, { at, records }] of places) {
      if (node.address === UNDEFINED) node.address = extent.address + at;
      records.settle();
      if (isTooMuch) node.contents = null;
    }
    if (isTooMuch) Object.assign(family, { bytes: 0, budget: null });
    // The layout message keeps the extent, which would keep the nodes.
    places.clear();
    this.#pending = null;
  }

  #encode(extent: FileExtent, places: ReadonlyMap<TreeNode, Place>): Uint8Array {
    const { type, nodeSize, recordSize, splitPercent, mergePercent } = this.format;
    const { shape } = this.#family;
    const bytes = new Uint8Array(extent.size);
    const view = new DataView(bytes.buffer);
    const addressOf = (node: TreeNode): number => {
      const place = places.get(node);
      return place ? extent.address + place.at : node.address;
    };
    const root = this.#root;
    const head = new ByteWriter(HEADER_SIZE).text('BTHD').u8(0).u8(type).u32(nodeSize).u16(recordSize);
    head.u16(this.#depth).u8(splitPercent).u8(mergePercent);
    head.u64(root ? addressOf(root) : UNDEFINED).u16(root?.count ?? 0);
    head.u64(this.count);
    head.u32(lookup3(head.done()));
    bytes.set(head.done());

    const encodeNode = (node: TreeNode, depth: number): void => {
      const place = places.get(node);
      if (!place) return;
      const { at: start, records, children } = place;
      bytes.set(depth === 0 ? LEAF : INNER, start);
      bytes[start + 5] = type;
      records.encode(bytes, start + 6);
      let at = start + 6 + records.bytes.length;
      for (const child of children) {
        putU64(view, at, addressOf(child));
        at = putUint(bytes, at + 8, child.count, shape.countBytes);
        if (depth > 1) at = putUint(bytes, at, child.total, shape.totalBytes(depth));
      }
      view.setUint32(at, lookup3(bytes, start, at), true);
      for (const child of children) encodeNode(child, depth - 1);
    };
    if (root) encodeNode(root, this.#depth);
    return bytes;
  }
}

// Signatures of nodes, with the version.
const LEAF = [0x42, 0x54, 0x4c, 0x46, 0];
const INNER = [0x42, 0x54, 0x49, 0x4e, 0];
