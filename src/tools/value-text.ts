import { type DType, type EnumType, type FullType, fullType, storedNumber } from '../dtype/model.ts';
import { Selected, type Selection } from '../space/select.ts';

// Values as h5dump prints them, but for numbers: those have as many digits as it takes to read the same number back.

/** Prints one element of a type, as often as it is called: what can be found out from the type is found out once. */
type ValuePrinter = (value: unknown) => string;

/**
 * The printer of a type. With `indent`, the column of the first line, compounds and arrays of several dimensions take several
 * lines; without it every element is one line.
 */
export function valuePrinter(dtype: DType, indent?: number): ValuePrinter {
  return printerOf(dtype, indent === undefined ? null : indent + 3);
}

/** Whether an element of the type takes several lines. */
export function isTall(dtype: DType): boolean {
  const type = fullType(dtype);
  if (type.class === 'compound') return true;
  if (type.class === 'array') return type.shape.length > 1 || isTall(type.base);
  return type.class === 'vlen' && isTall(type.base);
}

/** `column` is that of the closing brace of a compound; its fields are three columns further. null: everything is one line. */
function printerOf(dtype: DType, column: number | null): ValuePrinter {
  const type = fullType(dtype);
  const inner = column === null ? null : column + 3;
  switch (type.class) {
    case 'integer':
      return String;
    case 'float':
      return floatPrinter(type.mantissaBits);
    case 'bitfield':
      return (value) => bitsText(value as number | bigint, type.size);
    case 'enum':
      return enumPrinter(type);
    case 'string':
      return (value) => quotedText(value as string);
    case 'opaque':
      return (value) => bytesText(value as Uint8Array);
    case 'reference':
      return (value) => {
        if (typeof value === 'string') return value === '' ? 'NULL' : shownText(value);
        return value === null ? 'NULL' : regionText(value as Referred);
      };
    case 'compound': {
      const fields = type.fields.map(({ name, dtype: field }) => [name, printerOf(field, inner)] as const);
      const [open, close] = [lineBreak(inner, ' '), lineBreak(column, ' ')];
      return (value) => {
        const record = value as Record<string, unknown>;
        return `{${open}${fields.map(([name, print]) => print(record[name])).join(`,${open}`)}${close}}`;
      };
    }
    case 'array': {
      const print = printerOf(type.base, inner);
      const row = type.shape.length > 1 ? (type.shape.at(-1) as number) : Infinity;
      const rowBreak = lineBreak(inner, ' ');
      return (value) => {
        let text = '';
        Array.from(value as ArrayLike<unknown>).forEach((element, i) => {
          text += `${i === 0 ? '' : i % row === 0 ? `,${rowBreak}` : ', '}${print(element)}`;
        });
        return `[ ${text} ]`;
      };
    }
    case 'vlen': {
      const print = printerOf(type.base, inner);
      return (value) => `(${Array.from(value as ArrayLike<unknown>, print).join(', ')})`;
    }
  }
}

/** A reference that is more than a path. */
interface Referred {
  readonly path: string;
  readonly where?: Selection;
  readonly attribute?: string;
  readonly file?: string;
}

/** Corners of boxes, as h5dump prints them, up to so many. */
const MOST_BOXES = 20;
/** A region of more elements is not taken apart. */
export const MOST_ELEMENTS = 1e6;

/** The path, and the boxes of a region or the name of an attribute. */
function regionText({ path, where, attribute, file }: Referred): string {
  const name = shownText(file === undefined ? path : `${file}:${path}`);
  if (attribute !== undefined) return `${name}/${shownText(attribute)}`;
  if (!where) return name;
  if (!(where.size <= MOST_ELEMENTS)) return `${name} {${Number.isNaN(where.size) ? 'all' : where.size} elements}`;
  const texts: string[] = [];
  for (const { start, count } of where.boxes()) {
    if (texts.length === MOST_BOXES) {
      texts.push('...');
      break;
    }
    texts.push(`(${start.join(',')})-(${start.map((x, d) => x + (count[d] as number) - 1).join(',')})`);
  }
  return `${name} {${texts.join(', ')}}`;
}

const lineBreak = (column: number | null, otherwise: string): string =>
  column === null ? otherwise : `\n${' '.repeat(column)}`;

