import type { Attributes } from '../../api/attributes.ts';
import type { Dataset } from '../../api/dataset.ts';
import { File } from '../../api/file.ts';
import { Group } from '../../api/group.ts';
import { isH5LogError } from '../../base/errors.ts';
import { ANY, checkOptions, FLAG } from '../../base/options.ts';
import { describeType } from '../../dtype/describe.ts';
import type { DType } from '../../dtype/model.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import { type Slab, sizeOf } from '../../space/shape.ts';
import {
  committedTypeOf,
  identityOf,
  isNull,
  type Member,
  membersOf,
  nameOf,
  type Source,
  sayingKind,
} from '../inside.ts';
import { attributesOf } from '../list/list.ts';
import { isTall, plainValue, quotedText, typeLines, valuePrinter } from '../value-text.ts';
import { type FullSlab, slabCoordinate, slabOf, slabShape, valuesOf } from '../values.ts';

export interface DatasetDumpOptions {
  /** Paths of the datasets. Default: everything in the file, groups and links as well. */
  datasets?: readonly string[];
  /** Only these elements. */
  slab?: Slab;
  /** No values. */
  header?: boolean;
}

/** Lines, and at the end the number of objects that could not be read. */
type Lines = AsyncGenerator<string, number, undefined>;

/**
 * The contents of a file, or of some datasets, as h5dump prints them, line by line. Large datasets are read piece by piece. An object
 * that cannot be read gets a line `ERROR`.
 *
 * @example for await (const line of datasetLines('run.h5', { datasets: ['/T'] })) console.log(line);
 */
export function datasetLines(source: Source, options: DatasetDumpOptions = {}): Lines {
  return opened(source, 'datasetLines', options, async function* (file, chosen) {
    const text = new DumpText(file, options);
    yield `HDF5 ${quotedText(nameOf(file))} {`;
    if (chosen) for (const { dataset, slab } of chosen) yield* text.dataset(dataset, dataset.path, slab, '');
    else yield* text.everything();
    yield '}';
    return text.problems;
  });
}

/** The facts that {@link datasetLines} prints as JSON, in parts of a text. */
export function datasetJson(source: Source, options: DatasetDumpOptions = {}): Lines {
  return opened(source, 'datasetJson', options, async function* (file, chosen) {
    yield `{"file": ${JSON.stringify(nameOf(file))},`;
    let datasets = chosen;
    if (!datasets) {
      const found = everyObject(file);
      yield `${JSON.stringify({ groups: found.groups, links: found.links, datatypes: found.datatypes }).slice(1, -1)},`;
      datasets = found.datasets.map((dataset) => ({ dataset, slab: wholeSlab(dataset) }));
    }
    yield '"datasets": [';
    for (const [i, { dataset, slab }] of datasets.entries())
      yield* datasetParts(dataset, options.header ? null : slab, i + 1 < datasets.length ? ',' : '');
    yield ']}';
    return 0;
  });
}

/** Values on a line of JSON. */
const MANY = 1024;

/** A dataset as JSON, with its values if there is a slab, and `end` behind it. */
async function* datasetParts(dataset: Dataset, slab: FullSlab | null, end: string): AsyncGenerator<string> {
  const { path, dtype, maxShape } = dataset;
  const shape = isNull(dataset) ? null : dataset.shape;
  const facts = { path, dtype: describeType(dtype), shape, maxShape, attributes: attributesOf(dataset) };
  const selected = slab && { slab, selected: slabShape(slab) };
  yield `${JSON.stringify({ ...facts, ...selected }).slice(0, -1)}${slab ? ', "values": [' : `}${end}`}`;
  if (!slab) return;
  let isFirst = true;
  for await (const piece of valuesOf(dataset, slab)) {
    for (let at = 0; at < piece.length; at += MANY) {
      const part = Array.prototype.slice.call(piece, at, at + MANY).map(plainValue);
      yield `${isFirst ? '' : ','}${JSON.stringify(part).slice(1, -1)}`;
      isFirst = false;
    }
  }
  yield `]}${end}`;
}

/** A dataset to print, and which part of it; null: it has no elements at all. */
interface Chosen {
  readonly dataset: Dataset;
  readonly slab: FullSlab | null;
}

const wholeSlab = (dataset: Dataset): FullSlab | null => (isNull(dataset) ? null : slabOf(dataset, {}));

