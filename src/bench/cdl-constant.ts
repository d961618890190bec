import { numberArray } from '../dtype/convert.ts';
import type { TypedArray } from '../dtype/model.ts';
import { cdlError, type Token } from './cdl-tokens.ts';

/** The number types of CDL, with what they are called in HDF5. */
export const NUMBERS = {
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

export type NumberName = keyof typeof NUMBERS;
export type CdlType = NumberName | 'char' | 'string';

export function isCdlType(word: string): word is CdlType {
  return word === 'char' || word === 'string' || Object.hasOwn(NUMBERS, word);
}

/** A typed array of these numbers. */
function numbersOf(type: NumberName, numbers: readonly Constant[]): TypedArray {
  const array = numberArray(NUMBERS[type], numbers.length);
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

/** The value of an attribute: a text, several texts, or numbers, all of the type that the first of them has. */
export function attributeValue(
  constants: readonly Token[],
  declared: CdlType | undefined,
): string | string[] | TypedArray {
  const [first] = constants as readonly [Token, ...Token[]];
  if (first.kind === 'text') {
    const texts = constants.map((token) => {
      if (token.kind !== 'text') throw cdlError(token.line, `${token.text} is no text, as the one before it`);
      return token.text;
    });
    // Text of type char is cut at its line ends and means one value.
    return declared === 'string' && texts.length > 1 ? texts : texts.join('');
  }
  const numbers = constants.map(constant);
  const type = declared && declared !== 'char' && declared !== 'string' ? declared : (numbers[0] as Constant).type;
  return numbersOf(type, numbers);
}

interface Constant {
  readonly type: NumberName;
  readonly value: number;
  /** Exact, if it is a whole number. */
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
