import { H5LogError, isH5LogError } from '../base/errors.ts';
import { T } from '../dtype/construct.ts';
import type { DType } from '../dtype/model.ts';
import { isText } from '../dtype/text.ts';
import type { ObjectNode } from '../hdf5/graph/object-node.ts';
import { storedScaleAttribute } from '../log/format/names.ts';
import { isPrepared, scaleUses, settleScales } from '../log/format/scales.ts';
import type { Attributes } from './attributes.ts';
import type { Dataset } from './dataset.ts';
import { attached, LABELS, LIST, labels } from './dimensions.ts';
import type { File } from './file.ts';
import { handleOf, sessionOf } from './handle.ts';

/** On every dimension scale of netCDF-4. */
const NETCDF_ID = '_Netcdf4Dimid';
/** On every variable: the numbers of its dimensions. */
const NETCDF_IDS = '_Netcdf4Coordinates';

/** Text as libhdf5 stores it in the attributes of scales. */
function terminated(text: string): { dtype: DType } {
  const { length } = new TextEncoder().encode(text);
  const charset = length === text.length ? 'ascii' : 'utf8';
  return { dtype: T.string({ length: length + 1, pad: 'terminated', charset }) };
}

function isScale({ attributes }: { readonly attributes: Attributes }): boolean {
  return attributes.has('CLASS') && attributes.get('CLASS') === 'DIMENSION_SCALE';
}

function refuse(dataset: Dataset, why: string): never {
  const details = { file: sessionOf(dataset).storage.name, object: dataset.path };
  throw new H5LogError('OPTION', `${dataset.path} ${why}`, details);
}

export function makeScale(dataset: Dataset, name: string | undefined): void {
  if (dataset.attributes.has(LIST)) refuse(dataset, 'has scales itself and cannot be a scale');
  if (name !== undefined && !isText(name)) refuse(dataset, `: ${JSON.stringify(name)} is not a name for a scale`);
  const { attributes } = dataset;
  withScales.add(sessionOf(dataset));
  attributes.set('CLASS', 'DIMENSION_SCALE', terminated('DIMENSION_SCALE'));
  if (name !== undefined) attributes.set('NAME', name, terminated(name));
}

function checkDimension(dataset: Dataset, dimension: number): void {
  const { rank } = dataset;
  if (Number.isInteger(dimension) && dimension >= 0 && dimension < rank) return;
  refuse(dataset, `has ${rank} dimensions, and none with the number ${String(dimension)}`);
}

/** Writes which scales each dimension of a dataset has. */
export function attach(dataset: Dataset, lists: readonly (readonly string[])[]): void {
  const { attributes } = dataset;
  withScales.add(sessionOf(dataset));
  if (lists.some(({ length }) => length > 0))
    attributes.set(LIST, lists, { dtype: T.vlen(T.reference), shape: [lists.length] });
  else if (attributes.has(LIST)) attributes.delete(LIST);
}

/** Whether an object is at a path: it may have been moved, and another one may be where it was. */
function isAt({ file }: Dataset, path: string, object: Dataset): boolean {
  const found = file.get(path);
  return found !== undefined && handleOf(found).node === handleOf(object).node;
}

function pathOf(dataset: Dataset): string {
  if (isAt(dataset, dataset.path, dataset)) return dataset.path;
  const { session, node } = handleOf(dataset);
  const { structure } = session;
  const path = node.linkCount > 0 ? session.now(structure.pathOf(node.address)) : '';
  if (path === '') throw new H5LogError('NOT_FOUND', `${dataset.path} was deleted`, { object: dataset.path });
  return structure.paths.shown(path);
}

/** REFERENCE_LIST of the scale is written when the file is closed: see {@link settleScales}. */
export function attachScale(dataset: Dataset, dimension: number, scale: Dataset): void {
  checkDimension(dataset, dimension);
  if (scale?.kind !== 'dataset') refuse(dataset, 'takes datasets as scales, and nothing else');
  if (sessionOf(scale) !== sessionOf(dataset)) refuse(scale, `is in another file than ${dataset.path}`);
  if (isScale(dataset)) refuse(dataset, 'is a scale, and a scale has no scales');
  const path = pathOf(scale);
  if (!isScale(scale)) makeScale(scale, undefined);
  const lists = attached(dataset);
  const list = lists[dimension] as string[];
  if (list.some((other) => isAt(dataset, other, scale))) return;
  list.push(path);
  attach(dataset, lists);
}

