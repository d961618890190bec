// Opening: from the superblock and its extension (HDF5 file format specification, II.A and II.C) to a structure that can be read.
// prepare-writing.ts makes it ready for changes.

import { formatError, H5LogError, isH5LogError, isUnreadable } from '../base/errors.ts';
import { containsReference, containsVlen } from '../dtype/describe.ts';
import { attemptIo, type Io } from '../storage/io.ts';
import { ByteWriter } from './format/byte-writer.ts';
import { Cursor, UNDEFINED } from './format/cursor.ts';
import { Budget, FileBytes } from './format/file-bytes.ts';
import { type BtreeK, DEFAULT_K, readSuperblock, type Superblock } from './format/superblock.ts';
import { type AttributeParts, attributeParts } from './graph/attribute-value.ts';
import { addressOf, ObjectLoader } from './graph/object-loader.ts';
import { HeaderMessage, ObjectNode } from './graph/object-node.ts';
import type { ObjectTree } from './graph/object-tree.ts';
import { parseLayout } from './messages/layout.ts';
import * as MESSAGE from './messages/message-types.ts';
import { type RawMessage, readHeader } from './read/object-header.ts';
import { SharedTable } from './read/shared-messages.ts';
import { Structure } from './write/structure.ts';

export interface OpenedStructure {
  readonly structure: Structure;
  readonly superblock: Superblock;
  /** The superblock extension to be written with the first commit, if the file needs one. */
  readonly extension: ObjectNode | null;
}

/** How a structure is read. */
interface ReadingMode {
  /** Every read costs a request. */
  readonly remote?: boolean;
  /** The links of groups are read when they are wanted. */
  readonly lazy?: boolean;
  /** Nobody will make it ready for changes. */
  readonly readOnly?: boolean;
}

/** What is needed of a superblock extension: the sizes of B-tree nodes and the shared message table. */
interface Extension {
  readonly k: BtreeK | null;
  readonly shared: RawMessage | null;
}

/**
 * Opens the structure for reading. `root` is the address of the root group of an earlier commit, to open that one. `known` is an
 * earlier state of a file that was only appended to since: objects that did not move are not read again.
 */
export function* openStructure(root?: number, known?: ObjectTree, how: ReadingMode = {}): Io<OpenedStructure> {
  const superblock = yield* readSuperblock();
  if (known) return yield* reopened(superblock, root, known);
  const file = new FileBytes(superblock.base, superblock.end, superblock.addressSize, superblock.lengthSize);
  file.remote = how.remote ?? false;
  if (superblock.driver !== UNDEFINED) yield* mustBeOneFile(file, superblock.driver);
  const extension = yield* readExtension(file, superblock.extension);
  const shared = extension.shared
    ? yield* SharedTable.open(file, new Cursor(extension.shared.body, extension.shared.offset))
    : null;
  const loader = new ObjectLoader(file, shared);
  loader.lazy = how.lazy ?? false;
  loader.readOnly = how.readOnly ?? false;
  const node = yield* loader.node(root ?? superblock.root);
  if (node.kind !== 'group') throw formatError('the root is not a group', file.base + node.address);
  const structure = new Structure(loader, node);
  structure.chunkFanout = 2 * (extension.k ?? superblock.k).chunk;
  return { structure, superblock, extension: newExtension(extension, superblock) };
}

function* reopened(superblock: Superblock, root: number | undefined, known: ObjectTree): Io<OpenedStructure> {
  const { loader, heap } = known;
  loader.reopen(superblock.end);
  // The new state has most of what was loaded of the one before.
  loader.forgetOthers(known.root);
  const node = yield* loader.node(root ?? superblock.root);
  if (node.kind !== 'group') throw formatError('the root is not a group', loader.file.base + node.address);
  return { structure: new Structure(loader, node, heap), superblock, extension: null };
}

/**
 * Loads all objects and the heap collections of their attributes, for storages that can only be read asynchronously. What is behind
 * the link `except` of the root is loaded by those who need it.
 */
