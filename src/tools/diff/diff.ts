import { Dataset } from '../../api/dataset.ts';
import { File } from '../../api/file.ts';
import { Group } from '../../api/group.ts';
import { H5LogError } from '../../base/errors.ts';
import { AMOUNT, ANY, checkOptions, type Kinds } from '../../base/options.ts';
import { describeType, sameType } from '../../dtype/describe.ts';
import type { LinkTarget } from '../../hdf5/messages/link.ts';
import { cellOf } from '../../space/grid.ts';
import { identityOf, type Member, membersOf, nameOf, type Source, sayingKind } from '../inside.ts';
import { type Plain, plainValue, valuePrinter } from '../value-text.ts';
import {
  canCompare,
  compareData,
  compareLists,
  type Described,
  describeDataset,
  distanceOf,
  type FoundLeaf,
  isMeasured,
  shapeNotes,
  type Tolerance,
} from './compare.ts';

export interface DiffOptions extends Tolerance {
  /** Objects that are not looked at, with what is below them. */
  excludePaths?: readonly string[];
  /** The object to begin with, in both files or in each of them. */
  object?: string;
  otherObject?: string;
  /** The most values that are listed of an object; 100 unless it is said. All of them are counted. */
  listed?: number;
}

const OPTIONS: Kinds<DiffOptions> = {
  delta: ANY,
  relative: ANY,
  excludePaths: ANY,
  object: ANY,
  otherObject: ANY,
  listed: AMOUNT,
};

export type ComparedKind = 'group' | 'dataset' | 'attribute' | 'datatype' | 'link';

/** A value that differs. */
export interface ValueDifference {
  /** Coordinates; none in a scalar. */
  readonly position: readonly number[];
  /** The way to the number inside an element: .field, [2]. */
  readonly within: string;
  readonly a: Plain;
  readonly b: Plain;
  /** As h5dump would print them. */
  readonly texts: readonly [string, string];
  /** b - a, of numbers. */
  readonly difference?: Plain;
  /** The difference divided by a; missing where a is 0. */
  readonly relative?: Plain;
}

export interface ObjectDifference {
  readonly kind: ComparedKind;
  /** In the first and in the second file; of an attribute, those of its object. */
  readonly path: string;
  readonly otherPath: string;
  /** Of an attribute. */
  readonly name?: string;
  /** What differs besides values: types, shapes, targets of links. */
  readonly notes: readonly string[];
  /** Notes and values that differ. */
  readonly differences: number;
  readonly values: readonly ValueDifference[];
}

export interface Diff {
  readonly a: string;
  readonly b: string;
  readonly same: boolean;
  /** Values, types, shapes, links that differ, and names that are in one file only. */
  readonly differences: number;
  /** Groups, datasets, attributes, types and links that are in both. */
  readonly compared: number;
  readonly onlyInA: readonly string[];
  readonly onlyInB: readonly string[];
  /** What differs. */
  readonly objects: readonly ObjectDifference[];
}

/** What a comparison finds, in the order of finding. Between `begin` and `end` everything is about that object. */
export type DiffEvent =
  | { readonly type: 'only'; readonly in: 'a' | 'b'; readonly path: string; readonly name?: string }
  | ({ readonly type: 'begin' } & Pair)
  | { readonly type: 'note'; readonly text: string }
  | { readonly type: 'value'; readonly value: ValueDifference }
  | ({ readonly type: 'end'; readonly differences: number } & Pair);

interface Pair {
  readonly kind: ComparedKind;
  readonly path: string;
  readonly otherPath: string;
  readonly name?: string;
  readonly shapes?: readonly [Described, Described];
}

/**
 * Compares the contents of two files, logs or regular ones: structure, types, shapes, attributes and values. NaN is equal to NaN.
 *
 * @example const { same } = await diff('log.h5', 'replayed.h5');
 */
export async function diff(a: Source, b: Source, options: DiffOptions = {}): Promise<Diff> {
  const { listed = 100 } = checkOptions('diff', options, OPTIONS);
  const objects: ObjectDifference[] = [];
  const only: Record<'a' | 'b', string[]> = { a: [], b: [] };
  let [differences, compared] = [0, 0];
  let [notes, values]: [string[], ValueDifference[]] = [[], []];
  const names: [string, string] = ['', ''];
  for await (const event of differencesOf(a, b, options, names)) {
    switch (event.type) {
      case 'only':
        only[event.in].push(event.name === undefined ? event.path : `${event.path} ${event.name}`);
        differences++;
        break;
      case 'begin':
        compared++;
        [notes, values] = [[], []];
        break;
      case 'note':
        notes.push(event.text);
        break;
      case 'value':
        if (values.length < listed) values.push(event.value);
        break;
      case 'end': {
        differences += event.differences;
        const { kind, path, otherPath, name } = event;
        const what = { kind, path, otherPath, ...(name !== undefined && { name }) };
        if (event.differences > 0) objects.push({ ...what, notes, differences: event.differences, values });
      }
    }
  }
  const same = differences === 0;
  return { a: names[0], b: names[1], same, differences, compared, onlyInA: only.a, onlyInB: only.b, objects };
}

