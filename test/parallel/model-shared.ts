import { type File, Group } from 'h5log';
import { compareAttributes, compareFile } from '../log/model/compare.ts';
import { Difference, ModelDataset, ModelFile } from '../log/model/state.ts';
import { shown } from '../log/model/types.ts';

/** In what a rank has pending: nothing is posted for this element. */
const NOTHING = 255;

/** A dataset that several ranks write: what is committed, in the present shape, and over it what each rank has posted since. */
export class SharedDataset {
  readonly base: ModelDataset;
  #posted: ModelDataset[];

  constructor(base: ModelDataset, ranks: number) {
    this.base = base;
    this.#posted = Array.from({ length: ranks }, () => this.#nothing());
  }

  #nothing(): ModelDataset {
    return new ModelDataset(this.base.type, this.base.shape, this.base.maxShape, NOTHING);
  }

  post(rank: number, at: readonly (readonly number[])[], values: readonly number[]): void {
    (this.#posted[rank] as ModelDataset).write(at, values);
  }

  /** All ranks do it together: what is cut off is gone, pending or not. */
  resize(shape: readonly number[]): void {
    for (const part of [this.base, ...this.#posted]) part.resize(shape);
  }

  /** What a rank reads: its own posts over what is committed. */
  seenBy(rank: number): ModelDataset {
    const seen = this.base.clone();
    overlay(seen, this.#posted[rank] as ModelDataset);
    return seen;
  }

  /** A flush: of several ranks' posts to one element that of the highest rank counts. */
  commit(): void {
    for (const posted of this.#posted) overlay(this.base, posted);
    this.#posted = this.#posted.map(() => this.#nothing());
  }
}

function overlay(under: ModelDataset, over: ModelDataset): void {
  over.values.forEach((value, i) => {
    if (value !== NOTHING) under.values[i] = value;
  });
}

/** A file as one rank sees it, or as it was committed. */
export class View extends ModelFile {
  groups = new Map<string, Map<string, unknown>>();

  /** Equal texts: nothing differs. */
  text(): string {
    const sorted = <X>(map: ReadonlyMap<string, X>): [string, X][] => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
    const datasets = sorted(this.datasets).map(([path, { shape, maxShape, values, attributes }]) => [
      path,
      [shape, maxShape, values, sorted(attributes)],
    ]);
    const groups = sorted(this.groups).map(([path, attributes]) => [path, sorted(attributes)]);
    return shown([datasets, groups, sorted(this.attributes)]);
  }
}

/** What all ranks know of a file: every rank works out the posts of every other. */
export class SharedFile {
  readonly datasets = new Map<string, SharedDataset>();
  readonly soft = new Map<string, string>();
  readonly groups = new Map<string, Map<string, unknown>>();
  readonly attributes = new Map<string, unknown>();

  has(path: string): boolean {
    return this.datasets.has(path) || this.soft.has(path) || this.groups.has(path);
  }

  /** The groups on the way to a path are made with what is there. */
  makeWay(path: string): void {
    for (let end = path.indexOf('/'); end > 0; end = path.indexOf('/', end + 1)) this.makeGroup(path.slice(0, end));
  }

  makeGroup(path: string): void {
    this.makeWay(path);
    if (!this.groups.has(path)) this.groups.set(path, new Map());
  }

  delete(path: string): void {
    for (const map of [this.datasets, this.soft, this.groups]) {
      for (const name of [...map.keys()]) if (name === path || name.startsWith(`${path}/`)) map.delete(name);
    }
  }

  move(from: string, to: string): void {
    this.makeWay(to);
    const rename = <X>(map: Map<string, X>): void => {
      for (const [name, value] of [...map]) {
        if (name !== from && !name.startsWith(`${from}/`)) continue;
        map.delete(name);
        map.set(`${to}${name.slice(from.length)}`, value);
      }
    };
    rename(this.datasets);
    rename(this.soft);
    rename(this.groups);
  }

  /** Where a soft link leads, over others if need be; undefined: nowhere. */
  #endOf(path: string): string | undefined {
    const passed = new Set<string>();
    let at = path;
    for (let next = this.soft.get(at); next !== undefined; next = this.soft.get(at)) {
      if (passed.has(at)) return undefined;
      passed.add(at);
      at = next;
    }
    return this.datasets.has(at) ? at : undefined;
  }

  commit(): void {
    for (const dataset of new Set(this.datasets.values())) dataset.commit();
  }

  /** As a rank sees it; without one, what is committed. */
  view(rank?: number): View {
    const view = new View();
    const seen = new Map<SharedDataset, ModelDataset>();
    for (const [path, dataset] of this.datasets) {
      const known = seen.get(dataset) ?? (rank === undefined ? dataset.base.clone() : dataset.seenBy(rank));
      seen.set(dataset, known);
      view.datasets.set(path, known);
    }
    for (const path of this.soft.keys()) {
      const target = this.#endOf(path);
      if (target !== undefined) view.datasets.set(path, view.datasets.get(target) as ModelDataset);
    }
    for (const [path, attributes] of this.groups) view.groups.set(path, new Map(attributes));
    view.attributes = new Map(this.attributes);
    return view;
  }
}

function* groupsOf(group: Group): Generator<Group> {
  for (const [, child] of group.children()) {
    if (!(child instanceof Group)) continue;
    yield child;
    yield* groupsOf(child);
  }
}

/** Everything in the file is as in the view. */
export async function compareView(file: File, view: View, what: string): Promise<void> {
  const found = new Map([...groupsOf(file)].map((group) => [group.path.slice(1), group]));
  const [names, expected] = [[...found.keys()].sort().join(' '), [...view.groups.keys()].sort().join(' ')];
  if (names !== expected) throw new Difference(`${what}: groups ${names}, expected ${expected}`);
  for (const [path, group] of found)
    compareAttributes(group, view.groups.get(path) as Map<string, unknown>, `${what}: ${path}`);
  await compareFile(file, view, what);
}
