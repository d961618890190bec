// What commit n does, and what a file holds after it. Both follow from n alone, so that any state found can be checked whole.
import { type Dataset, type File, type Group, T } from '../../src/index.ts';

/** Names a group is deleted under after so many commits; a window of them keeps the state small. */
const WINDOW = 6;
const KEPT = 30;
const types = ['float64', 'int32', 'uint8'] as const;
/** The last: variable-length strings. In the model they are the numbers that they name. */
type Type = (typeof types)[number] | 'text';

/** What both a file and the plain model of one can do. */
interface Target {
  group(path: string): void;
  dataset(path: string, dtype: Type, shape: number[], fill: number): void;
  resize(path: string, shape: number[]): void;
  write(path: string, start: number[], count: number[], values: number[]): void;
  attribute(path: string, name: string, value: number | string | number[]): void;
  deleteAttribute(path: string, name: string): void;
  soft(path: string, to: string): void;
  hard(path: string, to: string): void;
  move(from: string, to: string): void;
  delete(path: string): void;
}

const isMoved = (n: number): boolean => n > 0 && (n + 2) % 5 === 0;
const text = (n: number, length: number): string => `commit ${n} `.repeat(1 + (length % 40)) + 'é'.repeat(n % 7);

/** Rows with a column over them, and a series that grows, is written over, and shrinks now and then. */
function data(to: Target, n: number): void {
  const rows = 1 + (n % 20);
  to.dataset(`/g${n}/d`, types[n % 3] as Type, [rows, 3], n % 200);
  to.write(`/g${n}/d`, [n % rows, 0], [1, 3], [n % 101, n % 102, n % 103]);
  to.write(`/g${n}/d`, [0, 1], [rows, 1], new Array<number>(rows).fill(n % 104));
  if (n === 1) to.dataset('/series', 'int32', [0], -1);
  if (n === 1) to.dataset('/names', 'text', [8], 0);
  to.write('/names', [n % 7], [2], [n, n % 50]);
  const size = 4 * (1 + (n % 50));
  to.resize('/series', [size]);
  to.write('/series', [(n * 13) % size], [1], [-n]);
  to.write('/series', [size - 3], [3], [n, n + 1, n + 2]);
}

/** Deletes what has had its time at commit `n`: not in every commit, because tables are written anew when a dataset goes. */
function forget(to: Target, n: number): void {
  if (n > WINDOW && !isMoved(n - WINDOW)) to.delete(`/g${n - WINDOW}`);
  if (n > KEPT && n % 3 === 0) to.delete(`/keep/h${n - KEPT}`);
  if (n > KEPT && n % 5 === 0) to.delete(`/moved/m${n - KEPT}`);
}

/** The changes of commit `n`, counted from 1. */
function change(to: Target, n: number): void {
  if (n === 1) for (const name of ['/keep', '/moved', '/deep/a/b/c', '/counters']) to.group(name);
  to.attribute('/', 'commit', n);
  to.attribute('/', 'label', text(n, n * 7));
  to.group(`/g${n}`);
  to.attribute(`/g${n}`, 'n', n);
  to.attribute(`/g${n}`, 'text', text(n, n));
  data(to, n);
  to.attribute(`/g${n}/d`, 'scale', [n, n / 2, -n]);
  to.attribute('/deep/a/b/c', 'n', n);
  if (n > 4) to.delete(`/soft${n % 4}`);
  to.soft(`/soft${n % 4}`, n % 8 === 0 ? '/nowhere' : `/g${n}/d`);
  if (n % 3 === 0) to.hard(`/keep/h${n}`, `/g${n}/d`);
  if (isMoved(n - 2)) to.move(`/g${n - 2}`, `/moved/m${n}`);
  if (n % 4 === 0) for (let old = n; old > n - 4; old--) forget(to, old);
  to.attribute('/counters', `a${n % 20}`, n);
  if (n > 20) to.deleteAttribute('/counters', `a${(n + 7) % 20}`);
  // More than 64 KiB, in dense storage: with it, all attributes of the group move there, and back when it goes.
  if (n % 16 === 5 || n % 16 === 6) to.attribute('/counters', 'large', new Array<number>(8200).fill(n));
  if (n % 16 === 8) to.deleteAttribute('/counters', 'large');
}