/** Bytes in hexadecimal; a single one with 0x in front. */
function bytesText(bytes: Uint8Array): string {
  const texts = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0'));
  return texts.length === 1 ? `0x${texts[0]}` : texts.join(':');
}

/** The bytes of a whole number, the lowest first. */
function bitsText(value: number | bigint, size: number): string {
  const bits = BigInt.asUintN(size * 8, BigInt(value));
  return bytesText(Uint8Array.from({ length: size }, (_, i) => Number((bits >> BigInt(8 * i)) & 0xffn)));
}

/** Digits that h5dump prints (%g), and those that tell all numbers of a type apart. */
const USUAL_DIGITS = 6;
const [HALF_DIGITS, SINGLE_DIGITS, DOUBLE_DIGITS] = [5, 9, 17];

function floatPrinter(mantissaBits: number): ValuePrinter {
  const round = mantissaBits <= 10 ? nearestHalf : mantissaBits <= 23 ? Math.fround : (value: number) => value;
  const most = mantissaBits <= 10 ? HALF_DIGITS : mantissaBits <= 23 ? SINGLE_DIGITS : DOUBLE_DIGITS;
  // Of the few digits that half precision has, six are too many.
  const least = mantissaBits <= 10 ? 3 : USUAL_DIGITS;
  return (given) => {
    const value = given as number;
    if (Number.isInteger(value) && value > -1e6 && value < 1e6) return Object.is(value, -0) ? '-0' : String(value);
    if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
    let digits = least;
    while (digits < most && round(Number(value.toPrecision(digits))) !== value) digits++;
    return generalText(value, digits);
  };
}

