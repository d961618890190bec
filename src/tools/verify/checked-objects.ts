import { formatError, type H5LogError } from '../../base/errors.ts';
import { decodeValues } from '../../dtype/decode.ts';
import { containsReference } from '../../dtype/describe.ts';
import { visitHeapIds } from '../../dtype/heap-ids.ts';
import { UNDEFINED } from '../../hdf5/format/cursor.ts';
import { attributeParts } from '../../hdf5/graph/attribute-value.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { readAnchor } from '../../log/format/anchor.ts';
import { LOG_GROUP, LOGS_GROUP } from '../../log/format/log-group.ts';
import { logNames } from '../../log/format/names.ts';
import type { Io } from '../../storage/io.ts';
import { checkData, overlaps, type Problem, type StoredRanges } from './checked-data.ts';
import { mustBeDamage } from './commit-history.ts';

/** What a look at an object found; objects never change, so one look is enough for all states. */
interface Look {
  readonly problems: readonly Problem[];
  /** Addresses of heap collections, which have no checksum of their own. */
  readonly heaps: readonly number[];
  /** Where its links lead, with their names. */
  readonly links: readonly (readonly [string, number])[];
  /** The number of a dataset of the log, and the file offset from which on its blocks count: older ones are in its ordinary layout. */
  readonly id: number;
  readonly floor: number;
  readonly refers: boolean;
  /** Where the data of an ordinary layout lies. */
  readonly stored: StoredRanges | null;
  /** Where the heaps lie that its elements point into. */
  readonly pointedTo: StoredRanges | null;
}

/** What is in a state of a file. */
export interface Walked {
  readonly problems: Problem[];
  readonly heaps: ReadonlySet<number>;
  /** The datasets of the log, by their numbers. */
  readonly datasets: ReadonlyMap<number, LoggedObject>;
  /** Where the layouts of datasets of the log, which were published, have their data. */
  readonly published: readonly StoredRanges[];
  readonly objects: number;
}

export interface LoggedObject {
  readonly path: string;
  /** Blocks below this file offset are not read. */
  readonly floor: number;
  /** Its elements refer to objects: if another program has moved the log, all of its blocks are read. */
  readonly refers: boolean;
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
    const datasets = new Map<number, LoggedObject>();
    const published: StoredRanges[] = [];
    const stored: StoredRanges[] = [];
    const paths = new Map<number, string>([[structure.root.address, '/']]);
    for (const [address, path] of paths) {
      let look = this.#looks.get(address);
      if (!look) {
        look = yield* lookAt(structure, address, path, isLog, (bytes) => this.#summed(bytes));
        this.#looks.set(address, look);
      }
      problems.push(...look.problems);
      for (const heap of look.heaps) heaps.add(heap);
      if (look.stored) stored.push(look.stored);
      if (look.id >= 0) {
        const other = datasets.get(look.id);
        if (other !== undefined)
          problems.push({ object: path, what: `${path} and ${other.path} have the same number ${look.id} in the log` });
        datasets.set(look.id, { path, floor: look.floor, refers: look.refers });
        if (look.stored) published.push(look.stored);
        if (look.pointedTo) published.push(look.pointedTo);
      }
      for (const [name, target] of look.links) {
        const shown = isLog ? logNames.shownInside(name) : name;
        if (!paths.has(target)) paths.set(target, `${path === '/' ? '' : path}/${shown}`);
      }
    }
    problems.push(...overlaps(stored, structure.loader.file.base));
    return { problems, heaps, datasets, published, objects: paths.size };
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
    return { problems, heaps, links: [], id: -1, floor: 0, refers: false, stored: null, pointedTo: null };
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
  for (const { type, offset } of node.otherMessages)
    if (type === MESSAGE.attribute)
      problems.push({ object: path, what: `an attribute of ${path} cannot be read`, offset });
  const links: [string, number][] = [];
  for (const { name, target } of node.links.values()) {
    if (target.kind !== 'hard') continue;
    if (target.address === UNDEFINED)
      problems.push({ object: path, what: `link ${name} of ${path} leads to no object` });
    else links.push([name, target.address]);
  }
  let id = -1;
  let floor = 0;
  let refers = false;
  let stored: StoredRanges | null = null;
  let pointedTo: StoredRanges | null = null;
  if (node.kind === 'dataset') {
    try {
      const isOwn = isLog && [LOG_GROUP, LOGS_GROUP].some((own) => path.startsWith(`/${own}/`));
      const data = yield* checkData(structure, node, structure.dataset(node), path, isLog, onChunk);
      problems.push(...data.problems);
      // The log's own data may be that of published datasets as well.
      if (!isOwn) stored = data.stored;
      pointedTo = data.heaps;
      const anchor = isLog && !isOwn ? yield* readAnchor(structure, node) : undefined;
      if (anchor) id = anchor.id;
      if (anchor?.view) floor = anchor.view.end;
      refers = containsReference(structure.dataset(node).dtype);
    } catch (error) {
      note(error, path);
    }
  }
  return { problems, heaps, links, id, floor, refers, stored, pointedTo };
}

export function problemOf(error: H5LogError, what: string, object: string, offset?: number): Problem {
  const at = error.offset ?? offset;
  return { ...(at !== undefined && { offset: at }), what: `${what}: ${error.message}`, object };
}
