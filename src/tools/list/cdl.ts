// The header of a file in CDL, the language of netCDF, as `ncdump -h` prints it.

import type { Attributes } from '../../api/attributes.ts';
import type { File } from '../../api/file.ts';
import type { Group } from '../../api/group.ts';
import { sameType } from '../../dtype/describe.ts';
import { type DType, type FullType, fullType } from '../../dtype/model.ts';
import { type NcType, ncType } from '../../netcdf/conventions.ts';
import { type NcGroup, type NcVariable, netcdf } from '../../netcdf/group.ts';
import { sizeOf } from '../../space/shape.ts';
import { nameOf, reading, type Source } from '../inside.ts';

/**
 * What a file is to netCDF: dimensions, variables and attributes, as the lines of `ncdump -h`.
 *
 * @example console.log((await netcdfHeader('field.nc')).join('\n'));
 */
export async function netcdfHeader(source: Source): Promise<string[]> {
  return reading(source, async (file) => new Header(file).lines());
}

/** A type that users made: its name, and where it can be used. */
interface NamedType {
  readonly name: string;
  readonly dtype: DType;
}

/** Suffixes of numbers in attributes. */
const SUFFIX: Readonly<Partial<Record<NcType, string>>> = {
  byte: 'b',
  ubyte: 'UB',
  short: 's',
  ushort: 'US',
  uint: 'U',
  int64: 'LL',
  uint64: 'ULL',
};

class Header {
  readonly #file: File;
  readonly #isClassic: boolean;
  /** All types that users made. */
  readonly #types: NamedType[] = [];

  constructor(file: File) {
    this.#file = file;
    this.#isClassic = file.attributes.has('_nc3_strict');
  }

