import { formatError } from '../errors.ts';
import type { Io } from '../storage/drive.ts';
import { Cursor, UNDEFINED } from './cursor.ts';
import type { FileBytes } from './file-bytes.ts';
import type { LinkTarget } from './link-message.ts';

export interface OldLink {
  readonly name: string;
  readonly target: LinkTarget;
}

/** Links of a group from before HDF5 1.8: a version 1 B-tree of symbol table nodes, with names in a local heap. */
export function* readSymbolTable(file: FileBytes, btree: number, heap: number): Io<OldLink[]> {
  const names = yield* readLocalHeap(file, heap);
  const links: OldLink[] = [];
  yield* walkBtree1(file, btree, 0, file.lengthSize, function* (_key, child) {
    yield* readSymbolNode(file, child, names, links);
  });
  return links;
}

function* readLocalHeap(file: FileBytes, address: number): Io<Cursor> {
  const header = yield* file.cursor(address, 8 + 2 * file.lengthSize + file.addressSize, 'local heap');
  header.signature('HEAP');
  header.expect(0, 'version of the local heap');
  header.skip(3);
  const size = header.uint(file.lengthSize);
  header.skip(file.lengthSize);
  return yield* file.cursor(header.address(file.addressSize), size, 'local heap data');
}

function heapString(heap: Cursor, at: number): string {
  if (at >= heap.bytes.length) throw formatError(`name at ${at} of a local heap of ${heap.bytes.length} bytes`, heap.base);
  heap.at = at;
  return heap.cstring('link name');
}

function* readSymbolNode(file: FileBytes, address: number, names: Cursor, links: OldLink[]): Io<void> {
  const head = yield* file.cursor(address, 8, 'symbol table node');
  head.signature('SNOD');
  head.expect(1, 'version of the symbol table node');
  head.skip(1);
  const count = head.u16();
  const entrySize = 2 * file.addressSize + 24;
  const node = yield* file.cursor(address + 8, count * entrySize, 'symbol table node');
  for (let i = 0; i < count; i++) {
    const name = heapString(names, node.uint(file.addressSize));
    const header = node.address(file.addressSize);
    const cacheType = node.u32();
    node.skip(4);
    const scratch = node.u32();
    node.skip(12);
    if (name === '') node.fail('link without a name');
    if (cacheType === 2) links.push({ name, target: { kind: 'soft', path: heapString(names, scratch) } });
    else links.push({ name, target: { kind: 'hard', address: header } });
  }
}

/**
 * Visits the leaves of a version 1 B-tree in key order. `type` is 0 for groups, 1 for chunks. The visitor gets the key left
 * of each child and the child's address.
 */
export function* walkBtree1(
  file: FileBytes,
  root: number,
  type: 0 | 1,
  keySize: number,
  visit: (key: Cursor, child: number) => Io<void>,
): Io<void> {
  const seen = new Set<number>();
  yield* walkNode(root, -1);

  function* walkNode(address: number, expectedLevel: number): Io<void> {
    if (address === UNDEFINED) return;
    if (seen.has(address)) throw formatError('B-tree node that is its own ancestor', file.base + address);
    seen.add(address);
    const head = yield* file.cursor(address, 8 + 2 * file.addressSize, 'B-tree node');
    head.signature('TREE');
    head.expect(type, 'type of the B-tree node');
    const level = head.u8();
    if (expectedLevel >= 0 && level !== expectedLevel) head.fail(`B-tree node of level ${level}, expected ${expectedLevel}`);
    const count = head.u16();
    const size = count * (keySize + file.addressSize) + keySize;
    const body = yield* file.cursor(address + head.bytes.length, size, 'B-tree node');
    for (let i = 0; i < count; i++) {
      const keyAt = body.need(keySize, 'B-tree key');
      const child = body.address(file.addressSize);
      if (level > 0) yield* walkNode(child, level - 1);
      else yield* visit(new Cursor(body.bytes, body.base, keyAt, keyAt + keySize), child);
    }
  }
}
