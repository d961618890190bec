import { type DType, type File, type NumberType, T } from 'h5log';
import { type NcGroup, type NcVariable, netcdf } from 'h5log/netcdf';

/** What a group should be, in the words of describe.py; 64-bit integers are texts. */
export interface Expected {
  readonly dimensions: Record<string, [number, boolean]>;
  readonly variables: Record<string, ExpectedVariable>;
  readonly attributes: Record<string, unknown>;
  readonly groups: Record<string, Expected>;
}

interface ExpectedVariable {
  readonly dimensions: string[];
  readonly shape: number[];
  readonly type: string;
  readonly values: unknown[];
  readonly attributes: Record<string, unknown>;
}

type Kind = Exclude<NumberType, 'float16'> | 'char' | 'string';
const KINDS: readonly Kind[] = [
  'int8',
  'uint8',
  'int16',
  'uint16',
  'int32',
  'uint32',
  'int64',
  'uint64',
  'float32',
  'float64',
  'char',
  'string',
];

const FILL: Record<Kind, unknown> = {
  int8: -127,
  uint8: 255,
  int16: -32767,
  uint16: 65535,
  int32: -2147483647,
  uint32: 4294967295,
  int64: -9223372036854775806n,
  uint64: 18446744073709551614n,
  float32: Math.fround(9.969209968386869e36),
  float64: 9.969209968386869e36,
  char: '',
  string: '',
};

const TYPE: Record<Kind, DType> = {
  ...(Object.fromEntries(KINDS.map((kind) => [kind, kind])) as Record<Kind, DType>),
  char: T.string({ length: 1, pad: 'terminated', charset: 'ascii' }),
  string: T.string(),
};

interface Scope {
  readonly name: string;
  readonly unlimited: boolean;
  readonly size: number;
}

/** A variable, and the values that were written to it: those of its own shape, row-major. */
class Model {
  readonly variable: NcVariable;
  readonly kind: Kind;
  readonly scope: readonly Scope[];
  readonly fill: unknown;
  readonly attributes: Record<string, unknown>;
  shape: number[];
  values: unknown[];

  constructor(
    variable: NcVariable,
    kind: Kind,
    scope: readonly Scope[],
    fill: unknown,
    attributes: Record<string, unknown>,
  ) {
    this.variable = variable;
    this.kind = kind;
    this.scope = scope;
    this.fill = fill;
    this.attributes = attributes;
    this.shape = scope.map(({ unlimited, size }) => (unlimited ? 0 : size));
    this.values = this.#filled(this.shape);
  }

  #filled(shape: readonly number[]): unknown[] {
    return new Array<unknown>(shape.reduce((a, b) => a * b, 1)).fill(this.fill);
  }

  grown(shape: readonly number[]): unknown[] {
    const out = this.#filled(shape);
    this.values.forEach((value, i) => {
      out[move(i, this.shape, shape)] = value;
    });
    return out;
  }

  resize(shape: number[]): void {
    if (shape.every((size, d) => size === this.shape[d])) return;
    this.variable.dataset.resize(shape);
    this.values = this.grown(shape);
    this.shape = shape;
  }

  write(start: readonly number[], count: readonly number[], next: () => unknown): void {
    const size = count.reduce((a, b) => a * b, 1);
    const data = Array.from({ length: size }, next);
    data.forEach((value, i) => {
      const at = coordinates(i, count).map((index, d) => index + (start[d] as number));
      this.values[offset(at, this.shape)] = value;
    });
    this.variable.dataset.write(data as never, { start, count });
  }
}

function coordinates(i: number, shape: readonly number[]): number[] {
  const at = shape.map(() => 0);
  for (let d = shape.length - 1, rest = i; d >= 0; d--) {
    at[d] = rest % (shape[d] as number);
    rest = Math.floor(rest / (shape[d] as number));
  }
  return at;
}

const offset = (at: readonly number[], shape: readonly number[]): number =>
  at.reduce((sum, index, d) => sum * (shape[d] as number) + index, 0);

const move = (i: number, from: readonly number[], to: readonly number[]): number => offset(coordinates(i, from), to);

