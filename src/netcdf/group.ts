import type { AttributeValue } from '../api/attribute-values.ts';
import type { Attributes } from '../api/attributes.ts';
import type { Dataset, Filter } from '../api/dataset.ts';
import type { File } from '../api/file.ts';
import type { Group } from '../api/group.ts';
import { type Handled, handleOf, sessionOf } from '../api/handle.ts';
import { attach } from '../api/scales.ts';
import { type ErrorCode, H5LogError } from '../base/errors.ts';
import { checkNames } from '../base/options.ts';
import { checkType } from '../dtype/check.ts';
import { T } from '../dtype/construct.ts';
import { describeType } from '../dtype/describe.ts';
import type { ArrayOf, DType, ValueOf } from '../dtype/model.ts';
import type { Slab } from '../space/shape.ts';
import { NcAttributes, textType } from './attributes.ts';
import { Contents, type GroupContents } from './contents.ts';
import {
  CLASSIC,
  COORDINATES,
  DEFAULT_FILL,
  DIMENSION_ID,
  FILL_VALUE,
  type NcType,
  NO_COORDINATE,
  NO_VARIABLE,
  ncType,
  PROPERTIES,
  STRICT,
  VERSION,
} from './conventions.ts';
import { Dimension } from './dimension.ts';
import { Variable } from './variable.ts';

export interface NcDimension {
  readonly name: string;
  /** Of an unlimited dimension, the length of its longest variable. */
  readonly size: number;
  readonly unlimited: boolean;
}

export interface NcVariable<D extends DType = DType> {
  readonly name: string;
  /** What holds the values: `variable.dataset.write(...)`. */
  readonly dataset: Dataset<D>;
  readonly dimensions: readonly string[];
  readonly shape: readonly number[];
  /** Text is stored as netCDF does: fixed length, null-terminated. */
  readonly attributes: Attributes;
  /** Padded with fill up to the length of unlimited dimensions. */
  read(where?: Slab): Promise<ArrayOf<D>>;
}

interface VariableOptions<D extends DType> {
  dtype: D;
  dimensions: readonly string[];
  /** The value of elements that were never written; false: none. Without it, the one that netCDF has for the type. */
  fill?: ValueOf<D> | false;
  chunks?: readonly number[];
  filters?: readonly Filter[];
  attributes?: Readonly<Record<string, AttributeValue>>;
}

export interface NcGroup {
  readonly name: string;
  readonly dimensions: ReadonlyMap<string, NcDimension>;
  readonly variables: ReadonlyMap<string, NcVariable>;
  readonly groups: ReadonlyMap<string, NcGroup>;
  readonly attributes: Attributes;
  /** null: unlimited. */
  createDimension(name: string, size: number | null): NcDimension;
  createGroup(name: string): NcGroup;
  createVariable<const D extends DType>(name: string, options: VariableOptions<D>): NcVariable<D>;
}

const VARIABLE: Required<Record<keyof VariableOptions<DType>, true>> = {
  dtype: true,
  dimensions: true,
  fill: true,
  chunks: true,
  filters: true,
  attributes: true,
};

/**
 * The netCDF-4 data model of a file: dimensions, variables, attributes and groups.
 *
 * ```ts
 * const nc = netcdf(await File.create('field.nc'));
 * nc.createDimension('time', null);
 * nc.createVariable('t', { dtype: 'float32', dimensions: ['time'] }).dataset.append(Float32Array.of(280.5));
 * ```
 */
export function netcdf(file: File, options: { classic?: boolean } = {}): NcGroup {
  checkNames('netcdf', options, { classic: true });
  const attributes = file?.attributes;
  if (!attributes || !('mode' in file))
    throw new H5LogError('OPTION', 'netcdf() takes a file that was opened with File');
  const isNew = file.mode === 'r+' && !file.closed && attributes.size === 0 && [...file.keys()].length === 0;
  if (isNew) {
    const text = `version=2,h5log=${VERSION}`;
    attributes.set(PROPERTIES, text, { dtype: textType(text) });
    if (options.classic) attributes.set(STRICT, 1, { dtype: 'int32' });
  } else if (options.classic && !attributes.has(STRICT))
    throw new H5LogError('OPTION', 'the file is not one of the classic model, and only a new one can become one');
  return new Tree(file).group(file);
}

/** A file, and the objects that users hold of it. */
class Tree {
  readonly file: File;
  #contents: Contents;
  readonly #groups = new Map<string, { readonly of: Group; readonly made: NetcdfGroup }>();
  readonly #variables = new Map<string, Variable>();