/** The same as a stream, for files that differ in more values than fit into memory. */
export async function* differencesOf(
  a: Source,
  b: Source,
  options: DiffOptions = {},
  names: [string, string] = ['', ''],
): AsyncGenerator<DiffEvent, void, undefined> {
  checkTolerance(checkOptions('differencesOf', options, OPTIONS));
  const first = await sayingKind(a, () => File.open(a));
  try {
    const second = await sayingKind(b, () => File.open(b));
    try {
      names[0] = nameOf(first);
      names[1] = nameOf(second);
      yield* new Walk(options).from(first, second);
    } finally {
      await second.close();
    }
  } finally {
    await first.close();
  }
}

function checkTolerance({ delta, relative }: Tolerance): void {
  if (delta !== undefined && relative !== undefined)
    throw new H5LogError('OPTION', 'either a delta or a relative difference may be allowed, not both');
  for (const [name, value] of Object.entries({ delta, relative })) {
    if (value !== undefined && !(value >= 0))
      throw new H5LogError('OPTION', `${name} is a number from 0 up, not ${value}`);
  }
}

/** An object, or a committed type. */
type Attributed = Pick<Group, 'path' | 'attributes'>;

type Events = AsyncGenerator<DiffEvent, void, undefined>;

class Walk {
  readonly #options: DiffOptions;
  readonly #excluded: readonly string[];
  /** Pairs of objects that were compared, under whatever names. */
  readonly #seen = new Map<object, Set<object>>();

  constructor(options: DiffOptions) {
    this.#options = options;
    this.#excluded = (options.excludePaths ?? []).map((path) => `/${path.split('/').filter(Boolean).join('/')}`);
  }

  async *from(a: File, b: File): Events {
    const { object = '/', otherObject = object } = this.#options;
    yield* this.#objects(found(a, object), found(b, otherObject));
  }

  /** Groups wait in a list: files may be deeper than the stack. */
  async *#objects(a: Group | Dataset, b: Group | Dataset): Events {
    const waiting: [Group | Dataset, Group | Dataset][] = [[a, b]];
    for (let pair = waiting.pop(); pair; pair = waiting.pop()) {
      const [x, y] = pair;
      if (this.#isSeen(x, y)) continue;
      if (x instanceof Dataset && y instanceof Dataset) yield* this.#datasets(x, y);
      else if (x instanceof Group && y instanceof Group) {
        const inside: typeof waiting = [];
        yield* this.#groups(x, y, inside);
        waiting.push(...inside.reverse());
      } else yield* this.#notes({ kind: x.kind, ...paths(x, y) }, [`a ${x.kind} and a ${y.kind}`]);
    }
  }