export function* loadEverything(structure: Structure, except?: string): Io<void> {
  const { loader, root } = structure;
  const all = yield* loadBelow(structure, root, Infinity, false, except);
  for (const node of all) loader.complete.add(node);
}

/**
 * Loads an object and what is below it, down to `depth`: headers with links and attributes, and the heap collections that values of
 * attributes are in. Objects of one level are read together. `resolved`: paths in references of attributes, too, and what soft links lead
 * to; not needed where everything is loaded.
 */
export function* loadBelow(
  structure: Structure,
  from: ObjectNode,
  depth: number,
  resolved: boolean,
  except?: string,
): Io<ReadonlySet<ObjectNode>> {
  const { loader } = structure;
  const all = new Set<ObjectNode>([from]);
  let level = [from];
  for (let left = depth; ; left--) {
    level = level.filter((node) => !loader.complete.has(node));
    for (const node of level) yield* node === from ? loader.whole(node) : unlessDamaged(loader.whole(node));
    yield* loadValues(structure, level, resolved);
    for (const node of level) yield* loadMappings(structure, node);
    if (left <= 0 || level.length === 0) return all;
    const next: ObjectNode[] = [];
    const links = level.flatMap((group) => Array.from(group.links.values(), (link) => ({ group, link })));
    if (except && level[0] === from) {
      const at = links.findIndex(({ link }) => link.name === except);
      if (at >= 0) links.splice(at, 1);
    }
    for (let i = 0; i < links.length; i += TOGETHER) {
      const some = links.slice(i, i + TOGETHER);
      yield* loader.ahead(some.map(({ link }) => link));
      for (const { group, link } of some) {
        const found = resolved ? structure.target(group, link) : loader.follow(link);
        const address = addressOf(link);
        const target = yield* unlessDamaged(
          found,
          (error) => address !== UNDEFINED && loader.failed.set(address, error),
        );
        if (!target || all.has(target)) continue;
        all.add(target);
        next.push(target);
      }
    }
    level = next;
  }
}

/** Runs code that loads one of many objects: what is damaged, or not known, is an error for those who ask for it. */
function* unlessDamaged<T>(io: Io<T>, failed?: (error: unknown) => void): Io<T | null> {
  const done = yield* attemptIo(io);
  if ('result' in done) return done.result;
  const { error } = done;
  if (!isUnreadable(error)) throw error;
  failed?.(error);
  return null;
}

/** Loads the root: its attributes, and its links if they are few. */
export function* loadRoot(structure: Structure): Io<void> {
  const { loader, root } = structure;
  if (!(yield* loader.hasManyLinks(root))) yield* loader.whole(root);
  yield* loadValues(structure, [root], true);
}

/** Objects whose headers are read ahead at once. */
const TOGETHER = 4096;

/** Loads what values of attributes, and fill values, refer to. */
function* loadValues(structure: Structure, nodes: readonly ObjectNode[], resolved: boolean): Io<void> {
  const { loader, heap } = structure;
  const values: Pick<AttributeParts, 'dtype' | 'data' | 'count'>[] = [];
  const collections = new Set<number>();
  const add = (parts: Pick<AttributeParts, 'dtype' | 'data' | 'count'>): void => {
    for (const collection of heap.missing(parts.dtype, parts.data, parts.count)) collections.add(collection);
    values.push(parts);
  };
  const referring: [ObjectNode, string][] = [];
  for (const node of nodes) {
    if (node.kind === 'dataset')
      sound(() => {
        const { dtype, type, fill } = structure.dataset(node);
        const { value: data } = fill;
        if (data instanceof Uint8Array && data.length === type.size && containsVlen(dtype))
          add({ dtype, data, count: 1 });
      });
    for (const attribute of node.attributes.values())
      sound(() => {
        const parts = attributeParts(attribute, loader.file.lengthSize);
        if (containsVlen(parts.dtype) || containsReference(parts.dtype)) add(parts);
        if (containsReference(parts.dtype)) referring.push([node, attribute.name]);
      });
  }
  yield* unlessDamaged(heap.ahead(collections));
  for (const { dtype, data, count } of values) yield* unlessDamaged(heap.load(dtype, data, count));
  if (resolved) for (const [node, name] of referring) yield* unlessDamaged(structure.attribute(node, name));
}