/** A number with so many significant digits, as C prints it (%g): an exponent if it is below -4 or not below `digits`. */
function generalText(value: number, digits: number): string {
  const [mantissa = '', power = ''] = value.toExponential(digits - 1).split('e');
  const exponent = Number(power);
  if (exponent >= -4 && exponent < digits) return withoutZeros(value.toFixed(digits - 1 - exponent));
  const sign = exponent < 0 ? '-' : '+';
  return `${withoutZeros(mantissa)}e${sign}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

const withoutZeros = (text: string): string => (text.includes('.') ? text.replace(/\.?0+$/, '') : text);

/** The number of 11 significant bits next to a value, in the range of half precision. */
function nearestHalf(value: number): number {
  const exponent = Math.max(-14, Math.floor(Math.log2(Math.abs(value))));
  const step = 2 ** (exponent - 10);
  return Math.round(value / step) * step;
}

function enumPrinter(type: EnumType): ValuePrinter {
  const names = new Map(type.entries.map(([name, value]) => [String(value), shownText(name)]));
  return (value) => {
    // A boolean inside a compound is one in JavaScript as well.
    const number = typeof value === 'boolean' ? (value ? '1' : '0') : String(value);
    return names.get(number) ?? bitsText(BigInt(number), type.size);
  };
}

const STRING_PAD = { zero: 'H5T_STR_NULLTERM', null: 'H5T_STR_NULLPAD', space: 'H5T_STR_SPACEPAD' } as const;

/** A type as h5dump describes it, in lines. */
export function typeLines(dtype: DType): string[] {
  const type = fullType(dtype);
  switch (type.class) {
    case 'integer':
    case 'float':
    case 'bitfield':
      return [numberText(type)];
    case 'string':
      return [
        'H5T_STRING {',
        `   STRSIZE ${type.variable ? 'H5T_VARIABLE' : type.size};`,
        `   STRPAD ${type.variable ? 'H5T_STR_NULLTERM' : STRING_PAD[type.pad]};`,
        `   CSET ${type.charset === 'utf8' ? 'H5T_CSET_UTF8' : 'H5T_CSET_ASCII'};`,
        '   CTYPE H5T_C_S1;',
        '}',
      ];
    case 'opaque':
      return ['H5T_OPAQUE {', `   OPAQUE_TAG ${quotedText(type.tag)};`, '}'];
    case 'reference':
      return [
        type.to === 'object'
          ? 'H5T_REFERENCE { H5T_STD_REF_OBJECT }'
          : type.to === 'region'
            ? 'H5T_REFERENCE { H5T_STD_REF_DSETREG }'
            : 'H5T_REFERENCE { H5T_STD_REF }',
      ];
    case 'compound':
      return [
        'H5T_COMPOUND {',
        ...type.fields.flatMap(({ name, dtype: inner }) => indented(ended(typeLines(inner), ` ${quotedText(name)};`))),
        '}',
      ];
    case 'enum':
      return [
        'H5T_ENUM {',
        ...indented(ended(typeLines(type.base), ';')),
        ...type.entries.map(([name, value]) => `   ${quotedText(name).padEnd(18)} ${value};`),
        '}',
      ];
    case 'array':
      return nested(`H5T_ARRAY { ${type.shape.map((size) => `[${size}]`).join('')} `, typeLines(type.base), ' }');
    case 'vlen':
      // Without a space at the end, as h5dump has it.
      return nested('H5T_VLEN { ', typeLines(type.base), '}');
  }
}

function nested(before: string, lines: readonly string[], end: string): string[] {
  return ended([`${before}${lines[0]}`, ...lines.slice(1)], end);
}

function ended(lines: readonly string[], end: string): string[] {
  return [...lines.slice(0, -1), `${lines.at(-1)}${end}`];
}

const indented = (lines: readonly string[]): string[] => lines.map((line) => `   ${line}`);

const IEEE_EXPONENT_BITS: Readonly<Record<number, number>> = { 16: 5, 32: 8, 64: 11 };

function numberText(type: FullType): string {
  const number = storedNumber(type);
  if (!number) return 'H5T_UNKNOWN';
  const order = number.order === 'big' ? 'BE' : 'LE';
  const usual = number.bitOffset === 0 && number.precision === number.size * 8;
  const bits = number.size * 8;
  if (usual && type.class === 'float' && type.exponentBits === IEEE_EXPONENT_BITS[bits])
    return `H5T_IEEE_F${bits}${order}`;
  const letter = type.class === 'bitfield' ? 'B' : type.class === 'integer' && type.signed ? 'I' : 'U';
  if (usual && type.class !== 'float' && [8, 16, 32, 64].includes(bits)) return `H5T_STD_${letter}${bits}${order}`;
  const sign = letter === 'U' ? 'unsigned ' : '';
  const what = type.class === 'float' ? 'floating-point' : type.class === 'bitfield' ? 'bitfield' : `${sign}integer`;
  return `${bits}-bit ${order === 'BE' ? 'big' : 'little'}-endian ${what} ${number.precision}-bit precision`;
}

/*
 * Values as JSON can hold them. 64-bit integers are numbers where a number is exact, else strings; what no JSON number is, NaN and the
 * infinities, are strings; opaque bytes are lists of numbers.
 */

export type Plain = null | boolean | number | string | Plain[] | { [name: string]: Plain };

export function plainValue(value: unknown): Plain {
  if (value === null || value === undefined) return null;
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'bigint':
      return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
    case 'boolean':
    case 'string':
      return value;
  }
  if (Array.isArray(value) || (ArrayBuffer.isView(value) && 'length' in value))
    return Array.from(value as ArrayLike<unknown>, plainValue);
  if (value instanceof Selected) return value.size <= MOST_ELEMENTS ? plainValue([...value.boxes()]) : null;
  const entries = Object.entries(value as object).map(([name, inner]) => [name, plainValue(inner)] as const);
  return Object.fromEntries(entries);
}

const NAMED: Readonly<Record<string, string>> = { '\n': '\\n', '\t': '\\t', '\r': '\\r', '\b': '\\b', '\f': '\\f' };

// Control characters, also those of eight bits, and what turns the direction of writing: a name must not move a terminal's cursor.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/gu;

/** A text in which nothing moves the cursor of a terminal. */
export function shownText(text: string): string {
  return text.replace(UNSAFE, (character) => {
    const code = character.charCodeAt(0);
    return NAMED[character] ?? (code < 256 ? `\\${code.toString(8).padStart(3, '0')}` : `\\u${code.toString(16)}`);
  });
}

/** The same between quotes. */
export function quotedText(text: string): string {
  return `"${shownText(text.replace(/["\\]/g, '\\$&'))}"`;
}
