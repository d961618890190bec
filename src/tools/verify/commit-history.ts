import { H5LogError } from '../../base/errors.ts';
import { ObjectLoader } from '../../hdf5/graph/object-loader.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import { openStructure } from '../../hdf5/open.ts';
import type { SharedTable } from '../../hdf5/read/shared-messages.ts';
import { Structure } from '../../hdf5/write/structure.ts';
import { type CommitRecord, MAGIC, parseRecords, recordSize } from '../../log/format/commit-record.ts';
import { type LogCounts, readCounts, recordsGroup, SERIES } from '../../log/format/log-group.ts';
import type { Io } from '../../storage/io.ts';
import type { CheckedFile } from './checked-file.ts';
import type { Range } from './commit-sums.ts';

/** The most bytes that a record may have for the scan: some 50,000 ranks. */
const MOST_RECORD = 2 ** 20;

/** A state: the address of its root group, and the file offset where it ends. */
export interface State {
  readonly root: number;
  readonly end: number;
}

/** What the records of a file say, and where they were found. */
export interface History {
  /** Oldest first. */
  readonly records: readonly CommitRecord[];
  /** Why they had to be searched for. */
  readonly trouble: H5LogError | null;
  /** null: the file has no log, or nothing is left of it. */
  readonly counts: LogCounts | null;
}

/** Opens states of a file, whatever became of its superblock. */
export class States {
  readonly file: CheckedFile;
  #shared: SharedTable | null | undefined;

  constructor(file: CheckedFile) {
    this.file = file;
  }

  /** Not cut off at its end: other software may have changed it in place, and put behind it what it had no room for. */
  *open({ root }: Pick<State, 'root'>, end = this.file.end): Io<Structure> {
    const loader = new ObjectLoader(this.file.upTo(end), yield* this.#table());
    return new Structure(loader, yield* loader.node(root));
  }

  /** Messages that objects of libhdf5 share are found through the superblock. */
  *#table(): Io<SharedTable | null> {
    if (this.#shared === undefined) {
      this.#shared = null;
      try {
        if (this.file.superblock) this.#shared = (yield* openStructure()).structure.loader.shared;
      } catch {
        // What needs it will say so.
      }
    }
    return this.#shared;
  }

  /** The state that the superblock names. */
  get present(): State | null {
    const { superblock, base } = this.file;
    return superblock && { root: superblock.root, end: base + superblock.end };
  }

  /** The records that a state knows of. */
  *recordsOf(state: State): Io<{ records: CommitRecord[]; counts: LogCounts | null }> {
    const structure = yield* this.open(state);
    const counts = yield* readCounts(structure);
    const group = counts && (yield* groupOfRecords(structure, counts));
    const records: CommitRecord[] = [];
    for (let k = 0; group?.links.has(`${SERIES.records}${k}`); k++) {
      const { start, end } = yield* rangeOf(structure, group, `${SERIES.records}${k}`);
      const bytes = yield* structure.loader.file.read(start - this.file.base, end - start, 'commit records');
      records.push(...parseRecords(bytes, start));
    }
    return { records, counts: counts ?? null };
  }

  /** Where the last dataset of records of a state is. */
  *recordsRange(state: State): Io<Range | null> {
    const structure = yield* this.open(state);
    const counts = yield* readCounts(structure);
    const group = counts && (yield* groupOfRecords(structure, counts));
    let k = 0;
    while (group?.links.has(`${SERIES.records}${k}`)) k++;
    return group && k > 0 ? yield* rangeOf(structure, group, `${SERIES.records}${k - 1}`) : null;
  }
}

function* groupOfRecords(structure: Structure, counts: LogCounts): Io<ObjectNode | null> {
  const link = structure.root.links.get(recordsGroup(counts));
  return link ? yield* structure.loader.follow(link) : null;
}