  #isSeen(a: Group | Dataset, b: Group | Dataset): boolean {
    const others = this.#seen.get(identityOf(a)) ?? new Set<object>();
    this.#seen.set(identityOf(a), others);
    if (others.has(identityOf(b))) return true;
    others.add(identityOf(b));
    return false;
  }

  async *#groups(a: Group, b: Group, inside: [Group | Dataset, Group | Dataset][]): Events {
    const pair: Pair = { kind: 'group', ...paths(a, b) };
    yield* this.#notes(pair, []);
    yield* this.#attributes(a, b);
    const [ours, theirs] = [membersByName(a), membersByName(b)];
    for (const name of [...new Set([...ours.keys(), ...theirs.keys()])].sort()) {
      const [x, y] = [ours.get(name), theirs.get(name)];
      if (this.#isExcluded((x ?? y)?.path ?? '')) continue;
      if (!x || !y) yield { type: 'only', in: x ? 'a' : 'b', path: (x ?? (y as Member)).path };
      else if (x.problem ?? y.problem) throw x.problem ?? y.problem;
      else if (x.object && y.object) inside.push([x.object, y.object]);
      else yield* this.#others(x, y);
    }
  }

  #isExcluded(path: string): boolean {
    return this.#excluded.some((excluded) => path === excluded || path.startsWith(`${excluded}/`));
  }

  /** Links, committed types, and what is an object in one file only. */
  async *#others(a: Member, b: Member): Events {
    const isType = a.datatype !== undefined && b.datatype !== undefined;
    const pair: Pair = { kind: isType ? 'datatype' : 'link', path: a.path, otherPath: b.path };
    const [x, y] = [memberText(a), memberText(b)];
    const same = a.datatype && b.datatype ? sameType(a.datatype.dtype, b.datatype.dtype) : x === y;
    yield* this.#notes(pair, same ? [] : [`${x} and ${y}`]);
    if (a.datatype && b.datatype)
      yield* this.#attributes(
        { path: a.path, attributes: a.datatype.attributes },
        { path: b.path, attributes: b.datatype.attributes },
      );
  }

  async *#notes(pair: Pair, notes: readonly string[]): Events {
    yield { type: 'begin', ...pair };
    for (const text of notes) yield { type: 'note', text };
    yield { type: 'end', differences: notes.length, ...pair };
  }

  async *#datasets(a: Dataset, b: Dataset): Events {
    const shapes: readonly [Described, Described] = [describeDataset(a), describeDataset(b)];
    const pair: Pair = { kind: 'dataset', ...paths(a, b), shapes };
    yield* this.#arrays(pair, shapes, () => compareData(a, b, this.#options));
    yield* this.#attributes(a, b);
  }

  async *#attributes(a: Attributed, b: Attributed): Events {
    const names = new Set([...a.attributes.keys(), ...b.attributes.keys()]);
    for (const name of [...names].sort()) {
      const [x, y] = [a.attributes.describe(name), b.attributes.describe(name)];
      if (!x || !y) {
        yield { type: 'only', in: x ? 'a' : 'b', path: (x ? a : b).path, name };
        continue;
      }
      const shapes: readonly [Described, Described] = [x, y];
      const pair: Pair = { kind: 'attribute', ...paths(a, b), name, shapes };
      const [ours, theirs] = [listOf(a.attributes.get(name), x), listOf(b.attributes.get(name), y)];
      const position = (i: number): number[] => cellOf(i, x.shape ?? []);
      yield* this.#arrays(pair, shapes, () => compareLists(ours, theirs, x.dtype, this.#options, position));
    }
  }

  async *#arrays(
    pair: Pair,
    [a, b]: readonly [Described, Described],
    compare: () => AsyncIterable<FoundLeaf> | Iterable<FoundLeaf>,
  ): Events {
    let differences = 0;
    yield { type: 'begin', ...pair };
    for (const text of shapeNotes(a, b)) {
      differences++;
      yield { type: 'note', text };
    }
    if (canCompare(a, b)) {
      for await (const leaf of compare()) {
        differences++;
        yield { type: 'value', value: described(leaf) };
      }
    }
    yield { type: 'end', differences, ...pair };
  }
}

function found(file: File, path: string): Group | Dataset {
  const object = file.get(path);
  if (object) return object;
  throw new H5LogError('NOT_FOUND', `there is no ${path} in ${nameOf(file)}`, { file: nameOf(file), object: path });
}

const paths = (a: Attributed, b: Attributed) => ({ path: a.path, otherPath: b.path });

function membersByName(group: Group): ReadonlyMap<string, Member> {
  return new Map([...membersOf(group)].map((member) => [member.name, member]));
}

function memberText({ object, datatype, link }: Member): string {
  if (object) return `a ${object.kind}`;
  return datatype ? `the type ${describeType(datatype.dtype)}` : linkText(link);
}

function linkText(link: LinkTarget): string {
  if (link.kind === 'soft') return `a soft link to ${link.path}`;
  if (link.kind === 'external') return `an external link to ${link.path} in ${link.file}`;
  return link.kind === 'hard' ? 'a hard link to nothing' : `a link of type ${link.type}`;
}

/** Attributes without dimensions are values of their own. */
function listOf(value: unknown, { shape }: Described): ArrayLike<unknown> {
  if (shape === null) return [];
  return shape.length === 0 ? [value] : (value as ArrayLike<unknown>);
}

function described({ position, within, dtype, a, b }: FoundLeaf): ValueDifference {
  const print = valuePrinter(dtype);
  const texts: readonly [string, string] = [print(a), print(b)];
  const common = { position, within, a: plainValue(a), b: plainValue(b), texts };
  if (!isMeasured(dtype)) return common;
  const difference = distanceOf(a as number, b as number);
  const relative = Number(a) === 0 ? {} : { relative: plainValue(Math.abs(difference / Number(a))) };
  return { ...common, difference: plainValue(difference), ...relative };
}