/** Finds all datasets, and what is wrong with the selection, before anything is printed. null: print everything. */
async function* opened(
  source: Source,
  call: string,
  options: DatasetDumpOptions,
  print: (file: File, chosen: readonly Chosen[] | null) => Lines,
): Lines {
  const { datasets, slab = {} } = checkOptions(call, options, { datasets: ANY, slab: ANY, header: FLAG });
  const file = await sayingKind(source, () => File.open(source));
  try {
    const isWhole = Object.keys(slab).length === 0;
    const chosen = datasets?.map((path) => {
      const dataset = file.dataset(path);
      return { dataset, slab: isWhole ? wholeSlab(dataset) : slabOf(dataset, slab) };
    });
    return yield* print(file, chosen ?? null);
  } finally {
    await file.close();
  }
}

// ---------------------------------------------------------------- all objects

/** A step of a walk through a file: a member of a group, or the end of one. */
type Step =
  | { readonly kind: 'member'; readonly member: Member; readonly depth: number; readonly sameAs: string | undefined }
  | { readonly kind: 'end'; readonly depth: number };

/**
 * All members of all groups, in the order of names as h5dump has it. An object with several names is entered by the first. Without
 * recursion: files may be deeper than the stack.
 */
function* walk(file: File): Iterable<Step> {
  const seen = new Map<ObjectNode, string>([[identityOf(file), '/']]);
  const open = [sortedMembers(file)];
  while (open.length > 0) {
    const depth = open.length;
    const { done, value: member } = (open.at(-1) as Iterator<Member>).next();
    if (done) {
      open.pop();
      yield { kind: 'end', depth: depth - 1 };
      continue;
    }
    const node = member.object ? identityOf(member.object) : member.datatype?.node;
    const sameAs = node && seen.get(node);
    if (node && sameAs === undefined) seen.set(node, member.path);
    yield { kind: 'member', member, depth, sameAs };
    if (sameAs === undefined && member.object instanceof Group) open.push(sortedMembers(member.object));
  }
}

function sortedMembers(group: Group): Iterator<Member> {
  return [...membersOf(group)].sort((a, b) => byName(a.name, b.name))[Symbol.iterator]();
}

/** The order of code points, which is that of the bytes of UTF-8. */
function byName(a: string, b: string): number {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  return (a.codePointAt(i) ?? -1) - (b.codePointAt(i) ?? -1);
}

function everyObject(file: File) {
  const groups = [{ path: '/', attributes: attributesOf(file) }];
  const links: object[] = [];
  const datatypes: object[] = [];
  const datasets: Dataset[] = [];
  for (const step of walk(file)) {
    if (step.kind === 'end') continue;
    const { member, sameAs } = step;
    const { path, link, object, datatype, problem } = member;
    if (problem) throw problem;
    if (sameAs !== undefined) links.push({ path, kind: 'hard', target: sameAs });
    else if (link.kind === 'soft') links.push({ path, kind: 'soft', target: link.path });
    else if (link.kind === 'external') links.push({ path, kind: 'external', file: link.file, target: link.path });
    else if (object instanceof Group) groups.push({ path, attributes: attributesOf(object) });
    else if (object) datasets.push(object);
    else if (datatype)
      datatypes.push({ path, dtype: describeType(datatype.dtype), attributes: attributesOf(datatype) });
    else links.push({ path, kind: 'other' });
  }
  return { groups, links, datatypes, datasets };
}

// ---------------------------------------------------------------- text

const STEP = '   ';

/** The text of a file's contents. */
class DumpText {
  /** Objects that could not be read. */
  problems = 0;
  readonly #file: File;
  readonly #header: boolean;
  readonly #isPart: boolean;
  /** Paths of committed datatypes, once one is asked for. */
  #types: Map<ObjectNode, string> | null = null;

  constructor(file: File, { header = false, slab = {} }: DatasetDumpOptions) {
    this.#file = file;
    this.#header = header;
    this.#isPart = Object.keys(slab).length > 0;
  }

