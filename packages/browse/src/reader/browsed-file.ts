import type {
  Attribute,
  AttributeValues,
  ChildEntity,
  Datatype,
  Entity,
  ProvidedEntity,
  Dataset as ShownDataset,
  Group as ShownGroup,
} from '@h5web/app';
import { type Attributes, type Dataset, type DType, File, Group, H5LogError, isH5LogError } from 'h5log';
import { type ByteStorage, blobStorage, httpStorage } from 'h5log/storage';
import { fullType } from '../../../../src/dtype/model.ts';
import { identityOf } from '../../../../src/tools/inside.ts';
import { copyBox, parseSelection, type Slice } from './selection.ts';
import { shownAttribute, shownShape, shownType } from './types.ts';
import { isNumeric, shownValue, shownValues } from './values.ts';
import { workerStorage } from './worker-storage.ts';

/** Where the bytes of a file are. */
export type FileSource =
  | {
      readonly url: string;
      /** The last part of the path unless it is said. */
      readonly name?: string;
      /** What the names of other files are put behind, to make their URLs; without it they stay closed. */
      readonly external?: string;
    }
  | { readonly blob: Blob; readonly name: string };

/** An attribute that a damaged object gets: h5web shows attributes of whatever it cannot show otherwise. */
export const PROBLEM = 'h5log error';

/** The most that one read may bring into the page. */
const MOST_BYTES = 256 * 2 ** 20;
/** The most elements that are objects in JavaScript: strings, compounds, sequences. */
const MOST_OBJECTS = 2 ** 21;
/** Reads above this come in pieces, with progress. */
const PIECE = 4 * 2 ** 20;
/** The most paths that a search goes through. */
const MOST_PATHS = 200_000;

interface Reading {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((part: number) => void) | undefined;
}

/** One state of a file, in the terms of h5web. */
export class BrowsedFile {
  readonly file: File;
  readonly name: string;

  private constructor(file: File, name: string) {
    this.file = file;
    this.name = name;
  }

  static async open(source: FileSource, options: { asOf?: number } = {}): Promise<BrowsedFile> {
    const prefix = 'url' in source ? source.external : undefined;
    const opened =
      prefix === undefined
        ? { external: false }
        : { openExternal: (other: string) => workerStorage(prefix + encodeURIComponent(other)) };
    const file = await File.open(storageFor(source), { lazy: true, ...opened, ...options });
    return new BrowsedFile(file, nameOf(source));
  }

  close(): Promise<void> {
    return this.file.close();
  }

  async entity(path: string): Promise<ProvidedEntity> {
    await this.#load(path);
    const object = this.#find(path);
    if (object instanceof Group) return { ...group(path, object), children: [...this.#children(path, object)] };
    if (object) return dataset(path, object);
    return datatype(path, this.file.datatype(path));
  }

  /** Loads an object and its children; one child that cannot be read must not hide the others. */
  async #load(path: string): Promise<void> {
    try {
      await this.file.load(path);
    } catch (error) {
      if (!isDamage(error)) throw error;
      await this.file.load(path, { depth: 0 });
      const found = this.#find(path);
      if (!(found instanceof Group)) return;
      for (const name of found.keys()) {
        try {
          await this.file.load(childOf(path, name), { depth: 0 });
        } catch (problem) {
          if (!isDamage(problem)) throw problem;
        }
      }
    }
  }

  *#children(path: string, parent: Group): Iterable<ChildEntity> {
    for (const { name, kind, target, file } of linksOf(parent)) {
      const child = childOf(path, name);
      const link = {
        class: ({ hard: 'Hard', soft: 'Soft', external: 'External', other: 'External' } as const)[kind],
        ...(target !== undefined && { path: target }),
        ...(file !== undefined && { file }),
      };
      yield { ...this.#child(child), link };
    }
  }

  /** A child that cannot be read is there all the same, and says why. */
  #child(path: string): ChildEntity {
    try {
      const object = this.#find(path);
      if (object instanceof Group) return group(path, object);
      if (object) return dataset(path, object);
      if (this.file.has(path)) return unresolved(path);
      return datatype(path, this.file.datatype(path));
    } catch (error) {
      if (isH5LogError(error, 'NOT_FOUND')) return unresolved(path);
      return unresolved(path, [shownAttribute(PROBLEM, 'uint8', [])].map(asText));
    }
  }

  #find(path: string): Group | Dataset | undefined {
    return path === '/' ? this.file : this.file.get(path);
  }

  async attributes(path: string): Promise<AttributeValues> {
    let attributes: Attributes;
    try {
      await this.file.load(path, { depth: 0 });
      attributes = (this.#find(path) ?? this.file.datatype(path)).attributes;
    } catch (error) {
      return isH5LogError(error, 'NOT_FOUND') ? {} : { [PROBLEM]: messageOf(error) };
    }
    const values: AttributeValues = {};
    for (const name of attributes.keys()) values[name] = attributeValue(attributes, name);
    return values;
  }

  /** The elements of a slice, flat; of a single element its value. */
  async value(path: string, selection: string | undefined, reading: Reading = {}): Promise<unknown> {
    await this.file.load(path, { depth: 0 });
    const found = this.file.dataset(path);
    if (found.space === 'null') return null;
    const slice = parseSelection(selection, found.shape);
    checkSize(found, slice);
    const { dtype } = found;
    const values = await read(found, slice, reading);
    return slice.dims.length === 0 ? shownValue(dtype, values[0]) : shownValues(dtype, values);
  }

  /** The paths of everything below a group, for the search; what several hard links lead to is gone into once. */
  async paths(path: string): Promise<string[]> {
    const isLoaded = await this.file.load(path, { depth: Infinity }).then(
      () => true,
      (error) => {
        if (isDamage(error)) return false;
        throw error;
      },
    );
    const found: string[] = [];
    const seen = new Set<object>();
    const waiting: string[] = [path];
    for (let at = waiting.shift(); at !== undefined; at = waiting.shift()) {
      if (!isLoaded) await this.#load(at);
      const parent = this.#find(at);
      if (!(parent instanceof Group) || seen.has(identityOf(parent))) continue;
      seen.add(identityOf(parent));
      for (const { name, kind, object } of linksOf(parent)) {
        const child = childOf(at, name);
        if (found.push(child) >= MOST_PATHS) return found;
        if (kind === 'hard' && object === 'group') waiting.push(child);
      }
    }
    return found;
  }
}

