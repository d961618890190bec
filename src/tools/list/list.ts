import type { Attributes } from '../../api/attributes.ts';
import { Dataset, type Filter } from '../../api/dataset.ts';
import type { File } from '../../api/file.ts';
import { Group } from '../../api/group.ts';
import { H5LogError } from '../../base/errors.ts';
import { ANY, checkOptions, FLAG } from '../../base/options.ts';
import { describeType } from '../../dtype/describe.ts';
import {
  damage,
  type FileKind,
  identityOf,
  isNull,
  kindOf,
  layoutOf,
  logDatasetOf,
  logOf,
  type Member,
  membersOf,
  nameOf,
  reading,
  type Source,
  sayingKind,
} from '../inside.ts';
import { type LogsShown, logsShown, tablesOf } from '../log-tables.ts';
import { type Plain, plainValue } from '../value-text.ts';

export interface ListOptions {
  /** A group, whose members are listed, or one dataset; the root otherwise. */
  object?: string;
  recursive?: boolean;
  /** Attributes with their values. */
  verbose?: boolean;
}

export interface ListedAttribute {
  readonly name: string;
  readonly dtype: string;
  /** null: it has no elements at all. */
  readonly shape: readonly number[] | null;
  readonly value: Plain;
}

/** What the log holds of a dataset. */
export interface LoggedData {
  readonly id: number;
  readonly entries: number;
  readonly blocks: number;
  /** Bytes in the file, older versions included. */
  readonly bytes: number;
  /** Which commit every HDF5 program sees of it, and how its layout came about; null: it was never published. */
  readonly published: Dataset['published'];
}

export interface ListedObject {
  readonly name: string;
  readonly path: string;
  readonly kind: 'group' | 'dataset' | 'datatype' | 'soft link' | 'external link' | 'other link';
  /** How many groups are above it, from where the listing begins. */
  readonly depth: number;
  /** Why nothing more is known of it: it is damaged, or of a kind that nobody here can read. */
  readonly problem?: string;
  /** The object has another name that was listed before; what is below is left out. */
  readonly sameAs?: string;
  /** Of a link: the path, and the file if it leads to another. */
  readonly target?: string;
  readonly targetFile?: string;
  /** Of a dataset or a committed datatype. */
  readonly dtype?: string;
  /** Of a dataset; null: it has no elements at all. */
  readonly shape?: readonly number[] | null;
  readonly maxShape?: readonly (number | null)[];
  readonly chunks?: readonly number[] | null;
  readonly filters?: readonly Filter[];
  readonly fill?: Plain;
  /** How a regular dataset is stored, and the bytes it takes where the structure says so. */
  readonly layout?: string;
  readonly bytes?: number;
  readonly log?: LoggedData;
  readonly attributes?: readonly ListedAttribute[];
}

export interface Listing {
  readonly file: string;
  readonly kind: FileKind;
  /** The commit that every HDF5 program sees; null: nothing was ever published. */
  readonly published: number | null;
  /** The last commit; 0 for a file without a log. */
  readonly sequence: number;
  /** 0: everything is in one file. */
  readonly subfiles: number;
  /** null: there is no log. */
  readonly logs: LogsShown | null;
  readonly objects: readonly ListedObject[];
}

/**
 * Lists what is in a file, with the logical shapes of datasets in a log.
 *
 * @example for (const { path, shape } of (await list('run.h5', { recursive: true })).objects) console.log(path, shape);
 */
export async function list(source: Source, options: ListOptions = {}): Promise<Listing> {
  checkOptions('list', options, { object: ANY, recursive: FLAG, verbose: FLAG });
  return sayingKind(source, () =>
    reading(source, async (file) => {
      const { object: path = '/' } = options;
      const object = file.get(path);
      if (!object)
        throw new H5LogError('NOT_FOUND', `there is no ${path} in ${nameOf(file)}`, {
          file: nameOf(file),
          object: path,
        });
      const log = logOf(file);
      return {
        file: nameOf(file),
        kind: kindOf(file),
        sequence: file.sequence,
        published: file.published,
        subfiles: log?.hasSubfiles ? log.main.counts.subfiles : 0,
        logs: log ? logsShown(log) : null,
        objects: [...new Walk(await loggedData(file), options).from(object)],
      };
    }),
  );
}

type TableData = Omit<LoggedData, 'published'>;