  async *everything(): AsyncGenerator<string> {
    yield 'GROUP "/" {';
    yield* this.#attributes(this.#file, STEP);
    for (const step of walk(this.#file)) {
      const indent = STEP.repeat(step.depth);
      if (step.kind === 'end') yield `${indent}}`;
      else yield* this.#member(step.member, step.sameAs, indent);
    }
  }

  /** A member of a group. Of a group only the beginning. */
  async *#member(member: Member, sameAs: string | undefined, indent: string): AsyncGenerator<string> {
    const { link, object, datatype, problem } = member;
    const name = quotedText(member.name);
    const block = (kind: string, ...lines: string[]): string[] => [
      `${indent}${kind} ${name} {`,
      ...lines.map((line) => `${indent}${STEP}${line}`),
      `${indent}}`,
    ];
    if (link.kind === 'soft') yield* block('SOFTLINK', `LINKTARGET ${quotedText(link.path)}`);
    else if (link.kind === 'external')
      yield* block('EXTERNAL_LINK', `TARGETFILE ${quotedText(link.file)}`, `TARGETPATH ${quotedText(link.path)}`);
    else if (link.kind === 'user') yield* block('USERDEFINED_LINK', `LINKCLASS ${link.type}`);
    else if (datatype && sameAs !== undefined) yield `${indent}DATATYPE ${name} HARDLINK ${quotedText(sameAs)}`;
    else if (datatype) yield* this.#datatype(name, datatype, indent);
    else if (!object) {
      this.problems++;
      yield* block('OBJECT', `ERROR ${quotedText(problem?.message ?? 'the link leads to nothing')}`);
    } else if (sameAs !== undefined)
      yield* block(object instanceof Group ? 'GROUP' : 'DATASET', `HARDLINK ${quotedText(sameAs)}`);
    else if (object instanceof Group) {
      yield `${indent}GROUP ${name} {`;
      yield* this.#attributes(object, `${indent}${STEP}`);
    } else yield* this.dataset(object, member.name, undefined, indent);
  }

  *#datatype(name: string, datatype: NonNullable<Member['datatype']>, indent: string): Iterable<string> {
    const lines = typeLines(datatype.dtype);
    const isCompound = lines[0]?.startsWith('H5T_COMPOUND');
    for (const [i, line] of lines.entries()) {
      const end = i + 1 === lines.length && !isCompound ? ';' : '';
      yield `${indent}${i === 0 ? `DATATYPE ${name} ` : ''}${line}${end}`;
    }
    yield* this.#attributes(datatype, `${indent}${STEP}`);
  }

  /** A dataset; without a slab all of it. */
  async *dataset(
    dataset: Dataset,
    name: string,
    slab: FullSlab | null | undefined,
    indent: string,
  ): AsyncGenerator<string> {
    yield `${indent}DATASET ${quotedText(name)} {`;
    const inner = `${indent}${STEP}`;
    try {
      yield* this.#type(dataset.dtype, committedTypeOf(dataset), inner);
      yield `${inner}DATASPACE  ${spaceText(isNull(dataset) ? null : dataset.shape, dataset.maxShape)}`;
      if (!this.#header) yield* this.#data(dataset, slab === undefined ? wholeSlab(dataset) : slab, inner);
      yield* this.#attributes(dataset, inner);
    } catch (error) {
      yield this.#error(error, inner);
    }
    yield `${indent}}`;
  }

  async *#data(dataset: Dataset, slab: FullSlab | null, indent: string): AsyncGenerator<string> {
    if (slab && this.#isPart) yield* subsetLines(slab, indent);
    const inner = this.#isPart ? `${indent}${STEP}` : indent;
    yield `${inner}DATA {`;
    if (slab) {
      const lines = new ElementLines(dataset.dtype, slabShape(slab), inner, (d, i) => slabCoordinate(slab, d, i));
      try {
        for await (const values of valuesOf(dataset, slab)) yield* lines.add(values);
      } catch (error) {
        yield this.#error(error, inner);
      }
    }
    yield `${inner}}`;
    if (this.#isPart) yield `${indent}}`;
  }

  *#attributes(object: Parameters<typeof committedTypeOf>[0] & { attributes: Attributes }, indent: string) {
    const { attributes } = object;
    for (const name of [...attributes.keys()].sort(byName)) {
      const inner = `${indent}${STEP}`;
      yield `${indent}ATTRIBUTE ${quotedText(name)} {`;
      try {
        const { dtype, shape } = attributes.describe(name) as { dtype: DType; shape: readonly number[] | null };
        yield* this.#type(dtype, committedTypeOf(object, name), inner);
        yield `${inner}DATASPACE  ${spaceText(shape, shape ?? [])}`;
        if (!this.#header) {
          const value = shape === null ? [] : attributes.get(name);
          yield `${inner}DATA {`;
          const values = shape?.length === 0 ? [value] : (value as ArrayLike<unknown>);
          yield* new ElementLines(dtype, shape ?? [0], inner).add(values);
          yield `${inner}}`;
        }
      } catch (error) {
        yield this.#error(error, inner);
      }
      yield `${indent}}`;
    }
  }

  /** A line for what cannot be read; errors that are not ours are thrown on. */
  #error(error: unknown, indent: string): string {
    if (!isH5LogError(error)) throw error;
    this.problems++;
    return `${indent}ERROR ${quotedText(error.message)}`;
  }

  /** The type, or the path of the committed datatype that says it. */
  *#type(dtype: DType, committed: ObjectNode | undefined, indent: string): Iterable<string> {
    const path = committed && this.#pathOfType(committed);
    const [first, ...rest] = path === undefined ? typeLines(dtype) : [quotedText(path)];
    yield `${indent}DATATYPE  ${first}`;
    for (const line of rest) yield `${indent}${line}`;
  }

  #pathOfType(node: ObjectNode): string | undefined {
    if (!this.#types) {
      this.#types = new Map();
      for (const step of walk(this.#file)) {
        if (step.kind === 'member' && step.member.datatype && step.sameAs === undefined)
          this.#types.set(step.member.datatype.node, step.member.path);
      }
    }
    return this.#types.get(node);
  }
}