  constructor(file: File) {
    this.file = file;
    this.#contents = new Contents(file);
  }

  get contents(): Contents {
    if (!this.#contents.isCurrent) this.#contents = new Contents(this.file);
    return this.#contents;
  }

  get isClassic(): boolean {
    return this.file.attributes.has(STRICT);
  }

  /** The dimensions, variables and groups of the group at a path; throws NOT_FOUND if there is none. */
  inside(path: string): GroupContents {
    let found = this.contents.root;
    for (const name of path.split('/')) {
      if (name === '') continue;
      const below = found.groups.get(name);
      if (!below) throw new H5LogError('NOT_FOUND', `there is no group ${path}`, { object: path });
      found = below;
    }
    return found;
  }

  group(of: Group): NetcdfGroup {
    const known = this.#groups.get(of.path);
    if (known && isSame(known.of, of)) return known.made;
    const made = new NetcdfGroup(this, of);
    this.#groups.set(of.path, { of, made });
    return made;
  }

  variable(name: string, dataset: Dataset, group: string): Variable {
    const known = this.#variables.get(dataset.path);
    if (known && isSame(known.dataset, dataset)) return known;
    const dimensions = (): readonly Dimension[] => {
      const variable = this.inside(group).variables.get(name);
      if (variable && isSame(variable.dataset, dataset)) return variable.dimensions;
      throw new H5LogError('NOT_FOUND', `${dataset.path} is gone`, { object: dataset.path });
    };
    const made = new Variable(name, dataset, () => this.isClassic, dimensions);
    this.#variables.set(dataset.path, made);
    return made;
  }

  /** Forgets a variable that gets another dataset. */
  forget(path: string): void {
    this.#variables.delete(path);
  }
}

class NetcdfGroup implements NcGroup {
  readonly name: string;
  readonly attributes: Attributes;
  readonly #tree: Tree;
  readonly #group: Group;

  constructor(tree: Tree, group: Group) {
    this.#tree = tree;
    this.#group = group;
    const { path } = group;
    this.name = path === '/' ? path : path.slice(path.lastIndexOf('/') + 1);
    this.attributes = new NcAttributes(group.attributes, { path, classic: () => tree.isClassic });
  }

  get #inside(): GroupContents {
    return this.#tree.inside(this.#group.path);
  }

