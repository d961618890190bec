import { lookup3 } from '../../base/checksum.ts';
import { formatError, type H5LogError, isH5LogError } from '../../base/errors.ts';
import { nothing } from '../../connector/open-log.ts';
import { decodeValues } from '../../dtype/decode.ts';
import { visitHeapIds } from '../../dtype/heap-ids.ts';
import { checkFletcher32 } from '../../filter/fletcher32.ts';
import { PendingBytes, unfilter } from '../../filter/pipeline.ts';
import { UNDEFINED } from '../../hdf5/format/cursor.ts';
import { Budget } from '../../hdf5/format/file-bytes.ts';
import { attributeParts } from '../../hdf5/graph/attribute-value.ts';
import type { DatasetParts } from '../../hdf5/graph/dataset-header.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import { readChunkIndex } from '../../hdf5/layouts/chunks/chunk-index.ts';
import { elementCount } from '../../hdf5/messages/dataspace.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import { readBtree2, walkBtree1 } from '../../hdf5/read/btree.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { readAnchor } from '../../log/format/anchor.ts';
import { LOG_GROUP } from '../../log/format/log-group.ts';
import { logNames } from '../../log/format/names.ts';
import { sizeOf } from '../../space/shape.ts';
import { type Io, settle } from '../../storage/io.ts';
import { mustBeDamage } from './commit-history.ts';

/** Something that is wrong with a file. */
export interface Problem {
  /** File offset. */
  readonly offset?: number;
  readonly what: string;
  readonly object?: string;
  /** Structure that does not match its checksum, though it can be read: damage, or a change by another program. */
  readonly mismatch?: true;
}

/** What a look at an object found; objects never change, so one look is enough for all states. */
interface Look {
  readonly problems: readonly Problem[];
  /** Addresses of heap collections, which have no checksum of their own. */
  readonly heaps: readonly number[];
  /** Where its links lead, with their names. */
  readonly links: readonly (readonly [string, number])[];
  /** The number of a dataset of the log. */
  readonly id: number;
}

/** What is in a state of a file. */
export interface Walked {
  readonly problems: Problem[];
  readonly heaps: ReadonlySet<number>;
  /** The datasets of the log, by their numbers. */
  readonly datasets: ReadonlyMap<number, string>;
  readonly objects: number;
}

/** Looks at every object of one state after the other; what states share is looked at once. */
export class CheckedObjects {
  /** Chunks whose fletcher32 checksum was compared. */
  chunkSums = 0;
  /** Called with the bytes of each of these chunks; may throw to stop. */
  onChunk: (bytes: number) => void = () => {};
  readonly #looks = new Map<number, Look>();

  *walk(structure: Structure, isLog: boolean): Io<Walked> {
    const problems: Problem[] = [];
    const heaps = new Set<number>();
    const datasets = new Map<number, string>();
    const paths = new Map<number, string>([[structure.root.address, '/']]);
    for (const [address, path] of paths) {
      let look = this.#looks.get(address);
      if (!look) {
        look = yield* lookAt(structure, address, path, isLog, (bytes) => this.#summed(bytes));
        this.#looks.set(address, look);
      }
      problems.push(...look.problems);
      for (const heap of look.heaps) heaps.add(heap);
      if (look.id >= 0) {
        const other = datasets.get(look.id);
        if (other !== undefined)
          problems.push({ object: path, what: `${path} and ${other} have the same number ${look.id} in the log` });
        datasets.set(look.id, path);
      }
      for (const [name, target] of look.links) {
        const shown = isLog ? logNames.shownInside(name) : name;
        if (!paths.has(target)) paths.set(target, `${path === '/' ? '' : path}/${shown}`);
      }
    }
    return { problems, heaps, datasets, objects: paths.size };
  }

  #summed(bytes: number): void {
    this.chunkSums++;
    this.onChunk(bytes);
  }
}

function* lookAt(
  structure: Structure,
  address: number,
  path: string,
  isLog: boolean,
  onChunk: (bytes: number) => void,
): Io<Look> {
  const { loader } = structure;
  const problems: Problem[] = [];
  const heaps: number[] = [];
  const note = (error: unknown, what: string): void => {
    problems.push(problemOf(mustBeDamage(error), what, path, loader.file.base + address));
  };
  let node: ObjectNode;
  try {
    node = yield* loader.node(address);
  } catch (error) {
    note(error, path);
    return { problems, heaps, links: [], id: -1 };
  }
  for (const attribute of node.attributes.values()) {
    try {
      const { dtype, data, count } = attributeParts(attribute, loader.file.lengthSize);
      yield* structure.heap.load(dtype, data, count);
      visitHeapIds(dtype, data, count, (collection, index) => {
        heaps.push(collection);
        const content = structure.heap.get(collection, index);
        if (!content) throw formatError(`there is no object ${index} in the heap at ${collection}`);
        return content;
      });
      decodeValues(dtype, data, count, { heap: structure.heap.contents(), path: () => '' });
    } catch (error) {
      note(error, `attribute ${attribute.name} of ${path}`);
    }
  }
  const links: [string, number][] = [];
  for (const { name, target } of node.links.values()) {
    if (target.kind !== 'hard') continue;
    if (target.address === UNDEFINED)
      problems.push({ object: path, what: `link ${name} of ${path} leads to no object` });
    else links.push([name, target.address]);
  }
  let id = -1;
  if (node.kind === 'dataset') {
    try {
      const parts = structure.dataset(node);
      yield* checkLayout(structure, node, parts);
      problems.push(...(yield* checkChunkSums(structure, node, parts, path, onChunk)));
      if (isLog && !path.startsWith(`/${LOG_GROUP}/`)) id = (yield* readAnchor(structure, node))?.id ?? -1;
    } catch (error) {
      note(error, path);
    }
  }
  return { problems, heaps, links, id };
}