const nameOf = (n: number): string => (n === 0 ? '' : `number ${n}`);
const numberOf = (name: string): number => Number(name.slice(7));

/** Applies the changes of commit `n` to a file; a flush makes them one. */
export function applyCommit(file: File, n: number): void {
  const at = (path: string): Group | Dataset => (path === '/' ? file : (file.get(path) as Group | Dataset));
  change(
    {
      group: (path) => void file.createGroup(path),
      dataset: (path, dtype, shape, fill) => {
        const maxShape = shape.map(() => null);
        if (dtype === 'text') file.createDataset(path, { dtype: T.string(), shape, maxShape });
        else file.createDataset(path, { dtype, shape, fill, maxShape });
      },
      resize: (path, shape) => file.dataset(path).resize(shape),
      write: (path, start, count, values) => {
        const dataset = file.dataset(path);
        const isText = typeof dataset.dtype !== 'string';
        dataset.write((isText ? values.map(nameOf) : values) as number[], { start, count });
      },
      attribute: (path, name, value) => at(path).attributes.set(name, value),
      deleteAttribute: (path, name) => {
        if (at(path).attributes.has(name)) at(path).attributes.delete(name);
      },
      soft: (path, to) => file.createSoftLink(path, to),
      hard: (path, to) => file.createHardLink(path, to),
      move: (from, to) => file.move(from, to),
      delete: (path) => file.delete(path),
    },
    n,
  );
}

type Attribute = number | string | number[];

class Thing {
  readonly attributes = new Map<string, Attribute>();
  readonly links = new Map<string, Thing | string>();
  readonly kind: string;
  readonly fill: number;
  shape: number[] = [];
  values: number[] = [];

  constructor(kind: string, fill = 0) {
    this.kind = kind;
    this.fill = fill;
  }

  /** Keeps what lies in both shapes; only the first dimension changes. */
  resize(shape: number[]): void {
    const size = shape.reduce((product, length) => product * length, 1);
    this.shape = shape;
    this.values = Array.from({ length: size }, (_, i) => this.values[i] ?? this.fill);
  }

  write([row = 0, column = 0]: number[], [, columns = 1]: number[], values: number[]): void {
    const width = this.shape[1] ?? 1;
    values.forEach((value, i) => {
      this.values[(row + Math.floor(i / columns)) * width + column + (i % columns)] = value;
    });
  }

  describe(): string {
    return this.kind === 'group' ? this.kind : `${this.kind} [${this.shape}] ${this.fill} ${this.values}`;
  }
}

/** The same states in plain objects. */
class Model implements Target {
  readonly root = new Thing('group');

  group(path: string): void {
    this.#put(path, new Thing('group'));
  }
  dataset(path: string, dtype: string, shape: number[], fill: number): void {
    const thing = new Thing(`dataset ${dtype}`, fill);
    thing.resize(shape);
    this.#put(path, thing);
  }
  resize(path: string, shape: number[]): void {
    this.find(path)?.resize(shape);
  }
  write(path: string, start: number[], count: number[], values: number[]): void {
    this.find(path)?.write(start, count, values);
  }
  attribute(path: string, name: string, value: Attribute): void {
    this.find(path)?.attributes.set(name, value);
  }
  deleteAttribute(path: string, name: string): void {
    this.find(path)?.attributes.delete(name);
  }
  soft(path: string, to: string): void {
    this.#put(path, to);
  }
  hard(path: string, to: string): void {
    this.#put(path, this.find(to) as Thing);
  }
  move(from: string, to: string): void {
    this.#put(to, this.find(from) as Thing);
    this.delete(from);
  }
  delete(path: string): void {
    const names = path.split('/').slice(1);
    const last = names.pop() as string;
    if (!this.find(`/${names.join('/')}`)?.links.delete(last)) throw new Error(`the model has no ${path}`);
  }

  find(path: string): Thing | undefined {
    let thing: Thing | undefined = this.root;
    for (const name of path.split('/')) if (name !== '') thing = this.follow(thing?.links.get(name));
    return thing;
  }
  follow(link: Thing | string | undefined): Thing | undefined {
    return typeof link === 'string' ? this.find(link) : link;
  }

