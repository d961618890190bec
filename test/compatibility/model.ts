import type { Filter } from 'h5log';
import { coordinatesOf, positionOf, positions, positionsOfMany } from './places.ts';
import type { Step } from './steps.ts';
import { type Json, product, type TypeText, zeroOf } from './types.ts';

export interface AttributeState {
  readonly dtype: TypeText;
  /** null: a NULL dataspace. */
  readonly shape: readonly number[] | null;
  readonly values: readonly Json[];
}

type Attributes = Readonly<Record<string, AttributeState>>;

/** A hard link names the path under which the object is listed. */
export type LinkState =
  | { readonly name: string; readonly to: string }
  | { readonly name: string; readonly soft: string }
  | { readonly name: string; readonly external: readonly [file: string, path: string] };

export interface GroupState {
  /** Names are in alphabetical order: other software made the group, without an order of creation. */
  readonly sorted?: true;
  readonly links: readonly LinkState[];
  readonly attributes: Attributes;
}

export interface DatasetState {
  readonly dtype: TypeText;
  readonly shape: readonly number[];
  readonly maxShape: readonly (number | null)[];
  readonly fill?: Json;
  readonly chunks: readonly number[] | null;
  readonly filters: readonly Filter[];
  readonly values: readonly Json[];
  readonly attributes: Attributes;
}

/** All objects of a file, each under the first path that leads to it by hard links. */
export type State = Readonly<Record<string, GroupState | DatasetState>>;

interface Group {
  readonly kind: 'group';
  readonly sorted?: true;
  readonly attributes: Record<string, AttributeState>;
  readonly links: Map<string, Group | Dataset | Exclude<LinkState, { to: string }>>;
}

interface Dataset extends Omit<DatasetState, 'shape' | 'attributes' | 'values'> {
  readonly kind: 'dataset';
  readonly attributes: Record<string, AttributeState>;
  shape: readonly number[];
  values: Json[];
}

type Write = Extract<Step, { do: 'write' | 'writeMany' }>;

/** A file in memory, without the library: takes the same steps and says what must be in the file then. */
export class Model {
  readonly #root: Group;
  /** Writes since the last flush, if ranks write: the higher rank wins whoever is first. */
  readonly #posted: Write[] = [];

  constructor(state: State = { '/': { links: [], attributes: {} } }) {
    const made = new Map<string, Group | Dataset>();
    for (const [path, object] of Object.entries(state)) {
      const attributes = { ...object.attributes };
      if ('links' in object) {
        const sorted = object.sorted ? { sorted: object.sorted } : {};
        made.set(path, { kind: 'group', ...sorted, attributes, links: new Map() });
      } else made.set(path, { ...object, kind: 'dataset', attributes, values: [...object.values] });
    }
    for (const [path, object] of Object.entries(state)) {
      if (!('links' in object)) continue;
      const group = made.get(path) as Group;
      for (const link of object.links) {
        group.links.set(link.name, 'to' in link ? (made.get(link.to) as Group | Dataset) : link);
      }
    }
    this.#root = made.get('/') as Group;
  }

  apply(step: Step): void {
    switch (step.do) {
      case 'group':
        this.#put(step.path, { kind: 'group', attributes: {}, links: new Map() });
        break;
      case 'dataset': {
        const { dtype, shape, maxShape = shape, fill, chunks = null, filters = [] } = step;
        const values = Array.from({ length: product(shape) }, () => fill ?? zeroOf(dtype));
        const given = fill === undefined ? {} : { fill };
        this.#put(step.path, {
          kind: 'dataset',
          ...{ dtype, shape, maxShape, ...given, chunks, filters, values },
          attributes: {},
        });
        for (const [name, text] of Object.entries(step.attributes ?? {})) {
          const type: TypeText = { string: 'variable', pad: 'zero', charset: 'utf8' };
          this.#object(step.path).attributes[name] = { dtype: type, shape: [], values: [text] };
        }
        break;
      }
      case 'write':
      case 'writeMany':
        if (step.rank === undefined) this.#write(step);
        else this.#posted.push(step);
        break;
      case 'flush':
        for (const write of this.#posted.splice(0).sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0))) this.#write(write);
        break;
      case 'resize':
        if (this.#posted.length > 0) throw new Error('programs flush what ranks wrote before they resize');
        this.#resize(this.dataset(step.path), step.shape);
        break;
      case 'attribute': {
        const { dtype, shape, values } = step;
        this.#object(step.path).attributes[step.name] = { dtype, shape, values };
        break;
      }
      case 'delete attribute':
        delete this.#object(step.path).attributes[step.name];
        break;
      case 'soft link':
        this.#put(step.path, { name: '', soft: step.target });
        break;
      case 'external link':
        this.#put(step.path, { name: '', external: [step.file, step.target] });
        break;
      case 'hard link':
        this.#put(step.path, this.#object(step.target));
        break;
      case 'move': {
        const { parent, name } = this.#place(step.path);
        const moved = parent.links.get(name);
        if (!moved) throw new Error(`nothing at ${step.path}`);
        parent.links.delete(name);
        this.#put(step.to, moved);
        break;
      }
      case 'delete': {
        const { parent, name } = this.#place(step.path);
        if (!parent.links.delete(name)) throw new Error(`nothing at ${step.path}`);
        break;
      }
    }
  }