export function detachScale(dataset: Dataset, dimension: number, scale: Dataset): void {
  checkDimension(dataset, dimension);
  const lists = attached(dataset);
  const rest = (lists[dimension] as string[]).filter((path) => !isAt(dataset, path, scale));
  if (rest.length === lists[dimension]?.length)
    throw new H5LogError('NOT_FOUND', `${scale.path} is not attached to dimension ${dimension} of ${dataset.path}`, {
      object: dataset.path,
    });
  lists[dimension] = rest;
  attach(dataset, lists);
}

export function labelDimension(dataset: Dataset, dimension: number, label: string): void {
  checkDimension(dataset, dimension);
  if (typeof label !== 'string') refuse(dataset, `: a label is a text, not ${String(label)}`);
  const all = labels(dataset);
  all[dimension] = label;
  dataset.attributes.set(LABELS, all, { dtype: T.string(), shape: [all.length] });
}

/** Whether a scale of netCDF has no values: it follows its variables also when they become shorter. */
function isDimensionOnly({ attributes }: Dataset): boolean {
  const name = attributes.has('NAME') && attributes.get('NAME');
  return typeof name === 'string' && name.startsWith('This is a netCDF dimension but not a netCDF variable');
}

function lengthen(dataset: Dataset, sizes: ReadonlyMap<number, number>): void {
  const shape = dataset.shape.map((size, d) => sizes.get(d) ?? size);
  if (shape.some((size, d) => size !== dataset.shape[d])) dataset.resize(shape);
}

type Uses = ReturnType<typeof scaleUses>;

/** The objects of a file by their paths, and which dimensions each scale is attached to. */
interface KnownScales {
  readonly paths: ReadonlyMap<ObjectNode, string>;
  readonly uses: Uses;
  /** `uses`, and the dimensions of netCDF's coordinate variables of several dimensions: as scales these cannot have scales attached. */
  readonly all: Uses;
  /** What tells whether these are still the same: the members of each group, and the scales of each dataset. */
  readonly members: ReadonlyMap<ObjectNode, readonly (ObjectNode | null)[]>;
  readonly lists: ReadonlyMap<ObjectNode, unknown>;
}

/** Files whose datasets got scales while they were open. */
const withScales = new WeakSet<object>();

const membersOf = ({ links }: ObjectNode): (ObjectNode | null)[] =>
  Array.from(links.values(), ({ node }) => node ?? null);

function listOf(node: ObjectNode): unknown {
  return isPrepared(node) ? undefined : node.attributes.get(storedScaleAttribute(LIST, node.attributes));
}

/** Keeps the scales of a file as netCDF wants them. `open` gives the dataset of a node. */
export class Scales {
  readonly #file: File;
  readonly #open: (path: string, node: ObjectNode) => Dataset;
  #known: KnownScales | null = null;

  constructor(file: File, open: (path: string, node: ObjectNode) => Dataset) {
    this.#file = file;
    this.#open = open;
  }