  #put(path: string, what: Thing | string): void {
    let at = this.root;
    const names = path.split('/').slice(1);
    const last = names.pop() as string;
    for (const name of names) {
      if (!at.links.has(name)) at.links.set(name, new Thing('group'));
      at = at.links.get(name) as Thing;
    }
    at.links.set(last, what);
  }
}

/** An attribute and a group that no commit touches: what others put into the file. */
export const THEIRS = 'theirs';
export const FOREIGN = '/foreign';

const attributeLines = (entries: Iterable<[string, unknown]>): string =>
  [...entries]
    .filter(([name]) => name !== THEIRS)
    .map(
      ([name, value]) => `${name}=${JSON.stringify(ArrayBuffer.isView(value) ? [...(value as Float64Array)] : value)}`,
    )
    .sort()
    .join(' ');

function modelLines(model: Model, path: string, thing: Thing | undefined, lines: string[]): void {
  lines.push(`${path} ${thing ? `${thing.describe()} ${attributeLines(thing.attributes)}` : 'leads nowhere'}`);
  for (const [name, link] of thing?.links ?? []) modelLines(model, `${path}/${name}`, model.follow(link), lines);
}

const model = { at: 0, state: new Model() };
const described = new Map<number, string>();

/** Every object, attribute and value after commit `n`, one line each. */
export function expectedState(n: number): string {
  let found = described.get(n);
  if (found !== undefined) return found;
  if (n < model.at) Object.assign(model, { at: 0, state: new Model() });
  while (model.at < n) change(model.state, ++model.at);
  const lines: string[] = [];
  modelLines(model.state, '', model.state.root, lines);
  found = lines.sort().join('\n');
  described.set(n, found);
  return found;
}

function fileLines(path: string, item: Group | Dataset | undefined, lines: string[]): void {
  if (!item) return void lines.push(`${path} leads nowhere`);
  const data = item.kind === 'group' ? [] : item.readSync();
  const kind =
    item.kind === 'group'
      ? 'group'
      : typeof item.dtype === 'string'
        ? `dataset ${item.dtype} [${item.shape}] ${item.fill} ${data}`
        : `dataset text [${item.shape}] 0 ${(data as unknown as string[]).map(numberOf)}`;
  lines.push(`${path} ${kind} ${attributeLines(item.attributes)}`);
  if (item.kind !== 'group') return;
  for (const [name, child] of item.children())
    if (`${path}/${name}` !== FOREIGN) fileLines(`${path}/${name}`, child, lines);
}

/** The same lines, from a file. */
export function stateOf(file: File): string {
  const lines: string[] = [];
  fileLines('', file, lines);
  return lines.sort().join('\n');
}

/** The number of the commit whose state a file is in. Throws unless everything is as that commit left it. */
export function commitOf(file: File): number {
  const n = file.attributes.get('commit') ?? 0;
  if (typeof n !== 'number') throw new Error(`the commit number is ${String(n)}`);
  const found = stateOf(file);
  const expected = expectedState(n);
  if (found === expected) return n;
  const [a, b] = [new Set(found.split('\n')), new Set(expected.split('\n'))];
  const extra = [...a].filter((line) => !b.has(line)).slice(0, 5);
  const missing = [...b].filter((line) => !a.has(line)).slice(0, 5);
  throw new Error(`not the state of commit ${n}: too much: ${extra.join(' | ')}; missing: ${missing.join(' | ')}`);
}

/**
 * What other programs see, `native`, is what the log holds where everything is published; else what was published last is still whole.
 * An ordinary file is its own layout.
 */
export function expectSameLayouts(file: File, native: File): void {
  if (file.connector !== 'log') return;
  const visit = (group: Group): void => {
    for (const [, object] of group.children()) {
      if (object?.kind === 'group') visit(object);
      if (object?.kind !== 'dataset') continue;
      const isCurrent = file.published === file.sequence;
      if (!object.published) {
        if (isCurrent) throw new Error(`${object.path} is not published, though ${file.published} is`);
        continue;
      }
      const seen = native.dataset(object.path);
      const values = seen.readSync();
      if (isCurrent && (String(seen.shape) !== String(object.shape) || String(values) !== String(object.readSync())))
        throw new Error(`others see ${values} in ${object.path} of commit ${file.published}, not ${object.readSync()}`);
    }
  };
  visit(file);
}