const plain = (value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value);

/** A group that was made: its own dimensions, and the names of the groups below. */
interface Made {
  readonly group: NcGroup;
  readonly own: readonly Scope[];
  readonly attributes: Record<string, unknown>;
  readonly below: readonly string[];
}

/** A random data set in a file, and what should be in it. */
export class RandomFile {
  readonly #random: () => number;
  readonly #models: Model[] = [];
  readonly #root: NcGroup;
  readonly #tree: Made[] = [];
  #names = 0;

  constructor(file: File, random: () => number) {
    this.#random = random;
    this.#root = netcdf(file);
    this.#group(this.#root, [], 0);
  }

  #below(n: number): number {
    return Math.floor(this.#random() * n);
  }

  #pick<V>(list: readonly V[]): V {
    return list[this.#below(list.length)] as V;
  }

  #name(kind: string): string {
    const names = ['', 'é', ' x', '-y', '.z'];
    return `${kind}${this.#names++}${this.#below(4) === 0 ? this.#pick(names) : ''}`;
  }

  #group(group: NcGroup, above: readonly Scope[], depth: number): void {
    const own: Scope[] = [];
    for (let n = this.#below(4) + (depth === 0 ? 1 : 0); n > 0; n--) {
      const unlimited = this.#below(3) === 0;
      const dimension = { name: this.#name('d'), unlimited, size: 1 + this.#below(4) };
      group.createDimension(dimension.name, unlimited ? null : dimension.size);
      own.push(dimension);
    }
    const scope = [...above, ...own];
    const attributes = this.#attributes();
    for (const [name, { value, options }] of Object.entries(attributes))
      group.attributes.set(name, value as never, options);
    const below: string[] = [];
    this.#tree.push({ group, own, attributes: plainAttributes(attributes), below });
    // Some dimensions have coordinates, before other variables use them or after.
    const coordinates = own
      .filter(() => this.#below(2) === 0)
      .map((dimension) => ({ name: dimension.name, dims: [dimension] }));
    const others = Array.from({ length: this.#below(5) }, () => {
      const dims = this.#some(scope, this.#below(4));
      return { name: this.#name('v'), dims };
    });
    const without = own.find(({ name }) => !coordinates.some((coordinate) => coordinate.name === name));
    const elsewhere = scope.filter((dimension) => dimension !== without);
    if (without && elsewhere.length > 0 && this.#below(4) === 0)
      others.push({ name: without.name, dims: [this.#pick(elsewhere)] });
    const all = [...coordinates, ...others];
    while (all.length > 0) {
      const [{ name, dims }] = all.splice(this.#below(all.length), 1) as [(typeof all)[number]];
      this.#variable(
        group,
        name,
        dims,
        coordinates.some((coordinate) => coordinate.name === name),
      );
    }
    if (depth < 2) {
      for (let n = this.#below(3); n > 0; n--) {
        const name = this.#name('g');
        below.push(name);
        this.#group(group.createGroup(name), scope, depth + 1);
      }
    }
  }

  /** Distinct dimensions. */
  #some(scope: readonly Scope[], n: number): Scope[] {
    const left = [...scope];
    return Array.from({ length: Math.min(n, left.length) }, () => left.splice(this.#below(left.length), 1)[0] as Scope);
  }

  #variable(group: NcGroup, name: string, dims: readonly Scope[], isCoordinate: boolean): void {
    const kinds = isCoordinate ? KINDS.slice(0, 10) : KINDS;
    const kind = this.#pick(kinds);
    const isText = kind === 'char' || kind === 'string';
    const isGiven = !isText && this.#below(3) === 0;
    const fill = isGiven ? this.#value(kind) : FILL[kind];
    const attributes = this.#attributes();
    const isChunked = dims.length > 0 && dims.every(({ unlimited }) => !unlimited || this.#below(2) === 0);
    const variable = group.createVariable(name, {
      dtype: TYPE[kind] as 'float64',
      dimensions: dims.map((dimension) => dimension.name),
      ...(isGiven && { fill: fill as number }),
      ...(isChunked && { chunks: dims.map(() => 1 + this.#below(3)) }),
      ...(isChunked && kind !== 'string' && this.#below(3) === 0 && { filters: ['shuffle', { deflate: 3 }] as const }),
    });
    for (const [key, { value, options }] of Object.entries(attributes))
      variable.attributes.set(key, value as never, options);
    const expected = { ...(isGiven && { _FillValue: plain(fill) }), ...plainAttributes(attributes) };
    this.#models.push(new Model(variable as unknown as NcVariable, kind, dims, fill, expected));
  }

  #attributes(): Record<string, { value: unknown; options?: { dtype: DType } }> {
    const made: Record<string, { value: unknown; options?: { dtype: DType } }> = {};
    for (let n = this.#below(4); n > 0; n--) {
      const name = this.#name('a');
      const kind = this.#pick(KINDS);
      if (kind === 'char')
        made[name] = { value: this.#pick(['m', '', 'days since 2000-01-01', 'naïve', 'a "quoted" one']) };
      else if (kind === 'string') made[name] = { value: ['one', this.#pick(['two', '', 'é'])] };
      else {
        const values = Array.from({ length: 1 + this.#below(3) }, () => this.#value(kind));
        made[name] = { value: values.length === 1 ? values[0] : values, options: { dtype: kind } };
      }
    }
    return made;
  }

  #value(kind: Kind): unknown {
    if (kind === 'char') return this.#pick(['a', 'z', '7', ' ']);
    if (kind === 'string') return this.#pick(['', 'text', 'ünï', 'a longer text, with blanks']);
    if (kind === 'float32' || kind === 'float64') return (this.#below(2001) - 1000) / 8;
    if (kind === 'int64' || kind === 'uint64') return BigInt(this.#below(2 ** 31)) * 4_294_967_291n;
    const bits = Number(kind.replace(/\D/g, ''));
    const value = this.#below(2 ** bits);
    return kind.startsWith('u') ? value : value - 2 ** (bits - 1);
  }

  /** Writes to some variables; unlimited dimensions grow. */
  write(): void {
    for (const model of this.#models) {
      if (this.#below(4) === 0) continue;
      const { scope } = model;
      const next = () => this.#value(model.kind);
      model.resize(model.shape.map((size, d) => (scope[d]?.unlimited ? size + this.#below(3) : size)));
      if (model.shape.includes(0)) continue;
      const isWhole = this.#below(2) === 0;
      const start = model.shape.map((size) => (isWhole ? 0 : this.#below(size)));
      const count = model.shape.map((size, d) => (isWhole ? size : 1 + this.#below(size - (start[d] as number))));
      model.write(start, count, next);
    }
  }

  /** What is in the file now. */
  expected(): Expected {
    return this.#expected(0);
  }

  #expected(i: number): Expected {
    const { group, own, attributes, below } = this.#tree[i] as Made;
    const size = (dimension: Scope): number => {
      if (!dimension.unlimited) return dimension.size;
      const lengths = this.#models.map(({ scope, shape }) => shape[scope.indexOf(dimension)] ?? 0);
      return Math.max(0, ...lengths);
    };
    const variables = Object.fromEntries(
      this.#models
        .filter(({ variable }) => [...group.variables.values()].includes(variable))
        .map((model) => {
          const shape = model.scope.map(size);
          const values = model.grown(shape).map(plain);
          const dimensions = model.scope.map(({ name }) => name);
          return [model.variable.name, { dimensions, shape, type: model.kind, values, attributes: model.attributes }];
        }),
    );
    const groups = Object.fromEntries(
      below.map((name) => [name, this.#expected(this.#tree.findIndex((at) => at.group === group.groups.get(name)))]),
    );
    const dimensions = Object.fromEntries(
      own.map((each) => [each.name, [size(each), each.unlimited] as [number, boolean]]),
    );
    return { dimensions, variables, attributes, groups };
  }
}

function plainAttributes(attributes: Record<string, { value: unknown }>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, { value }]) => [
      name,
      Array.isArray(value) ? value.map(plain) : plain(value),
    ]),
  );
}