  lines(): string[] {
    const name = nameOf(this.#file).replace(/^.*[\\/]/, '');
    const root = netcdf(this.#file);
    return [`netcdf ${escaped(name.replace(/(?<=.)\.[^.]*$/, ''))} {`, ...this.#group(root, '/', [], ''), '}'];
  }

  *#group(group: NcGroup, path: string, above: readonly NcGroup[], indent: string): Iterable<string> {
    const types = this.#typesIn(this.#file.group(path));
    if (types.length > 0) yield `${indent}types:`;
    for (const type of types) for (const line of this.#type(type)) yield `${indent}  ${line}`;
    if (group.dimensions.size > 0) yield `${indent}dimensions:`;
    for (const { name, size, unlimited } of group.dimensions.values())
      yield `${indent}\t${escaped(name)} = ${unlimited ? `UNLIMITED ; // (${size} currently)` : `${size} ;`}`;
    const scope = [group, ...above];
    const variables = [...group.variables.values()].filter(
      ({ dataset }) => this.#typeName(dataset.dtype) !== undefined,
    );
    if (variables.length > 0) yield `${indent}variables:`;
    for (const variable of variables) {
      const { name, dataset, attributes } = variable;
      const dimensions = variable.dimensions.map((_, axis) => this.#dimension(variable, axis, scope));
      const list = dimensions.length > 0 ? `(${dimensions.join(', ')})` : '';
      yield `${indent}\t${this.#typeName(dataset.dtype)} ${escaped(name)}${list} ;`;
      yield* this.#attributes(attributes, escaped(name), indent);
    }
    const attributes = [...this.#attributes(group.attributes, '', indent)];
    if (attributes.length > 0)
      yield* ['', `${indent}// ${path === '/' ? 'global' : 'group'} attributes:`, ...attributes];
    for (const [name, inner] of group.groups) {
      yield* ['', `${indent}group: ${escaped(name)} {`];
      yield* this.#group(inner, `${path === '/' ? '' : path}/${name}`, scope, `${indent}  `);
      yield `${indent}  } // group ${escaped(name)}`;
    }
  }

  /** The name of a dimension; with its group where another one of that name is nearer. */
  #dimension(variable: NcVariable, axis: number, scope: readonly NcGroup[]): string {
    const name = variable.dimensions[axis] as string;
    const holders = scope.filter(({ dimensions }) => dimensions.has(name));
    if (holders.length < 2) return escaped(name);
    const own = holders.findIndex(({ dimensions }) => isUsed(dimensions.get(name), variable, axis));
    if (own <= 0) return escaped(name);
    const groups = scope.slice(scope.indexOf(holders[own] as NcGroup), -1).reverse();
    return ['', ...groups.map((group) => escaped(group.name)), escaped(name)].join('/');
  }

  // ---------------------------------------------------------------- types

  /** The types that users made in a group. */
  #typesIn(group: Group): NamedType[] {
    const found: NamedType[] = [];
    for (const { name, kind, object } of group.links()) {
      if (kind === 'hard' && object === 'datatype') found.push({ name, dtype: group.datatype(name).dtype });
    }
    this.#types.push(...found);
    return found;
  }

  /** As CDL names the type of a variable; undefined if netCDF has no such variables. */
  #typeName(dtype: DType): string | undefined {
    const type = fullType(dtype);
    if (type.class === 'string') return type.variable || type.size > 1 ? 'string' : 'char';
    return type.class === 'float' && type.size === 2 ? 'float' : (ncType(dtype) ?? this.#named(dtype));
  }

  #named(dtype: DType): string | undefined {
    const found = this.#types.find((type) => sameType(type.dtype, dtype));
    return found && escaped(found.name);
  }

  #type({ name, dtype }: NamedType): string[] {
    const type = fullType(dtype);
    const title = escaped(name);
    switch (type.class) {
      case 'enum': {
        const members = type.entries.map(([member, value]) => `${escaped(member)} = ${value}`).join(', ');
        return [`${this.#typeName(type.base)} enum ${title} {${members}} ;`];
      }
      case 'opaque':
        return [`opaque(${type.size}) ${title} ;`];
      case 'vlen':
        return [`${this.#typeName(type.base)}(*) ${title} ;`];
      case 'compound': {
        const fields = type.fields.map((field) => {
          const inner = fullType(field.dtype);
          const base = inner.class === 'array' ? inner.base : field.dtype;
          const shape = inner.class === 'array' ? `(${inner.shape.join(', ')})` : '';
          return `  ${this.#typeName(base)} ${escaped(field.name)}${shape} ;`;
        });
        return [`compound ${title} {`, ...fields, `}; // ${title}`];
      }
      default:
        return [];
    }
  }

  // ---------------------------------------------------------------- attributes

  *#attributes(attributes: Attributes, owner: string, indent: string): Iterable<string> {
    for (const name of attributes.keys()) {
      const { dtype, shape } = attributes.describe(name) as { dtype: DType; shape: readonly number[] | null };
      const type = fullType(dtype);
      const isText = type.class === 'string';
      // A list of texts of fixed length is a list of strings.
      const isStrings = isText && (type.variable || (shape?.length ?? 0) > 0);
      const named = isStrings ? 'string' : ncType(dtype) ? '' : this.#named(dtype);
      if (named === undefined) continue;
      const stored = attributes.get(name);
      // Of a list of one value, it is that value.
      const values = shape === null ? [] : sizeOf(shape) === 1 ? [stored] : Array.from(stored as ArrayLike<unknown>);
      const text = values.length === 0 ? '""' : values.map((value) => this.#value(value, type)).join(', ');
      yield `${indent}\t\t${named === '' ? '' : `${named} `}${owner}:${escaped(name)} = ${text} ;`;
    }
  }

  #value(value: unknown, type: FullType): string {
    if (type.class === 'string') return this.#text(String(value));
    if (type.class === 'float')
      return type.size === 4 ? `${decimal(Number(value), 7, true)}f` : decimal(Number(value), 15, true);
    const suffix = type.class === 'integer' ? (SUFFIX[ncType(type as DType) as NcType] ?? '') : '';
    return suffix ? `${String(value)}${suffix}` : this.#inner(value, type);
  }

