import { type Attributes, type Dataset, type File, Group } from 'h5log';
import { sameType } from '../../src/dtype/describe.ts';
import { type AttributeState, type DatasetState, type GroupState, namesIn, type State } from './model.ts';
import { bytesOf, dtypeOf, type Json, jsonList, jsonOf, type TypeText } from './types.ts';

// A file as it is seen through the library, and a state as it must be seen: every path, also those through soft links.

type AttributeFacts = Readonly<Record<string, AttributeState | { readonly dtype: string }>>;

export type Facts =
  | { readonly kind: 'group'; readonly names: readonly string[]; readonly attributes: AttributeFacts }
  | (Omit<DatasetState, 'dtype' | 'attributes'> & {
      readonly kind: 'dataset';
      readonly dtype: TypeText | string;
      readonly rank: number;
      readonly size: number;
      /** Hexadecimal. */
      readonly bytes: string;
      readonly attributes: AttributeFacts;
    });

/** The group that sealing makes for the sources of virtual datasets. */
export const PIECES = '_pieces';

/** null: the link leads nowhere, or out of the file. */
export type Contents = Readonly<Record<string, Facts | null>>;

export function contentsOf(state: State): Contents {
  const contents: Record<string, Facts | null> = {};
  const visit = (path: string, object: GroupState | DatasetState): void => {
    if (!('links' in object)) {
      const { values, dtype, shape } = object;
      const bytes = Buffer.from(bytesOf(dtype, values)).toString('hex');
      contents[path] = { ...object, kind: 'dataset', rank: shape.length, size: values.length, bytes };
      return;
    }
    contents[path] = { kind: 'group', names: object.links.map(({ name }) => name), attributes: object.attributes };
    for (const link of object.links) {
      const below = joined(path, link.name);
      const found = follow(state, below);
      if (found) visit(below, found);
      else contents[below] = null;
    }
  };
  visit('/', state['/'] as GroupState);
  return contents;
}

const joined = (path: string, name: string): string => `${path === '/' ? '' : path}/${name}`;

/** The object at a path, by hard and soft links. */
function follow(state: State, path: string): GroupState | DatasetState | undefined {
  let object = state['/'];
  let here = '/';
  for (const name of namesIn(path)) {
    const link = object && 'links' in object ? object.links.find((one) => one.name === name) : undefined;
    if (!link || 'external' in link) return undefined;
    object =
      'to' in link ? state[link.to] : follow(state, link.soft.startsWith('/') ? link.soft : joined(here, link.soft));
    here = joined(here, name);
  }
  return object;
}

/** How the data of a dataset is read: all of it, as elements and as bytes. */
type Read = (dataset: Dataset) => { data: ArrayLike<unknown>; raw: Uint8Array };

/** What blocking calls read. Types are named as `meant` names them if they are the same, else by words. */
export function read(file: File, meant: Contents): Contents {
  return describe(file, meant, (dataset) => ({
    data: dataset.readSync() as ArrayLike<unknown>,
    raw: dataset.readSync(undefined, { raw: true }),
  }));
}

/** What asynchronous calls read. */
export async function readAsync(file: File, meant: Contents): Promise<Contents> {
  const pending = new Map<string, Promise<{ data: ArrayLike<unknown>; raw: Uint8Array }>>();
  for (const [path, facts] of Object.entries(meant)) {
    const dataset = facts?.kind === 'dataset' ? file.get(path) : undefined;
    if (dataset?.kind !== 'dataset') continue;
    const both = Promise.all([dataset.read(), dataset.read(undefined, { raw: true })]);
    pending.set(
      path,
      both.then(([data, raw]) => ({ data: data as ArrayLike<unknown>, raw })),
    );
  }
  const done = new Map<string, { data: ArrayLike<unknown>; raw: Uint8Array }>();
  for (const [path, both] of pending) done.set(path, await both);
  return describe(file, meant, ({ path }) => done.get(path) ?? { data: [], raw: new Uint8Array() });
}

function describe(file: File, meant: Contents, how: Read): Contents {
  const contents: Record<string, Facts | null> = {};
  const visit = (path: string, object: Group | Dataset): void => {
    const like = meant[path];
    const attributes = attributesOf(object.attributes, like?.attributes ?? {});
    if (object instanceof Group) {
      const isOwn = (name: string): boolean => path === '/' && name === PIECES;
      contents[path] = { kind: 'group', names: [...object.keys()].filter((name) => !isOwn(name)), attributes };
      for (const [name, child] of object.children()) {
        if (isOwn(name)) continue;
        if (child) visit(joined(path, name), child);
        else contents[joined(path, name)] = null;
      }
    } else contents[path] = { ...datasetFacts(object, like?.kind === 'dataset' ? like.dtype : '', how), attributes };
  };
  visit('/', file);
  return contents;
}

function datasetFacts(
  dataset: Dataset,
  meant: TypeText | string,
  how: Read,
): Omit<Extract<Facts, { kind: 'dataset' }>, 'attributes'> {
  const { shape, maxShape, rank, size, fill, chunks, filters } = dataset;
  const dtype = meant !== '' && dataset.is(dtypeOf(meant as TypeText)) ? (meant as TypeText) : undefined;
  if (!dtype)
    return {
      kind: 'dataset',
      dtype: another(dataset.dtype),
      shape,
      maxShape,
      rank,
      size,
      chunks,
      filters,
      values: [],
      bytes: '',
    };
  const { data, raw } = how(dataset);
  return {
    ...{ kind: 'dataset', dtype, shape, maxShape, rank, size, chunks, filters },
    ...(fill === undefined ? {} : { fill: jsonOf(dtype, fill) }),
    values: jsonList(dtype, data),
    bytes: Buffer.from(raw).toString('hex'),
  };
}

const another = (dtype: unknown): string =>
  `another type: ${JSON.stringify(dtype, (_, v) => (typeof v === 'bigint' ? `${v}` : v))}`;

function attributesOf(attributes: Attributes, meant: AttributeFacts): AttributeFacts {
  const facts: Record<string, AttributeState | { dtype: string }> = {};
  for (const name of attributes.keys()) {
    const described = attributes.describe(name);
    const like = meant[name]?.dtype as TypeText | undefined;
    const isSame = like !== undefined && described && sameType(described.dtype, dtypeOf(like));
    if (!isSame) facts[name] = { dtype: another(described?.dtype) };
    else
      facts[name] = {
        dtype: like,
        shape: described.shape,
        values: elementsOf(like, described.shape, attributes.get(name)),
      };
  }
  return facts;
}

/** Attributes give a scalar as its value and everything else as a flat list. */
function elementsOf(dtype: TypeText, shape: readonly number[] | null, value: unknown): Json[] {
  if (shape === null) return value === null ? [] : ['a value without a dataspace'];
  return shape.length === 0 ? [jsonOf(dtype, value)] : jsonList(dtype, value as ArrayLike<unknown>);
}
