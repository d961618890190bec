// Symbol tables: the links of groups from before HDF5 1.8, in a version 1 B-tree of symbol table nodes, with names in a local
// heap (HDF5 file format specification, III.B to III.D).

import { formatError } from '../../base/errors.ts';
import type { Io } from '../../storage/io.ts';
import { type Cursor, UNDEFINED } from '../format/cursor.ts';
import { Budget, type FileBytes } from '../format/file-bytes.ts';
import type { LinkTarget } from '../messages/link.ts';
import { readBtree1Node, walkBtree1 } from './btree.ts';

interface OldLink {
  readonly name: string;
  readonly target: LinkTarget;
}

/** Reads the links of a symbol table. Its tree, nodes and heap count against the budget. */
export function* readSymbolTable(file: FileBytes, btree: number, heap: number, budget: Budget): Io<OldLink[]> {
  const names = new LocalHeap(yield* readLocalHeap(file, heap, budget));
  const links: OldLink[] = [];
  yield* walkBtree1(file, btree, 0, file.lengthSize, budget, function* (_key, child) {
    yield* readSymbolNode(file, child, names, links, budget);
  });
  return links;
}

/** Looks for a name in a symbol table: only nodes on the way to it are read, and the heap with the names. */
export function* findSymbol(file: FileBytes, btree: number, heap: number, name: string): Io<LinkTarget | undefined> {
  const budget = new Budget(file);
  const data = yield* readLocalHeap(file, heap, budget);
  const wanted = new TextEncoder().encode(name);
  const { lengthSize, addressSize } = file;
  let address = btree;
  for (let expected = -1; address !== UNDEFINED; ) {
    const { level, count, body } = yield* readBtree1Node(file, address, 0, lengthSize, expected);
    // The key behind a child is the last name in it.
    let child = UNDEFINED;
    for (let i = 0; i < count && child === UNDEFINED; i++) {
      body.skip(lengthSize);
      const at = body.address(addressSize);
      const key = body.uint(lengthSize);
      body.at -= lengthSize;
      if (compareText(data.bytes, key, wanted) >= 0) child = at;
    }
    if (level === 0 || child === UNDEFINED) {
      address = child;
      break;
    }
    expected = level - 1;
    address = child;
  }
  if (address === UNDEFINED) return undefined;
  const links: OldLink[] = [];
  yield* readSymbolNode(file, address, new LocalHeap(data), links, budget);
  return links.find((link) => link.name === name)?.target;
}

/** Compares text that ends with a NUL with a name, byte by byte, as strcmp does. */
function compareText(bytes: Uint8Array, at: number, name: Uint8Array): number {
  for (let i = 0; ; i++) {
    const [a, b] = [bytes[at + i] ?? 0, name[i] ?? 0];
    if (a !== b || a === 0) return a - b;
  }
}

/** The bytes of a local heap, in which names lie. */
export function* readLocalHeap(file: FileBytes, address: number, budget: Budget): Io<Cursor> {
  const header = yield* file.cursor(address, 8 + 2 * file.lengthSize + file.addressSize, 'local heap');
  header.signature('HEAP');
  header.expect(0, 'version of the local heap');
  header.skip(3);
  const size = header.uint(file.lengthSize);
  header.skip(file.lengthSize);
  const data = header.address(file.addressSize);
  budget.spend(size, data, 'local heaps');
  return yield* file.cursor(data, size, 'local heap data');
}

/** A local heap. Names in it do not overlap, so that all names together are no longer than the heap. */
class LocalHeap {
  readonly #data: Cursor;
  #left: number;

  constructor(data: Cursor) {
    this.#data = data;
    this.#left = data.bytes.length;
  }

  text(at: number): string {
    const data = this.#data;
    if (at >= data.bytes.length)
      throw formatError(`name at ${at} of a local heap of ${data.bytes.length} bytes`, data.base);
    data.at = at;
    const name = data.cstring('link name');
    this.#left -= data.at - at;
    if (this.#left < 0) data.fail('names that overlap in a local heap');
    return name;
  }
}

function* readSymbolNode(
  file: FileBytes,
  address: number,
  names: LocalHeap,
  links: OldLink[],
  budget: Budget,
): Io<void> {
  const head = yield* file.cursor(address, 8, 'symbol table node');
  head.signature('SNOD');
  head.expect(1, 'version of the symbol table node');
  head.skip(1);
  const count = head.u16();
  const entrySize = file.lengthSize + file.addressSize + 24;
  const node = yield* file.cursor(address + 8, count * entrySize, 'symbol table node');
  budget.spend(8 + count * entrySize, address, 'symbol table nodes');
  for (let i = 0; i < count; i++) {
    const name = names.text(node.uint(file.lengthSize));
    const header = node.address(file.addressSize);
    const cacheType = node.u32();
    node.skip(4);
    const scratch = node.u32();
    node.skip(12);
    if (name === '') node.fail('link without a name');
    if (cacheType === 2) links.push({ name, target: { kind: 'soft', path: names.text(scratch) } });
    else links.push({ name, target: { kind: 'hard', address: header } });
  }
}