  /** A value inside another one, where numbers have no suffix. */
  #inner(value: unknown, type: FullType): string {
    const list = (values: readonly string[]): string => `{${values.join(', ')}}`;
    switch (type.class) {
      case 'string':
        return this.#text(String(value));
      case 'float':
        return decimal(Number(value), type.size === 4 ? 7 : 15, false);
      case 'enum':
        return escaped(type.entries.find(([, number]) => number === value)?.[0] ?? String(value));
      case 'opaque':
        return `0X${Array.from(value as Uint8Array, (byte) => byte.toString(16).padStart(2, '0'))
          .join('')
          .toUpperCase()}`;
      case 'vlen':
      case 'array':
        return list(Array.from(value as ArrayLike<unknown>, (item) => this.#inner(item, fullType(type.base))));
      case 'compound': {
        const fields = value as Readonly<Record<string, unknown>>;
        return list(type.fields.map(({ name, dtype }) => this.#inner(fields[name], fullType(dtype))));
      }
      default:
        return String(value);
    }
  }

  #text(text: string): string {
    // In the classic model a text is written line by line.
    const newline = this.#isClassic ? '\\n",\n\t\t\t"' : '\\n';
    // biome-ignore lint/suspicious/noControlCharactersInRegex: CDL writes them as numbers.
    const quoted = text.replace(/[\\"'\u0000-\u001f\u007f]/g, (character) => {
      if (character === '\n') return newline;
      const short = ESCAPES[character];
      return short ?? `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`;
    });
    return `"${quoted}"`;
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  '\b': '\\b',
  '\f': '\\f',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
  "'": "\\'",
};

/** Whether a dimension is the one that a variable has there. */
function isUsed(dimension: unknown, { dataset }: NcVariable, axis: number): boolean {
  const { uses } = dimension as { uses: readonly { dataset: { path: string }; axis: number }[] };
  return uses.some((use) => use.dataset.path === dataset.path && use.axis === axis);
}

/** Names with a backslash before characters that mean something in CDL. */
function escaped(name: string): string {
  const escapes = name.replace(/[ !"#$%&'()*,:;<=>?[\]\\^`{|}~]/g, '\\$&');
  return /^[0-9]/.test(name) ? `\\${escapes}` : escapes;
}

/** Of a number in the middle between two of so many digits, the one with the even last digit, as C rounds: JavaScript rounds up. */
function halfToEven(value: number, digits: number): number {
  const [mantissa = '', power] = value.toExponential(60).split('e');
  const kept = mantissa.slice(0, mantissa.indexOf('.') + digits);
  const isHalf = /^50*$/.test(mantissa.slice(kept.length));
  return isHalf && Number(kept.at(-1)) % 2 === 0 ? Number(`${kept}e${power}`) : value;
}

/** A number as C prints it with %g, or with %#g and without zeros behind the last digit: with a point in any case. */
function decimal(exact: number, digits: number, withPoint: boolean): string {
  if (Number.isNaN(exact)) return 'NaN';
  if (!Number.isFinite(exact)) return exact < 0 ? '-Infinity' : 'Infinity';
  const value = halfToEven(exact, digits);
  const [mantissa = '', power = '0'] = value.toExponential(digits - 1).split('e');
  const exponent = Number(power);
  const isFixed = exponent >= -4 && exponent < digits;
  const number = isFixed ? value.toFixed(Math.max(0, digits - 1 - exponent)) : mantissa;
  const trimmed = number.includes('.') ? number.replace(/0+$/, '') : `${number}.`;
  const sign = exponent < 0 ? '-' : '+';
  const tail = isFixed ? '' : `e${sign}${String(Math.abs(exponent)).padStart(2, '0')}`;
  const zero = Object.is(value, -0) && !trimmed.startsWith('-') ? '-' : '';
  return `${zero}${withPoint ? trimmed : trimmed.replace(/\.$/, '')}${tail}`;
}
