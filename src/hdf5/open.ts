// Opening and creating: from the superblock and its extension (HDF5 file format specification, II.A and II.C) to a structure
// that can be read, and from there to one that can be changed.

import { atOffset, formatError, H5LogError, isH5LogError, isUnreadable } from '../base/errors.ts';
import { containsReference, containsVlen } from '../dtype/describe.ts';
import { hasPlainReferences, visitReferences } from '../dtype/heap-ids.ts';
import { attemptIo, driveSync, type Io } from '../storage/io.ts';
import type { ByteStorage } from '../storage/storage.ts';
import { ByteWriter } from './format/byte-writer.ts';
import { Cursor, UNDEFINED } from './format/cursor.ts';
import { Budget, FileBytes } from './format/file-bytes.ts';
import { type BtreeK, DEFAULT_K, readSuperblock, SUPERBLOCK_SIZE, type Superblock } from './format/superblock.ts';
import { type AttributeParts, attributeParts } from './graph/attribute-value.ts';
import { addressOf, ObjectLoader } from './graph/object-loader.ts';
import { DERIVED, HeaderMessage, ObjectNode } from './graph/object-node.ts';
import type { ObjectTree } from './graph/object-tree.ts';
import { Referrers, type Survey, surveyFile } from './graph/survey.ts';
import { fillOf } from './layouts/data-reader.ts';
import { rawReferences } from './layouts/raw-references.ts';
import { elementCount } from './messages/dataspace.ts';
import { parseLayout } from './messages/layout.ts';
import * as MESSAGE from './messages/message-types.ts';
import { type RawMessage, readHeader } from './read/object-header.ts';
import { SharedTable } from './read/shared-messages.ts';
import { Structure } from './write/structure.ts';

interface OpenedStructure {
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

/**
 * Makes a structure ready for changes: finds out which objects hold the addresses of which others, and which must not move. Objects
 * that a change touches are loaded from `storage` when it does; null, or a storage that cannot block: all are loaded now. `rewrites`:
 * data that refers to objects can be written anew when they move. `isTree`: it is known that one link leads to each object and nothing else
 * holds addresses of objects, so that nobody has to look.
 */
export function* prepareWriting(
  opened: OpenedStructure,
  storage: ByteStorage | null = null,
  rewrites = false,
  isTree = false,
): Io<void> {
  const { structure, superblock } = opened;
  const { loader, heap, root } = structure;
  const { address } = root;
  refuseWriting(superblock);
  const survey = isTree && storage?.blocking ? null : yield* loader.apart(surveyFile(loader, root, heap));
  const referrers = new Referrers(survey, surveyed, structure);
  structure.referrers = referrers;
  structure.isTree = survey?.isTree ?? true;
  for (const address of survey?.fixed ?? []) structure.pinned.set(address, 'an attribute in a heap');
  if (survey) yield* findHolders(structure, survey, rewrites);
  if (storage?.blocking) structure.now = (io) => driveSync(storage, io);
  else yield* referrers.settleAll();
  structure.writable = true;

  /** Nothing of the file is ever overwritten: it can be surveyed as it was opened. */
  function* surveyed(): Io<Survey> {
    const { structure: before } = yield* openStructure(address);
    return yield* surveyFile(before.loader, before.root, before.heap);
  }
}

/** Finds the datasets whose elements refer to objects. */
function* findHolders(structure: Structure, survey: Survey, rewrites: boolean): Io<void> {
  const { loader, heap } = structure;
  const dataBytes = new Budget(loader.file);
  const holders = new Map<ObjectNode, Set<number> | string>();
  for (const address of survey.referring) {
    const node = yield* loader.node(address);
    const found = yield* referencesOf(node);
    if (typeof found === 'string' || found.size > 0) holders.set(node, found);
  }
  const referred = new Map<number, string>();
  const left = new Set<number>();
  const paths = yield* structure.pathsOf(new Set(Array.from(holders.keys(), ({ address }) => address)));
  for (const [holder, found] of holders) {
    const path = paths.get(holder.address) ?? '';
    if (typeof found === 'string')
      structure.frozen = `${path} holds ${found}; which objects they lead to cannot be found out, so nothing may move`;
    else if (holder.attributes.has(DERIVED)) {
      for (const address of found)
        if (survey.has(address)) referred.set(address, path);
        else left.add(address);
    } else if (rewrites && canRewrite(holder))
      structure.holders.set(holder, new Set([...found].filter((address) => survey.has(address))));
    else for (const address of found) structure.pinned.set(address, path);
  }
  structure.referred = referred;
  structure.left = left;

  function canRewrite(node: ObjectNode): boolean {
    if (node.message(MESSAGE.externalFiles)) return false;
    const parts = structure.dataset(node);
    const { dtype, type, space, layout } = parts;
    if (layout?.kind === 'virtual' || elementCount(space) * type.size > MOST_REWRITTEN) return false;
    // Elements that were never written refer to what the fill value does, which is not written again.
    let isPlain = hasPlainReferences(dtype);
    const refuse = (): void => {
      isPlain = false;
    };
    const fill = fillOf(parts);
    if (fill) visitReferences(dtype, fill, 1, refuse, refuse);
    return isPlain;
  }

  function* referencesOf(node: ObjectNode): Io<Set<number> | string> {
    try {
      const parts = structure.dataset(node);
      if (!containsReference(parts.dtype)) return new Set();
      if (node.message(MESSAGE.externalFiles)) return 'references in other files';
      return yield* rawReferences(loader.file, parts, heap, dataBytes);
    } catch (error) {
      throw atOffset(error, loader.file.base + node.address);
    }
  }
}

/** The most bytes of data with references that are written anew because an object moves. */
export const MOST_REWRITTEN = 64 * 2 ** 20;

function refuseWriting(superblock: Superblock): void {
  if (superblock.addressSize !== 8 || superblock.lengthSize !== 8) {
    throw new H5LogError(
      'UNSUPPORTED',
      `a file with addresses of ${superblock.addressSize} and lengths of ${superblock.lengthSize} bytes cannot be appended to`,
    );
  }
  if (superblock.driver !== UNDEFINED)
    throw new H5LogError('UNSUPPORTED', 'a file with a driver information block cannot be appended to');
  if (isOpenForWriting(superblock)) {
    throw new H5LogError(
      'LOCKED',
      'another program has the file open for writing, or died while it had (its consistency flags are set; h5clear -s clears them)',
    );
  }
  if (superblock.bytes.length < SUPERBLOCK_SIZE) throw formatError('superblock too small', superblock.base);
}

/** Bits of the file consistency flags. */
const OPEN_FOR_WRITING = 1;
const CONSISTENT = 2;

/**
 * What the consistency flags say about writers. Releases of HDF5 before 1.8 left "open for writing" and "consistent" set in every
 * file, so that the two together mean nothing before version 3 of the superblock.
 */
function isOpenForWriting({ version, flags }: Superblock): boolean {
  const meaningless = version < 3 && flags & CONSISTENT ? OPEN_FOR_WRITING | CONSISTENT : 0;
  return (flags & ~meaningless) !== 0;
}

/** The structure of a new file: an empty root group. */
export function newStructure(): Structure {
  const loader = new ObjectLoader(new FileBytes(0, SUPERBLOCK_SIZE), null);
  const root = new ObjectNode('group');
  root.linkCount = 1;
  const structure = new Structure(loader, root);
  structure.writable = true;
  structure.markDirty(root);
  return structure;
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