/** Runs code that looks at one of many values: what is damaged, or not known, is an error for those who read it. */
function sound(look: () => void): void {
  try {
    look();
  } catch (error) {
    if (!isUnreadable(error)) throw error;
  }
}

/** Loads what says where the data of a virtual dataset is. One that is damaged fails when it is read. */
function* loadMappings({ heap, loader }: Structure, node: ObjectNode): Io<void> {
  const message = node.message(MESSAGE.layout);
  if (!message) return;
  try {
    const layout = parseLayout(new Cursor(message.content, message.offset), loader.file);
    if (layout.kind === 'virtual' && layout.heap > 0) yield* heap.object(layout.heap, layout.index);
  } catch (error) {
    if (!isH5LogError(error, 'FORMAT')) throw error;
  }
}

/** Refuses a file whose driver information block says that it is one part of several. */
function* mustBeOneFile(file: FileBytes, address: number): Io<void> {
  const block = yield* file.cursor(address, 16, 'driver information');
  block.skip(8);
  if (/^NCSA(fami|mult)$/.test(String.fromCharCode(...block.take(8)))) throw severalParts(file.base + address);
}

function severalParts(offset: number): H5LogError {
  return new H5LogError('UNSUPPORTED', 'the file is one part of several (driver information)', { offset });
}

function* readExtension(file: FileBytes, address: number): Io<Extension> {
  if (address === UNDEFINED) return { k: null, shared: null };
  const header = yield* readHeader(file, address, new Budget(file));
  const find = (type: number): RawMessage | null => header.messages.find((message) => message.type === type) ?? null;
  const image = find(MESSAGE.cacheImage);
  if (image) {
    const cursor = new Cursor(image.body, image.offset, 1);
    if (cursor.address(file.addressSize) !== UNDEFINED) {
      throw new H5LogError(
        'UNSUPPORTED',
        'the file holds a metadata cache image; open and close it with libhdf5 first',
        { offset: image.offset },
      );
    }
  }
  const kMessage = find(MESSAGE.btreeK);
  let k: BtreeK | null = null;
  if (kMessage) {
    const cursor = new Cursor(kMessage.body, kMessage.offset);
    cursor.expect(0, 'version of the B-tree K values');
    k = { chunk: cursor.u16(), groupInternal: cursor.u16(), groupLeaf: cursor.u16() };
  }
  if (find(MESSAGE.driverInfo)) throw severalParts(file.base + address);
  return { k, shared: find(MESSAGE.sharedTable) };
}

/**
 * The superblock extension of the first commit. It has the B-tree sizes that old groups and chunk indexes were built with, and
 * the shared message table; it leaves out free-space information and paging, which appending makes wrong.
 */
function newExtension(old: Extension, superblock: Superblock): ObjectNode | null {
  const k = old.k ?? superblock.k;
  const messages: [number, Uint8Array][] = [];
  if (
    k.chunk !== DEFAULT_K.chunk ||
    k.groupInternal !== DEFAULT_K.groupInternal ||
    k.groupLeaf !== DEFAULT_K.groupLeaf
  ) {
    messages.push([MESSAGE.btreeK, new ByteWriter(7).u8(0).u16(k.chunk).u16(k.groupInternal).u16(k.groupLeaf).done()]);
  }
  if (old.shared) messages.push([MESSAGE.sharedTable, old.shared.body]);
  if (messages.length === 0) return null;
  const node = new ObjectNode('dataset');
  node.flags = 0;
  node.linkCount = 1;
  for (const [type, bytes] of messages) node.firstChunk.add(new HeaderMessage(node, type, 0, 0, bytes, false));
  return node;
}