  get dimensions(): ReadonlyMap<string, NcDimension> {
    return new Map(this.#inside.dimensions);
  }

  get variables(): ReadonlyMap<string, NcVariable> {
    const { path } = this.#group;
    return new Map(
      Array.from(this.#inside.variables, ([name, { dataset }]) => [name, this.#tree.variable(name, dataset, path)]),
    );
  }

  get groups(): ReadonlyMap<string, NcGroup> {
    return new Map(Array.from(this.#inside.groups, ([name, { group }]) => [name, this.#tree.group(group)]));
  }

  createGroup(name: string): NcGroup {
    this.#checkName(name, 'group');
    if (this.#tree.isClassic) throw this.#error('OPTION', name, 'the classic model has no groups');
    const { contents } = this.#tree;
    const inside = this.#inside;
    const group = this.#group.createGroup(name);
    const made = { group, parent: inside, dimensions: new Map(), variables: new Map(), groups: new Map() };
    inside.groups.set(name, made);
    contents.noticed(this.#group);
    contents.noticed(group);
    return this.#tree.group(group);
  }

  createDimension(name: string, size: number | null): NcDimension {
    this.#checkName(name, 'dimension');
    const { contents, isClassic } = this.#tree;
    const inside = this.#inside;
    if (inside.dimensions.has(name)) throw this.#error('EXISTS', name, 'the dimension exists already');
    if (size !== null && !(Number.isSafeInteger(size) && size >= 1))
      throw this.#error(
        'SHAPE',
        name,
        `a dimension has at least one element, or null for unlimited; got ${String(size)}`,
      );
    if (size === null && isClassic && [...inside.dimensions.values()].some(({ unlimited }) => unlimited))
      throw this.#error('OPTION', name, 'the classic model has one unlimited dimension');
    // A variable that has the name already is not its coordinate.
    const variable = inside.variables.get(name);
    if (variable?.dataset.path.endsWith(`/${name}`)) this.#rename(name, variable.dimensions);
    const length = size ?? 0;
    const scale = this.#group.createDataset(name, {
      dtype: T.bigEndian('float32'),
      shape: [length],
      ...(size === null && { maxShape: [null], chunks: [1] }),
    });
    contents.noticed(this.#group);
    const dimension = new Dimension(name, contents.nextId, scale as Dataset, {
      length,
      unlimited: size === null,
      isVariable: false,
    });
    describeScale(dimension, contents.hasIds);
    contents.addDimension(inside, dimension);
    return dimension;
  }

  /** Gives the dataset of a variable the name that netCDF has for those that are no coordinates. */
  #rename(name: string, dimensions: readonly Dimension[]): void {
    const group = this.#group;
    group.move(name, NO_COORDINATE + name);
    this.#tree.forget(pathIn(group, name));
    this.#tree.contents.noticed(group);
    const dataset = group.dataset(NO_COORDINATE + name);
    for (const { uses } of dimensions) {
      const i = uses.findIndex((use) => use.dataset.path === pathIn(group, name));
      if (i >= 0) uses.splice(i, 1, { dataset, axis: (uses[i] as { axis: number }).axis });
    }
    this.#inside.variables.set(name, { dataset, dimensions });
  }

  createVariable<const D extends DType>(name: string, options: VariableOptions<D>): NcVariable<D> {
    this.#checkName(name, 'variable');
    if (typeof options !== 'object' || options === null)
      throw this.#error('OPTION', name, '{ dtype, dimensions } are needed');
    checkNames('createVariable', options, VARIABLE);
    const { contents } = this.#tree;
    const inside = this.#inside;
    if (inside.variables.has(name)) throw this.#error('EXISTS', name, 'the variable exists already');
    const type = this.#typeOf(name, options.dtype);
    const dimensions = this.#scope(name, options.dimensions);
    const own = inside.dimensions.get(name);
    const isCoordinate = own !== undefined && dimensions[0] === own;
    const { fill, attributes } = fillOf(options, type);
    const aside = NO_COORDINATE + name;
    const stored = own && !isCoordinate ? aside : name;
    const users = new Set(isCoordinate ? own.uses.map((use) => use.dataset) : []);
    // What cannot be changed is refused before anything is: the file, and attributes, which are written as they are.
    sessionOf(this.#group).writable();
    for (const user of users) this.#attach(user);
    // The scale that only said that there is a dimension makes way, and is gone when its successor is whole.
    if (isCoordinate) this.#group.move(name, aside);
    let dataset: Dataset;
    try {
      dataset = this.#createDataset(
        stored,
        name,
        { ...options, fill, attributes } as VariableOptions<DType>,
        dimensions,
      );
      if (isCoordinate) this.#removing(stored, () => this.#group.delete(aside));
    } catch (error) {
      if (isCoordinate) this.#group.move(aside, name);
      throw error;
    } finally {
      contents.noticed(this.#group);
    }
    if (isCoordinate) {
      own.scale = dataset;
      own.isVariable = true;
      contents.addDimension(inside, own);
      describeScale(own, contents.hasIds);
      for (const user of users) this.#attach(user);
    }
    inside.variables.set(name, { dataset, dimensions });
    dimensions.forEach((dimension, axis) => {
      dimension.uses.push({ dataset, axis });
    });
    if (contents.hasIds && dimensions.length > 0)
      dataset.attributes.set(
        COORDINATES,
        Int32Array.from(dimensions, ({ id }) => id),
      );
    if (!isCoordinate) this.#attach(dataset, dimensions);
    return this.#tree.variable(name, dataset, this.#group.path) as unknown as Variable<D>;
  }

  /** The dataset of a new variable with the user's attributes; there is none if one of them is refused. */
  #createDataset(
    stored: string,
    name: string,
    { dtype, fill, chunks, filters, attributes = {} }: VariableOptions<DType>,
    dimensions: readonly Dimension[],
  ): Dataset {
    const shape = dimensions.map(({ unlimited, size }) => (unlimited ? 0 : size));
    const dataset = this.#group.createDataset(stored, {
      dtype,
      shape,
      maxShape: dimensions.map(({ unlimited }, d) => (unlimited ? null : (shape[d] as number))),
      ...(fill !== undefined && { fill }),
      ...(chunks && { chunks }),
      ...(filters && { filters }),
    }) as Dataset;
    const classic = (): boolean => this.#tree.isClassic;
    const variable = new Variable(name, dataset, classic, () => dimensions);
    this.#removing(stored, () => {
      for (const [attribute, value] of Object.entries(attributes)) variable.attributes.set(attribute, value);
    });
    return dataset;
  }

  /** Removes what is at a path if the work on it fails. */
  #removing(path: string, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#group.delete(path);
      throw error;
    }
  }

  /** Writes to which scales the dimensions of a dataset belong; without `dimensions`, those that it has. */
  #attach(dataset: Dataset, dimensions = this.#dimensionsOf(dataset)): void {
    if (dimensions.length === 0) return;
    if (dimensions.some(({ scale }) => scale?.path === dataset.path)) return;
    attach(
      dataset,
      dimensions.map(({ scale }) => (scale ? [scale.path] : [])),
    );
  }

  #dimensionsOf(dataset: Dataset): readonly Dimension[] {
    const open = [this.#tree.contents.root];
    for (const { groups, variables } of open) {
      for (const variable of variables.values()) if (variable.dataset.path === dataset.path) return variable.dimensions;
      open.push(...groups.values());
    }
    return [];
  }

  /** The dimensions of these names in this group, or in those above it. */
  #scope(variable: string, names: readonly string[]): Dimension[] {
    if (!Array.isArray(names)) throw this.#error('OPTION', variable, 'dimensions is a list of names');
    const found = names.map((name: string) => {
      for (let inside: GroupContents | null = this.#inside; inside; inside = inside.parent) {
        const dimension = inside.dimensions.get(name);
        if (dimension) return dimension;
      }
      throw this.#error('NOT_FOUND', variable, `there is no dimension ${String(name)} in the group or above it`);
    });
    if (this.#tree.isClassic && found.some(({ unlimited }, d) => unlimited && d > 0))
      throw this.#error('OPTION', variable, 'in the classic model only the first dimension is unlimited');
    return found;
  }

  #typeOf(name: string, dtype: DType): NcType {
    const type = ncType(checkType(dtype));
    const isText = type === 'char' && typeof dtype !== 'string' && dtype.size > 1;
    if (type === undefined || isText) {
      const hint = isText ? '; use T.string(), or T.string({ length: 1 }) and a dimension for the length' : '';
      throw this.#error('DTYPE', name, `netCDF has no variables of ${describeType(dtype)}${hint}`);
    }
    if (this.#tree.isClassic && !CLASSIC.has(type))
      throw this.#error('DTYPE', name, `the classic model has no ${describeType(dtype)}`);
    return type;
  }

  #checkName(name: string, what: string): void {
    // As netcdf-c checks them: no slash, no control characters, no blank at the end, no leading punctuation.
    const isName =
      typeof name === 'string' &&
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a name must not have.
      /^[a-zA-Z0-9_\u0080-\u{10ffff}][^\u0000-\u001f/\u007f]*$/u.test(name) &&
      !name.endsWith(' ') &&
      new TextEncoder().encode(name).length <= 256;
    if (!isName) throw new H5LogError('OPTION', `${JSON.stringify(name)} is not a name for a ${what} of netCDF`);
  }

  #error(code: ErrorCode, name: string, why: string): H5LogError {
    const object = pathIn(this.#group, name);
    return new H5LogError(code, `${object}: ${why}`, { object });
  }
}