/** The data of an ordinary dataset must lie inside the file, and its index must be readable. */
function* checkLayout(structure: Structure, node: ObjectNode, parts: DatasetParts): Io<void> {
  const { file } = structure.loader;
  const { layout } = parts;
  const inside = (address: number, size: number, what: string): void => {
    if (address + size > file.end)
      throw formatError(`${what} of ${size} bytes reaches beyond the end of the file`, file.base + address);
  };
  if (!layout || layout.kind === 'compact' || node.message(MESSAGE.externalFiles)) return;
  if (layout.kind === 'contiguous') {
    if (layout.address === UNDEFINED) return;
    const needed = elementCount(parts.space) * parts.type.size;
    if (layout.size < needed) throw formatError(`${layout.size} bytes of data where its shape asks for ${needed}`);
    inside(layout.address, layout.size, 'data');
    return;
  }
  if (layout.kind === 'virtual') return;
  const { index, chunk } = layout;
  if (index.address === UNDEFINED) return;
  const chunkBytes = layout.elementSize * sizeOf(chunk);
  switch (index.kind) {
    case 'single':
      inside(index.address, index.filtered?.size ?? chunkBytes, 'chunk');
      return;
    case 'implicit':
      inside(index.address, chunkBytes, 'chunk');
      return;
    case 'btree1':
      yield* walkBtree1(file, index.address, 1, 8 + 8 * (chunk.length + 1), new Budget(file), function* (key, child) {
        inside(child, key.u32(), 'chunk');
        yield* nothing(undefined);
      });
      return;
    case 'btree2':
      yield* readBtree2(file, index.address, [10, 11], new Budget(file));
      return;
    default: {
      // Arrays: signature, version, client, five or two bytes, then lengths and an address, and a checksum behind all.
      const isFixed = index.kind === 'fixedArray';
      const size = isFixed
        ? 8 + file.lengthSize + file.addressSize + 4
        : 12 + 6 * file.lengthSize + file.addressSize + 4;
      const cursor = yield* file.cursor(index.address, size, 'chunk index');
      cursor.signature(isFixed ? 'FAHD' : 'EAHD');
      const sum = lookup3(cursor.bytes, 0, size - 4);
      cursor.at = size - 4;
      if (cursor.u32() !== sum) throw formatError('checksum of a chunk index is wrong', file.base + index.address);
    }
  }
}

const FLETCHER32 = 3;

/** Compares the fletcher32 checksums of an ordinary dataset's chunks; other filters that follow it are undone first. */
function* checkChunkSums(
  { loader: { file } }: Structure,
  node: ObjectNode,
  { layout, filters, space }: DatasetParts,
  path: string,
  onChunk: (bytes: number) => void,
): Io<Problem[]> {
  const problems: Problem[] = [];
  const at = filters.findIndex(({ id }) => id === FLETCHER32);
  if (at < 0 || layout?.kind !== 'chunked' || space.kind !== 'simple') return problems;
  const { chunk, elementSize, index } = layout;
  const { shape, maxShape } = space;
  // Bit 0 of the flags of a version 4 layout: chunks that reach beyond the shape are stored without filters.
  const [version = 0, , flags = 0] = node.message(MESSAGE.layout)?.content ?? [];
  const hasPlainEdges = version >= 4 && (flags & 1) !== 0;
  const isEdge = (cell: readonly number[]): boolean =>
    cell.some((k, d) => (k + 1) * (chunk[d] as number) > (shape[d] as number));
  const whole = { size: elementSize * sizeOf(chunk), elementSize, shape: chunk };
  const chunks = yield* readChunkIndex(file, index, { maxShape, chunk, elementSize, filtered: true });
  const budget = new Budget(file);
  for (const { cell, address, size, mask } of chunks) {
    if (mask & (1 << at) || (hasPlainEdges && isEdge(cell))) continue;
    budget.spend(size, address, 'chunks');
    const isOutermost = filters.every((_, i) => i <= at || mask & (1 << i));
    try {
      const bytes = yield* file.read(address, size, 'chunk');
      if (isOutermost) checkFletcher32(bytes);
      else {
        const plain = unfilter(bytes, filters, mask, whole);
        if (plain instanceof PendingBytes) yield* settle(plain);
      }
    } catch (error) {
      // A filter of others around the checksum: nobody here can compare it.
      if (isH5LogError(error, 'UNSUPPORTED')) continue;
      const { message } = mustBeDamage(error);
      const start = cell.map((k, d) => k * (chunk[d] as number));
      const what = `chunk at (${start.join(', ')}) of ${path}: ${message}`;
      problems.push({ object: path, offset: file.base + address, what });
    }
    onChunk(size);
  }
  return problems;
}

export function problemOf(error: H5LogError, what: string, object: string, offset?: number): Problem {
  const at = error.offset ?? offset;
  return { ...(at !== undefined && { offset: at }), what: `${what}: ${error.message}`, object };
}