/** Where the bytes of a dataset of the log are. */
function* rangeOf(structure: Structure, group: ObjectNode, name: string): Io<Range> {
  const link = group.links.get(name);
  const node = link && (yield* structure.loader.follow(link));
  const layout = node?.kind === 'dataset' ? structure.dataset(node).layout : null;
  const { base, end } = structure.loader.file;
  if (layout?.kind !== 'contiguous' || layout.address < 0)
    throw new H5LogError('FORMAT', `${name} of the log is missing or not contiguous`, { offset: base + group.address });
  if (layout.address + layout.size > end)
    throw new H5LogError('FORMAT', `${name} of the log reaches beyond the end of the file`, {
      offset: base + layout.address,
    });
  return { start: base + layout.address, end: base + layout.address + layout.size };
}

/** The commits of a file: from its present state if that can be read, else by a search through all its bytes. */
export async function historyOf(states: States): Promise<History> {
  const { present, file } = states;
  let trouble = file.trouble;
  if (present) {
    try {
      return { ...(await file.run(states.recordsOf(present))), trouble: null };
    } catch (error) {
      trouble = mustBeDamage(error);
    }
  }
  const found = await scan(file);
  for (const base of file.superblock ? [file.base] : BASES) {
    file.assumedBase = base;
    // The records that the newest readable state knows of are those of real commits. What is behind it may be whole, too.
    for (let i = found.length - 1; i >= 0; i--) {
      const { root, end } = found[i] as CommitRecord;
      try {
        const { records, counts } = await file.run(states.recordsOf({ root, end }));
        if (records.at(-1)?.root === root) return { records: [...records, ...found.slice(i + 1)], trouble, counts };
      } catch (error) {
        mustBeDamage(error);
      }
    }
  }
  file.assumedBase = 0;
  return { records: found, trouble, counts: null };
}

/** Where a superblock may be: at the beginning, or behind a user block of others. */
const BASES = [0, ...Array.from({ length: 12 }, (_, i) => 512 * 2 ** i)];

/** Every record that lies inside what it says its commit appended, oldest first. */
async function scan(file: CheckedFile): Promise<CommitRecord[]> {
  const places: number[] = [];
  await file.find(MAGIC, 0, file.size, (at) => {
    places.push(at);
    return false;
  });
  const found: CommitRecord[] = [];
  for (const at of places) {
    const record = await recordAt(file, at);
    // Copies in later datasets of records, and records of a file that is stored in this one as data, lie elsewhere.
    if (record && at >= record.start && at < record.end && record.end <= file.size) found.push(record);
  }
  found.sort((a, b) => b.end - a.end);
  const kept: CommitRecord[] = [];
  for (const record of found) {
    const next = kept.at(-1);
    // A flush that failed left a record behind whose number was then given to another.
    if (!next || (record.sequence < next.sequence && record.end <= next.start)) kept.push(record);
  }
  return kept.reverse();
}

async function recordAt(file: CheckedFile, at: number): Promise<CommitRecord | null> {
  if (at + recordSize(0) > file.size) return null;
  const head = await file.get(at, RANKS_AT + 4);
  const size = recordSize(new DataView(head.buffer, head.byteOffset).getUint32(RANKS_AT, true));
  if (size > MOST_RECORD || at + size > file.size) return null;
  try {
    return parseRecords(await file.get(at, size), at)[0] ?? null;
  } catch {
    return null;
  }
}

/** Where a record says how many ranks follow. */
const RANKS_AT = 64;

/** What is not damage, a storage that fails for example, is not ours to explain. */
export function mustBeDamage(error: unknown): H5LogError {
  if (error instanceof H5LogError && ['FORMAT', 'UNSUPPORTED', 'DTYPE', 'SHAPE'].includes(error.code)) return error;
  // A file that is damaged just so makes numbers out of range, not errors of our own.
  if (error instanceof RangeError) return new H5LogError('FORMAT', error.message, { cause: error });
  throw error;
}
