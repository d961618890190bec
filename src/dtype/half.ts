// IEEE half precision by hand: Node 20 has no Float16Array.

const f64 = new Float64Array(1);
const halves = new Uint32Array(f64.buffer);

/** 2 ** (e - 25) for the exponent field e: what one unit of the mantissa is worth in a normal number. */
const UNIT = Float64Array.from({ length: 31 }, (_, e) => 2 ** (e - 25));

/** The nearest half, ties to even, as its 16 bits. From 65520 on it is infinity; a NaN becomes the quiet one. */
export function toHalf(value: number): number {
  f64[0] = value;
  const high = halves[1] as number;
  const sign = (high >>> 16) & 0x8000;
  const magnitude = Math.abs(value);
  // Subnormal, zero, or rounding up to the smallest normal, whose bits come out of the same integer.
  // Adding and taking away 2^52 rounds to an integer, ties to even, in hardware.
  if (magnitude < 2 ** -14) return sign | (magnitude * 2 ** 24 + 2 ** 52 - 2 ** 52);
  if (magnitude >= 65520) return sign | 0x7c00;
  if (Number.isNaN(magnitude)) return sign | 0x7e00;
  // Exponent and mantissa as one integer: a carry out of the mantissa raises the exponent, as it should.
  const kept = ((high & 0x7fffffff) >>> 10) - ((1023 - 15) << 10);
  const rest = high & 0x3ff;
  const up = rest > 0x200 || (rest === 0x200 && (halves[0] !== 0 || (kept & 1) === 1));
  return sign | (kept + (up ? 1 : 0));
}

/** The number behind 16 bits; exact. */
export function fromHalf(bits: number): number {
  const exponent = (bits >>> 10) & 31;
  const mantissa = bits & 0x3ff;
  let magnitude: number;
  if (exponent === 0) magnitude = mantissa * 2 ** -24;
  else if (exponent === 31) magnitude = mantissa === 0 ? Number.POSITIVE_INFINITY : Number.NaN;
  else magnitude = (1024 + mantissa) * (UNIT[exponent] as number);
  return bits & 0x8000 ? -magnitude : magnitude;
}