function spaceText(shape: readonly number[] | null, maxShape: readonly (number | null)[]): string {
  if (shape === null) return 'NULL';
  if (shape.length === 0) return 'SCALAR';
  return `SIMPLE { ( ${shape.join(', ')} ) / ( ${maxShape.map((size) => size ?? 'H5S_UNLIMITED').join(', ')} ) }`;
}

function* subsetLines({ start, stride, count, block }: FullSlab, indent: string): Iterable<string> {
  yield `${indent}SUBSET {`;
  for (const [name, list] of Object.entries({ START: start, STRIDE: stride, COUNT: count, BLOCK: block }))
    yield `${indent}${STEP}${name} ( ${list.join(', ')} );`;
}

/** The longest line that holds several elements; h5dump has 80 columns and leaves three. */
const WIDTH = 77;

/** The lines of DATA: the coordinates of the first element in front; a row of the last dimension begins a line. */
class ElementLines {
  readonly #print: (value: unknown) => string;
  readonly #isTall: boolean;
  readonly #shape: readonly number[];
  readonly #indent: string;
  readonly #coordinate: (dimension: number, i: number) => number;
  readonly #total: number;
  readonly #at: number[];
  #done = 0;
  #line = '';

  constructor(
    dtype: DType,
    shape: readonly number[],
    indent: string,
    coordinate: (dimension: number, i: number) => number = (_, i) => i,
  ) {
    this.#print = valuePrinter(dtype, indent.length);
    this.#isTall = isTall(dtype);
    this.#shape = shape;
    this.#indent = indent;
    this.#coordinate = coordinate;
    this.#total = sizeOf(shape);
    this.#at = shape.map(() => 0);
  }

  /** The lines of the next elements; the last one is kept back until it is full or its row ends. */
  *add(values: ArrayLike<unknown>): Iterable<string> {
    const last = this.#shape.length - 1;
    for (let i = 0; i < values.length; i++) {
      const text = `${this.#print(values[i])}${++this.#done < this.#total ? ',' : ''}`;
      const isFull = this.#line.length + 1 + text.length > WIDTH || this.#isTall;
      if (this.#line !== '' && isFull) yield* this.#take();
      this.#line = this.#line === '' ? `${this.#indent}${this.#coordinates()} ${text}` : `${this.#line} ${text}`;
      if (this.#advance(last) || this.#done === this.#total) yield* this.#take();
    }
  }

  *#take(): Iterable<string> {
    const line = this.#line;
    this.#line = '';
    yield line;
  }

  /** Moves to the next element; true at the end of a row. */
  #advance(last: number): boolean {
    if (last < 0) return true;
    this.#at[last] = (this.#at[last] as number) + 1;
    if (this.#at[last] !== this.#shape[last]) return false;
    for (let d = last; d > 0 && this.#at[d] === this.#shape[d]; d--) {
      this.#at[d] = 0;
      this.#at[d - 1] = (this.#at[d - 1] as number) + 1;
    }
    return true;
  }

  #coordinates(): string {
    if (this.#shape.length === 0) return '(0):';
    return `(${this.#at.map((i, d) => this.#coordinate(d, i)).join(',')}):`;
  }
}