  /** Before a commit that others see: unlimited scales of netCDF grow to the length of their longest variable. */
  grow(): void {
    const session = sessionOf(this.#file);
    if (!this.#known) {
      this.#known = this.#find();
      if (this.#known.all.size > 0) withScales.add(session);
    }
    if (!withScales.has(session)) return;
    if (!this.#isKnown()) this.#known = this.#find();
    unlessUnsupported(() => this.#lengthen(this.#known as KnownScales));
  }

  /** Before any other commit: after it nothing tells what it has changed. */
  notice(): void {
    if (this.#known && withScales.has(sessionOf(this.#file)) && !this.#isKnown()) this.#known = null;
  }

  /** Before the file is closed, if it was changed: as above, and every scale gets its REFERENCE_LIST. */
  finish(): void {
    const session = sessionOf(this.#file);
    const { structure, log } = session;
    const isChanged = structure.commitNumber > 1 || structure.dirty.size > 0 || session.waiting().requests > 0;
    if (!isChanged && !log?.resized.size) return;
    this.#known = null;
    const known = this.#find();
    unlessUnsupported(() => {
      this.#lengthen(known);
      settleScales(structure, [...known.paths.keys()], known.uses);
    });
  }

  #find(): KnownScales {
    const session = sessionOf(this.#file);
    const { structure } = session;
    structure.loadScales();
    const paths = new Map([[structure.root, '/']]);
    const members = new Map<ObjectNode, (ObjectNode | null)[]>();
    for (const [group, path] of paths) {
      if (group.kind === 'group') members.set(group, membersOf(group));
      for (const { name, node } of group.links.values()) {
        const shown = node && !paths.has(node) ? session.shownIn(group, name) : undefined;
        if (node && shown !== undefined) paths.set(node, `${path === '/' ? '' : path}/${shown}`);
      }
    }
    const nodes = [...paths.keys()];
    const lists = new Map(nodes.filter(({ kind }) => kind === 'dataset').map((node) => [node, listOf(node)]));
    const uses = scaleUses(structure, nodes);
    return { paths, uses, all: this.#withScalesOf(uses, paths), members, lists };
  }

  /** netCDF has coordinate variables of several dimensions: as scales they have no scales, but the numbers of their dimensions. */
  #withScalesOf(uses: Uses, paths: KnownScales['paths']): Uses {
    const all = new Map(uses);
    const scales = new Map<unknown, ObjectNode>();
    for (const node of paths.keys())
      if (!isPrepared(node) && (node.attributes.has(NETCDF_ID) || node.attributes.has(`_${NETCDF_ID}`)))
        scales.set(this.#open(paths.get(node) as string, node).attributes.get(NETCDF_ID), node);
    for (const dataset of scales.values()) {
      const ids = this.#open(paths.get(dataset) as string, dataset).attributes.get(NETCDF_IDS);
      for (let dimension = 1; ids instanceof Int32Array && dimension < ids.length; dimension++) {
        const scale = scales.get(ids[dimension]);
        if (scale) all.set(scale, [...(all.get(scale) ?? []), { dataset, dimension }]);
      }
    }
    return all;
  }

  /** Whether what was found is so still, after what has changed since the last commit. */
  #isKnown(): boolean {
    const { members, lists } = this.#known as KnownScales;
    for (const node of sessionOf(this.#file).structure.dirty) {
      if (node.kind === 'dataset' && (!lists.has(node) || lists.get(node) !== listOf(node))) return false;
      if (node.kind !== 'group') continue;
      const [before, now] = [members.get(node), membersOf(node)];
      if (before?.length !== now.length || now.some((member, i) => member !== before[i])) return false;
    }
    return true;
  }

  #lengthen({ paths, all }: KnownScales): void {
    const datasetOf = (node: ObjectNode): Dataset => this.#open(paths.get(node) as string, node);
    const lengths = new Map<ObjectNode, Map<number, number>>();
    for (const [node, list] of all) {
      const scale = paths.has(node) ? datasetOf(node) : undefined;
      if (scale?.maxShape[0] !== null || !scale.attributes.has(NETCDF_ID)) continue;
      const sizes = list.map(({ dataset, dimension }) => datasetOf(dataset).shape[dimension] ?? 0);
      const longest = Math.max(isDimensionOnly(scale) ? 0 : (scale.shape[0] ?? 0), ...sizes);
      lengthen(scale, new Map([[0, longest]]));
      for (const { dataset, dimension } of list) {
        const known = lengths.get(dataset);
        if (known) known.set(dimension, longest);
        else lengths.set(dataset, new Map([[dimension, longest]]));
      }
    }
    // netcdf-c pads a variable in its first dimension if no other one is unlimited. Everything else it reads wrong.
    for (const [node, sizes] of lengths) if (sizes.size > 1 || !sizes.has(0)) lengthen(datasetOf(node), sizes);
  }
}

/** What cannot be written again stays as it is: it only says again what other attributes and shapes say. */
function unlessUnsupported(change: () => void): void {
  try {
    change();
  } catch (error) {
    if (!isH5LogError(error, 'UNSUPPORTED')) throw error;
  }
}
