// Making a structure that was opened ready for changes: what holds the addresses of which objects, and which of them must not move. And
// the structure of a new file.

import { atOffset, formatError, H5LogError } from '../base/errors.ts';
import { containsReference } from '../dtype/describe.ts';
import { hasPlainReferences, visitReferences } from '../dtype/heap-ids.ts';
import { driveSync, type Io } from '../storage/io.ts';
import type { ByteStorage } from '../storage/storage.ts';
import { UNDEFINED } from './format/cursor.ts';
import { Budget, FileBytes } from './format/file-bytes.ts';
import { SUPERBLOCK_SIZE, type Superblock } from './format/superblock.ts';
import { ObjectLoader } from './graph/object-loader.ts';
import { DERIVED, ObjectNode } from './graph/object-node.ts';
import { Referrers, type Survey, surveyFile } from './graph/survey.ts';
import { fillOf } from './layouts/data-reader.ts';
import { rawReferences } from './layouts/raw-references.ts';
import { elementCount } from './messages/dataspace.ts';
import * as MESSAGE from './messages/message-types.ts';
import { type OpenedStructure, openStructure } from './open.ts';
import { Structure } from './write/structure.ts';

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
    const found = yield* surveyFile(before.loader, before.root, before.heap);
    if (!found.isTree) structure.isTree = false;
    return found;
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
