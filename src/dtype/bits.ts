// Numbers of unusual layout (three bytes, padding bits, long double, bfloat16 ...), bit by bit. They are rare, so this is
// written for clarity, on BigInt.

import type { FloatType, IntegerType } from './model.ts';

const mask = (bits: number): bigint => (1n << BigInt(bits)) - 1n;

/** Reads numbers of unusual layout: integers of up to 53 bits and all floats as numbers, wider integers as bigints. */
export function readUnusual(
  type: IntegerType | FloatType,
  bytes: Uint8Array,
  at: number,
  count: number,
): (number | bigint)[] {
  const values: (number | bigint)[] = [];
  for (let i = 0; i < count; i++) {
    const raw = readBits(bytes, at + i * type.size, type);
    values.push(type.class === 'integer' ? integerOf(raw, type) : floatOf(raw, type));
  }
  return values;
}

/**
 * Writes numbers of unusual layout by HDF5's rules: integers saturate and are cut toward zero, floats are rounded to nearest
 * even; padding bits are 0.
 */
export function writeUnusual(
  type: IntegerType | FloatType,
  values: ArrayLike<number | bigint>,
  valuesAt: number,
  count: number,
  out: Uint8Array,
  outAt: number,
): void {
  for (let i = 0; i < count; i++) {
    const value = values[valuesAt + i] as number | bigint;
    const raw = type.class === 'integer' ? integerBits(value, type) : floatBits(Number(value), type);
    writeBits(raw, out, outAt + i * type.size, type);
  }
}

function readBits(bytes: Uint8Array, at: number, type: IntegerType | FloatType): bigint {
  let raw = 0n;
  for (let i = 0; i < type.size; i++) {
    const index = type.order === 'big' ? at + i : at + type.size - 1 - i;
    raw = (raw << 8n) | BigInt(bytes[index] ?? 0);
  }
  return raw;
}

function writeBits(raw: bigint, out: Uint8Array, at: number, type: IntegerType | FloatType): void {
  let rest = raw;
  for (let i = 0; i < type.size; i++) {
    out[type.order === 'big' ? at + type.size - 1 - i : at + i] = Number(rest & 0xffn);
    rest >>= 8n;
  }
}

function integerOf(raw: bigint, type: IntegerType): number | bigint {
  const field = raw >> BigInt(type.bitOffset);
  const value = type.signed ? BigInt.asIntN(type.precision, field) : BigInt.asUintN(type.precision, field);
  return type.precision > 53 ? value : Number(value);
}

function integerBits(value: number | bigint, type: IntegerType): bigint {
  const low = type.signed ? -(1n << BigInt(type.precision - 1)) : 0n;
  const high = mask(type.signed ? type.precision - 1 : type.precision);
  let whole: bigint;
  if (typeof value === 'bigint') whole = value;
  else if (Number.isFinite(value)) whole = BigInt(Math.trunc(value));
  else whole = value > 0 ? high : value < 0 ? low : 0n;
  const fitting = whole < low ? low : whole > high ? high : whole;
  return (fitting & mask(type.precision)) << BigInt(type.bitOffset);
}

/** The power of two that one unit of the mantissa is worth when the exponent field is `exponent`. */
function unitExponent(type: FloatType, exponent: number): number {
  // Without an implied bit (x87 long double) the mantissa's top bit is the one before the point; libhdf5 reads it so too.
  if (type.normalization !== 2) return exponent - type.exponentBias - (type.mantissaBits - 1);
  return Math.max(exponent, 1) - type.exponentBias - type.mantissaBits;
}

function floatOf(raw: bigint, type: FloatType): number {
  const negative = ((raw >> BigInt(type.signBit)) & 1n) === 1n;
  const exponent = Number((raw >> BigInt(type.exponentAt)) & mask(type.exponentBits));
  const mantissa = (raw >> BigInt(type.mantissaAt)) & mask(type.mantissaBits);
  let magnitude: number;
  if (exponent === Number(mask(type.exponentBits))) {
    const explicit = type.normalization === 2 ? 0n : 1n << BigInt(type.mantissaBits - 1);
    magnitude = (mantissa & ~explicit) === 0n ? Number.POSITIVE_INFINITY : Number.NaN;
  } else {
    const implied = type.normalization === 2 && exponent !== 0 ? 1n << BigInt(type.mantissaBits) : 0n;
    magnitude = scale(Number(mantissa | implied), unitExponent(type, exponent));
  }
  return negative ? -magnitude : magnitude;
}

/** value * 2 ** power in steps: 2 ** power alone may overflow or underflow where the product does not. */
function scale(value: number, power: number): number {
  let result = value;
  let rest = power;
  while (rest !== 0 && result !== 0 && Number.isFinite(result)) {
    const step = Math.max(-1000, Math.min(1000, rest));
    result *= 2 ** step;
    rest -= step;
  }
  return result;
}

function floatBits(value: number, type: FloatType): bigint {
  const sign = (value < 0 || Object.is(value, -0) ? 1n : 0n) << BigInt(type.signBit);
  const assemble = (exponent: number, mantissa: bigint): bigint =>
    sign | (BigInt(exponent) << BigInt(type.exponentAt)) | (mantissa << BigInt(type.mantissaAt));
  const top = Number(mask(type.exponentBits));
  const leading = type.normalization === 2 ? 0n : 1n << BigInt(type.mantissaBits - 1);
  if (Number.isNaN(value)) return assemble(top, leading | (1n << BigInt(type.mantissaBits - (leading ? 2 : 1))));
  if (value === 0) return assemble(0, 0n);
  const infinity = assemble(top, leading);
  if (!Number.isFinite(value)) return infinity;

  const { integer, power } = decompose(Math.abs(value));
  // The significand with its leading bit has `width` bits in the target; find the exponent field that puts it there.
  const width = type.normalization === 2 ? type.mantissaBits + 1 : type.mantissaBits;
  const bitLength = integer.toString(2).length;
  let exponent = bitLength - 1 + power + type.exponentBias;
  if (exponent < 1) exponent = type.normalization === 2 ? 0 : Math.max(exponent, 0);
  let significand = shiftToEven(integer, power - unitExponent(type, exponent));
  if (significand >> BigInt(width)) {
    significand >>= 1n;
    exponent += 1;
  }
  if (exponent >= top) return infinity;
  if (type.normalization !== 2) return assemble(exponent, significand);
  // A subnormal that rounded up to the smallest normal carries its leading bit into the exponent.
  if (exponent === 0 && significand >> BigInt(type.mantissaBits)) exponent = 1;
  return assemble(exponent, significand & mask(type.mantissaBits));
}

/** A positive finite number as integer * 2 ** power, exactly. */
function decompose(value: number): { integer: bigint; power: number } {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const exponent = Number(bits >> 52n);
  const mantissa = bits & mask(52);
  if (exponent === 0) return { integer: mantissa, power: -1074 };
  return { integer: mantissa | (1n << 52n), power: exponent - 1075 };
}

/** integer * 2 ** shift, rounded to nearest even when that cuts bits off. */
function shiftToEven(integer: bigint, shift: number): bigint {
  if (shift >= 0) return integer << BigInt(shift);
  const cut = BigInt(-shift);
  const kept = integer >> cut;
  const rest = integer & ((1n << cut) - 1n);
  const half = 1n << (cut - 1n);
  const up = rest > half || (rest === half && (kept & 1n) === 1n);
  return up ? kept + 1n : kept;
}