/** The attributes of a dimension scale. */
function describeScale({ name, id, scale, size, isVariable }: Dimension, hasIds: boolean): void {
  if (!scale) return;
  scale.makeScale(isVariable ? name : `${NO_VARIABLE}${String(size).padStart(10)}`);
  if (hasIds) scale.attributes.set(DIMENSION_ID, id, { dtype: 'int32' });
}

/** Another object may have got the path of one that was moved or deleted. */
function isSame(a: Handled, b: Handled): boolean {
  return handleOf(a).node === handleOf(b).node;
}

function pathIn({ path }: Group, name: string): string {
  return `${path === '/' ? '' : path}/${name}`;
}

/** The fill value of a new variable, and its attributes: _FillValue is the fill value. */
function fillOf<D extends DType>(
  { fill, attributes = {} }: VariableOptions<D>,
  type: NcType,
): { fill: unknown; attributes: Readonly<Record<string, AttributeValue>> } {
  const { [FILL_VALUE]: named, ...others } = attributes;
  if (named !== undefined && fill !== undefined && !Object.is(named, fill))
    throw new H5LogError('OPTION', `fill is ${String(fill)}, but the attribute _FillValue is ${String(named)}`);
  const given = fill ?? named;
  if (given === false) return { fill: undefined, attributes: others };
  if (given !== undefined) return { fill: given, attributes: { [FILL_VALUE]: given as AttributeValue, ...others } };
  // Text is empty where nothing was written, without being told.
  const isText = type === 'char' || type === 'string';
  return { fill: isText ? undefined : DEFAULT_FILL[type], attributes: others };
}