/** Entries, blocks and bytes of every dataset, by its number. Only the headers of entries are looked at. */
async function loggedData(file: File): Promise<ReadonlyMap<number, TableData>> {
  const found = new Map<number, TableData>();
  const log = logOf(file);
  if (!log) return found;
  for await (const { table } of tablesOf(file, log)) {
    for (const { id, count, size } of table.entries()) {
      const known = found.get(id) ?? { id, entries: 0, blocks: 0, bytes: 0 };
      found.set(id, { id, entries: known.entries + 1, blocks: known.blocks + count, bytes: known.bytes + size });
    }
  }
  return found;
}

class Walk {
  readonly #data: ReadonlyMap<number, TableData>;
  readonly #options: ListOptions;
  readonly #seen = new Map<object, string>();

  constructor(data: ReadonlyMap<number, TableData>, options: ListOptions) {
    this.#data = data;
    this.#options = options;
  }

  *from(object: Group | Dataset): Iterable<ListedObject> {
    const { path } = object;
    if (object instanceof Dataset) {
      yield this.#described({ name: path.slice(path.lastIndexOf('/') + 1), path, depth: 0 }, object);
      return;
    }
    this.#seen.set(identityOf(object), path);
    // As h5ls does, a group itself is only mentioned where it is not alone.
    if (this.#options.recursive) yield this.#described({ name: path, path, depth: 0 }, object);
    yield* this.#members(object, this.#options.recursive ? 1 : 0);
  }

  /** Without calling itself: files may be deeper than the stack. */
  *#members(top: Group, topDepth: number): Iterable<ListedObject> {
    const open = [{ members: membersOf(top)[Symbol.iterator](), depth: topDepth }];
    for (let level = open.at(-1); level; level = open.at(-1)) {
      const { done, value: member } = level.members.next();
      if (done) {
        open.pop();
        continue;
      }
      const listed = this.#member(member, level.depth);
      yield listed;
      if (this.#options.recursive && member.object instanceof Group && listed.sameAs === undefined)
        open.push({ members: membersOf(member.object)[Symbol.iterator](), depth: level.depth + 1 });
    }
  }

  #member({ name, path, link, object, datatype, problem }: Member, depth: number): ListedObject {
    const place = { name, path, depth };
    if (link.kind === 'soft') return { ...place, kind: 'soft link', target: link.path };
    if (link.kind === 'external') return { ...place, kind: 'external link', target: link.path, targetFile: link.file };
    if (datatype) return { ...place, kind: 'datatype', dtype: describeType(datatype.dtype) };
    if (!object) return { ...place, kind: 'other link', ...(problem && { problem: problem.message }) };
    const sameAs = this.#seen.get(identityOf(object));
    if (sameAs !== undefined) return { ...place, kind: object.kind, sameAs };
    this.#seen.set(identityOf(object), path);
    try {
      return this.#described(place, object);
    } catch (error) {
      return { ...place, kind: object.kind, problem: damage(error).message };
    }
  }

  #described(place: { name: string; path: string; depth: number }, object: Group | Dataset): ListedObject {
    const attributes = this.#options.verbose ? { attributes: attributesOf(object) } : {};
    if (object instanceof Group) return { ...place, kind: 'group', ...attributes };
    const { dtype, maxShape, chunks, filters } = object;
    const nothing = isNull(object);
    const common = {
      ...place,
      kind: 'dataset' as const,
      dtype: describeType(dtype),
      shape: nothing ? null : object.shape,
      maxShape,
      chunks,
      filters,
      fill: plainValue(object.fill),
      ...attributes,
    };
    const logged = logDatasetOf(object);
    if (!logged) return { ...common, ...storedAs(object) };
    const { id } = logged;
    const { published } = object;
    const log = { ...(this.#data.get(id) ?? { id, entries: 0, blocks: 0, bytes: 0 }), published };
    return { ...common, log, bytes: log.bytes };
  }
}

function storedAs(dataset: Dataset): { layout: string; bytes?: number } {
  const layout = layoutOf(dataset);
  if (!layout) return { layout: 'none' };
  if (layout.kind === 'contiguous') return { layout: layout.kind, bytes: layout.address < 0 ? 0 : layout.size };
  if (layout.kind === 'compact') return { layout: layout.kind, bytes: layout.data.length };
  return { layout: layout.kind };
}

export function attributesOf({ attributes }: { readonly attributes: Attributes }): ListedAttribute[] {
  return [...attributes.keys()].map((name) => {
    const { dtype = 'int8', shape = null } = attributes.describe(name) ?? {};
    return { name, dtype: describeType(dtype), shape, value: plainValue(attributes.get(name)) };
  });
}