/** What is wrong with the file, and not with the way to it. */
const isDamage = (error: unknown): boolean =>
  isH5LogError(error, 'FORMAT') || isH5LogError(error, 'UNSUPPORTED') || isH5LogError(error, 'NOT_FOUND');

const childOf = (path: string, name: string): string => (path === '/' ? `/${name}` : `${path}/${name}`);

type Links = ReturnType<Group['links']> extends Iterable<infer L> ? L[] : never;

/** The links of a group. Where an object is damaged that a hard link leads to, their names are all that can be told. */
function linksOf(group: Group): Links {
  try {
    return [...group.links()];
  } catch (error) {
    if (!isDamage(error)) throw error;
    return Array.from(group.keys(), (name) => ({ name, kind: 'hard' }));
  }
}

function storageFor(source: FileSource): ByteStorage {
  return 'url' in source ? httpStorage(source.url) : blobStorage(source.blob);
}

function nameOf(source: FileSource): string {
  return source.name ?? ('url' in source ? (new URL(source.url).pathname.split('/').at(-1) ?? '') : '');
}

export function messageOf(error: unknown): string {
  if (isH5LogError(error)) return `${error.code}: ${error.message}`;
  return error instanceof Error ? error.message : String(error);
}

function base(path: string, attributes: Attribute[]): Pick<Entity, 'name' | 'path' | 'attributes'> {
  return { name: path === '/' ? '' : path.slice(path.lastIndexOf('/') + 1), path, attributes };
}

function group(path: string, { attributes }: Group): ShownGroup {
  return { ...base(path, attributesOf(attributes)), kind: 'group' } as ShownGroup;
}

function dataset(path: string, found: Dataset): ShownDataset {
  const { dtype, chunks, pipeline } = found;
  return {
    ...base(path, attributesOf(found.attributes)),
    kind: 'dataset',
    shape: shownShape(found.space === 'null' ? null : found.shape),
    type: shownType(dtype),
    ...(chunks && { chunks: [...chunks] }),
    filters: pipeline.map(({ id, name }) => ({ id, name })),
  } as ShownDataset;
}

function datatype(path: string, found: { dtype: DType; attributes: Attributes }): Datatype {
  const facts = { kind: 'datatype', type: shownType(found.dtype) };
  return { ...base(path, attributesOf(found.attributes)), ...facts } as Datatype;
}

function unresolved(path: string, attributes: Attribute[] = []): ChildEntity {
  return { ...base(path, attributes), kind: 'unresolved' } as ChildEntity;
}

const asText = (attribute: Attribute): Attribute =>
  ({ ...attribute, type: { class: 'String', charSet: 'UTF-8', strPad: undefined } }) as Attribute;

function attributesOf(attributes: Attributes): Attribute[] {
  return [...attributes.keys()].map((name) => {
    try {
      const { dtype, shape } = attributes.describe(name) ?? { dtype: 'uint8', shape: null };
      return shownAttribute(name, dtype, shape);
    } catch {
      return asText(shownAttribute(name, 'uint8', []));
    }
  });
}

/** A text in place of a value that cannot be read. */
function attributeValue(attributes: Attributes, name: string): unknown {
  try {
    const { dtype, shape } = attributes.describe(name) ?? { dtype: 'uint8' as const, shape: null };
    const value = attributes.get(name);
    if (shape === null || value === undefined || value === null) return null;
    return shape.length === 0 ? shownValue(dtype, value) : shownValues(dtype, value as ArrayLike<unknown>);
  } catch (error) {
    return messageOf(error);
  }
}

function checkSize({ path, dtype }: Dataset, { count }: Slice): void {
  const elements = count.reduce((product, n) => product * n, 1);
  const bytes = elements * fullType(dtype).size;
  if (bytes <= MOST_BYTES && (isNumeric(dtype) || elements <= MOST_OBJECTS)) return;
  const text = `${path}: ${elements} elements, ${bytes} bytes, are too many to show at once; choose fewer dimensions`;
  throw new H5LogError('UNSUPPORTED', text, { object: path });
}

async function read(found: Dataset, { start, count }: Slice, reading: Reading): Promise<ArrayLike<unknown>> {
  const { signal, onProgress } = reading;
  const options = signal ? { signal } : {};
  const total = count.reduce((product, n) => product * n, 1);
  const where = found.rank === 0 ? undefined : { start, count };
  if (found.rank === 0 || !onProgress || total * fullType(found.dtype).size <= PIECE) return found.read(where, options);
  let all: (ArrayLike<unknown> & { [i: number]: unknown }) | undefined;
  let done = 0;
  for await (const piece of found.pieces(where, { bytes: PIECE, ...options })) {
    const data = piece.data as ArrayLike<unknown>;
    all ??= Array.isArray(data) ? [] : new (data.constructor as new (length: number) => typeof data)(total);
    copyBox(all as { [i: number]: unknown }, start, count, piece.start, piece.count, data);
    done += data.length;
    onProgress(done / total);
  }
  return all ?? [];
}
