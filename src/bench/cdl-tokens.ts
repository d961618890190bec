import { H5LogError } from '../base/errors.ts';
import { numberArray } from '../dtype/convert.ts';
import type { TypedArray } from '../dtype/model.ts';

/** A token of CDL. A `word` is a name, a number or a keyword; `currently` is the length that ncdump prints after an unlimited dimension. */
export interface Token {
  readonly kind: 'word' | 'text' | 'mark' | 'currently';
  readonly text: string;
  readonly line: number;
}

const PATTERN =
  /(?<space>\s+)|\/\/\s*\((?<currently>\d+) currently\)|(?<comment>\/\/[^\n]*)|"(?<text>(?:[^"\\]|\\[\s\S])*)"|(?<mark>[{}()=;:,])|(?<word>(?:\\[\s\S]|[^\s{}()=;:,"\\])+)/gy;

/** Splits CDL text into tokens. Drops comments, except for the length that ncdump prints after an unlimited dimension. */
export function tokensOf(cdl: string): Token[] {
  const tokens: Token[] = [];
  const pattern = new RegExp(PATTERN);
  let line = 1;
  let at = 0;
  while (at < cdl.length) {
    pattern.lastIndex = at;
    const found = pattern.exec(cdl);
    if (!found) throw cdlError(line, `${JSON.stringify(cdl.slice(at, at + 20))} cannot be understood`);
    const { currently, text, mark, word } = found.groups as Record<string, string | undefined>;
    if (currently !== undefined) tokens.push({ kind: 'currently', text: currently, line });
    else if (text !== undefined) tokens.push({ kind: 'text', text: unescaped(text), line });
    else if (mark !== undefined) tokens.push({ kind: 'mark', text: mark, line });
    else if (word !== undefined) tokens.push({ kind: 'word', text: word, line });
    for (const letter of found[0]) if (letter === '\n') line++;
    at = pattern.lastIndex;
  }
  return tokens;
}

export function cdlError(line: number, message: string): H5LogError {
  return new H5LogError('FORMAT', `line ${line} of the CDL header: ${message}`);
}

/** A name without the backslashes that escape characters in it. */
export function plainName(word: string): string {
  return word.replace(/\\([\s\S])/g, '$1');
}

const LETTERS: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
  v: '\v',
  a: '\x07',
};

function unescaped(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(/\\(x[\da-fA-F]{1,2}|[0-7]{1,3}|[\s\S])/g, (_, code: string) => {
    if (/^x./.test(code)) return String.fromCharCode(Number.parseInt(code.slice(1), 16));
    if (/^[0-7]/.test(code)) return String.fromCharCode(Number.parseInt(code, 8));
    return LETTERS[code] ?? code;
  });
}

/** The number types of CDL, and their names in h5log. */
export const CDL_NUMBERS = {
  byte: 'int8',
  ubyte: 'uint8',
  short: 'int16',
  ushort: 'uint16',
  int: 'int32',
  long: 'int32',
  uint: 'uint32',
  int64: 'int64',
  uint64: 'uint64',
  float: 'float32',
  real: 'float32',
  double: 'float64',
} as const;

type NumberName = keyof typeof CDL_NUMBERS;
export type CdlType = NumberName | 'char' | 'string';

export function isCdlType(word: string): word is CdlType {
  return word === 'char' || word === 'string' || Object.hasOwn(CDL_NUMBERS, word);
}

/** The numbers as a typed array of their CDL type. */
function numbersOf(type: NumberName, numbers: readonly Constant[]): TypedArray {
  const array = numberArray(CDL_NUMBERS[type], numbers.length);
  if (array instanceof BigInt64Array || array instanceof BigUint64Array)
    for (const [i, { whole, value }] of numbers.entries()) array[i] = whole ?? BigInt(Math.trunc(value));
  else for (const [i, { value }] of numbers.entries()) array[i] = value;
  return array;
}

const WHOLE = /^([+-]?)(0[xX][\da-fA-F]+?|\d+)(ull|ul|us|ub|ll|u|l|s|b)?$/i;
const REAL = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)([fd]?)$/i;
const SPECIAL = /^([+-]?)(nan|inf|infinity)(f?)$/i;

const SUFFIXES: Readonly<Record<string, NumberName>> = {
  b: 'byte',
  ub: 'ubyte',
  s: 'short',
  us: 'ushort',
  l: 'int',
  u: 'uint',
  ul: 'uint',
  ll: 'int64',
  ull: 'uint64',
};

/** The value of an attribute: a text, several texts, or numbers, which all have the type of the first. */
export function attributeValue(
  constants: readonly Token[],
  declared: CdlType | undefined,
): string | string[] | TypedArray {
  const [first] = constants as readonly [Token, ...Token[]];
  if (first.kind === 'text') {
    const texts = constants.map((token) => {
      if (token.kind !== 'text') throw cdlError(token.line, `${token.text} is not a text, although the first value is`);
      return token.text;
    });
    // ncdump splits a text of type char at line ends; it is one value.
    return declared === 'string' && texts.length > 1 ? texts : texts.join('');
  }
  const numbers = constants.map(constant);
  const type = declared && declared !== 'char' && declared !== 'string' ? declared : (numbers[0] as Constant).type;
  return numbersOf(type, numbers);
}

interface Constant {
  readonly type: NumberName;
  readonly value: number;
  /** The exact value of a whole number. */
  readonly whole?: bigint;
}

function constant({ kind, text, line }: Token): Constant {
  if (kind === 'word') {
    const whole = WHOLE.exec(text);
    if (whole) {
      const [, sign, digits, suffix] = whole as unknown as [string, string, string, string | undefined];
      const size = BigInt(digits);
      const exact = sign === '-' ? -size : size;
      const fits = exact >= -(2n ** 31n) && exact < 2n ** 31n;
      const type = suffix === undefined ? (fits ? 'int' : 'int64') : (SUFFIXES[suffix.toLowerCase()] as NumberName);
      return { type, value: Number(exact), whole: exact };
    }
    const real = REAL.exec(text);
    if (real) return { type: real[2]?.toLowerCase() === 'f' ? 'float' : 'double', value: Number(real[1]) };
    const special = SPECIAL.exec(text);
    if (special) {
      const size = special[2]?.toLowerCase() === 'nan' ? Number.NaN : Number.POSITIVE_INFINITY;
      return { type: special[3] ? 'float' : 'double', value: special[1] === '-' ? -size : size };
    }
  }
  throw cdlError(line, `${JSON.stringify(text)} is neither a number nor a text`);
}