  dataset(path: string): Dataset {
    const found = this.#object(path);
    if (found.kind !== 'dataset') throw new Error(`${path} is a group`);
    return found;
  }

  #write(step: Write): void {
    const dataset = this.dataset(step.path);
    const at =
      step.do === 'write'
        ? positions(step.where, dataset.shape)
        : positionsOfMany(step.starts, step.counts, dataset.shape);
    const memory = step.do === 'write' ? step.memory : undefined;
    const values = memory ? positions(memory.where, memory.shape).map((i) => step.values[i] as Json) : step.values;
    if (values.length !== at.length) throw new Error(`${values.length} values for ${at.length} of ${step.path}`);
    for (const [i, position] of at.entries()) dataset.values[position] = values[i] as Json;
  }

  #resize(dataset: Dataset, shape: readonly number[]): void {
    const { shape: before, values, dtype, fill } = dataset;
    dataset.values = Array.from({ length: product(shape) }, (_, at) => {
      const point = coordinatesOf(at, shape);
      const isOld = point.every((coordinate, d) => coordinate < (before[d] as number));
      return isOld ? (values[positionOf(point, before)] as Json) : (fill ?? zeroOf(dtype));
    });
    dataset.shape = shape;
  }

  #object(path: string): Group | Dataset {
    const found = this.#find(this.#root, path);
    if (!found) throw new Error(`the model has no ${path}`);
    return found;
  }

  #find(from: Group, path: string): Group | Dataset | undefined {
    let object: Group | Dataset | undefined = path.startsWith('/') ? this.#root : from;
    for (const name of namesIn(path)) {
      if (object?.kind !== 'group') return undefined;
      const inside: Group = object;
      const link = inside.links.get(name);
      if (link && 'external' in link) return undefined;
      object = link && 'soft' in link ? this.#find(inside, link.soft) : link;
    }
    return object;
  }

  #place(path: string): { parent: Group; name: string } {
    const names = namesIn(path);
    const name = names.pop() as string;
    let parent = this.#root;
    for (const component of names) {
      let next = this.#find(parent, component);
      if (!next) {
        next = { kind: 'group', attributes: {}, links: new Map() };
        parent.links.set(component, next);
      }
      if (next.kind !== 'group') throw new Error(`${component} in ${path} is a dataset`);
      parent = next;
    }
    return { parent, name };
  }

  #put(path: string, what: Group | Dataset | Exclude<LinkState, { to: string }>): void {
    const { parent, name } = this.#place(path);
    if (parent.links.has(name)) throw new Error(`${path} exists`);
    parent.links.set(name, 'kind' in what ? what : { ...what, name });
  }

  state(): State {
    const paths = new Map<Group | Dataset, string>([[this.#root, '/']]);
    for (const [object, path] of paths) {
      if (object.kind !== 'group') continue;
      for (const [name, link] of object.links) {
        if ('kind' in link && !paths.has(link)) paths.set(link, `${path === '/' ? '' : path}/${name}`);
      }
    }
    const state: Record<string, GroupState | DatasetState> = {};
    for (const [object, path] of paths) {
      const attributes = { ...object.attributes };
      if (object.kind === 'dataset') {
        const { kind: _, ...rest } = object;
        state[path] = { ...rest, values: [...object.values], attributes };
        continue;
      }
      const links = [...object.links].map(([name, link]) =>
        'kind' in link ? { name, to: paths.get(link) as string } : link,
      );
      if (object.sorted) links.sort((a, b) => (a.name < b.name ? -1 : 1));
      state[path] = { ...(object.sorted ? { sorted: object.sorted } : {}), links, attributes };
    }
    return state;
  }
}

export const namesIn = (path: string): string[] => path.split('/').filter((name) => name !== '');
