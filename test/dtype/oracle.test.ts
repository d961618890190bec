import { expect, test } from 'vitest';
import { T } from '../../src/dtype/construct.ts';
import { arrayKind, numberArray, packNumbers, unpackNumbers } from '../../src/dtype/convert.ts';
import { decodeValues } from '../../src/dtype/decode.ts';
import { encodeValues } from '../../src/dtype/encode.ts';
import type { FloatType, IntegerType, NumberType } from '../../src/dtype/model.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { random, seed } from '../seed.ts';
import { NO_RESOLVER, NUMBER_TYPES } from './generate.ts';

// H5Tconvert over every pair and byte order. libhdf5 has two answers in places: a C cast where both sides are native, a
// loop over bits where one is not. Where they agree we must agree too, else with one of them (kernels.ts says which).
// What becomes a float16 is compared with numpy, which follows IEEE; libhdf5 rounds ties up and overflows to NaN.
const CONVERT = `
import sys, json, base64, warnings
import numpy as np
from h5py import h5t
warnings.filterwarnings('ignore')
def convert(data, s, d):
    n = len(data) // np.dtype(s).itemsize
    buf = np.zeros(n * max(np.dtype(s).itemsize, np.dtype(d).itemsize), 'u1')
    buf[:len(data)] = np.frombuffer(data, 'u1')
    h5t.convert(h5t.py_create(np.dtype(s)), h5t.py_create(np.dtype(d)), n, buf)
    return np.frombuffer(buf.tobytes()[:n * np.dtype(d).itemsize], d)
answers = {}
sources = {k: base64.b64decode(v) for k, v in json.load(sys.stdin).items()}
for s, data in sources.items():
    little = np.frombuffer(data, np.dtype(s).newbyteorder('<'))
    for d in sources:
        out = set()
        for so in '<>':
            for do in '<>':
                a = convert(little.astype(np.dtype(s).newbyteorder(so)).tobytes(), so + np.dtype(s).str[1:], do + np.dtype(d).str[1:])
                out.add(a.astype(np.dtype(d).newbyteorder('<')).tobytes())
        if d == 'float16': out = {little.astype('<f2').tobytes()}
        answers[s + ' ' + d] = [base64.b64encode(x).decode() for x in out]
print(json.dumps(answers))
`;

/** Little-endian bytes of values worth trying: the edges of every type, ties, subnormals, and random bits. */
function samples(kind: NumberType, next: () => number): Uint8Array {
  const powers = [0, 7, 8, 10, 11, 14, 15, 16, 23, 24, 25, 31, 32, 52, 53, 54, 60, 62, 63, 64, 127, 128];
  const edges = [0, -0, 0.5, 0.9, 1.5, 127.9, 255.5, 2049, 2051, 65504, 65519.9, 65520, 1e30, 1e39, 1e300];
  for (const p of powers) edges.push(2 ** p - 1, 2 ** p, 2 ** p + 1, 2 ** p * 1.5, 2 ** p * (1 - 2 ** -25));
  for (const p of [13, 14, 15, 23, 24, 25, 26, 126, 127, 148, 149, 150, 151, 1022, 1073, 1074]) {
    edges.push(2 ** -p, 2 ** -p * 1.5, 2 ** -p * (1 + 2 ** -30));
  }
  edges.push(1 + 2 ** -11, 1 + 3 * 2 ** -11, 1 + 2 ** -24, 1 + 3 * 2 ** -24, 3.4028235677973362e38);
  edges.push(Number.POSITIVE_INFINITY, Number.NaN);
  const numbers = edges.flatMap((v) => [v, -v]);
  const wide = [
    2n ** 53n + 1n,
    2n ** 60n + 2n ** 36n + 1n,
    2n ** 63n - 513n,
    2n ** 63n - 1n,
    2n ** 64n - 2n ** 39n - 1n,
  ];
  const all = [...numbers, ...wide.flatMap((v) => [v, -v, v + 2n])];
  const size = { '8': 1, '6': 2, '2': 4, '4': 8 }[kind.slice(-1)] as number;
  const bytes = new Uint8Array((all.length + 2000) * size);
  packNumbers(all, 0, all.length, kind, bytes, 0);
  for (let i = all.length * size; i < bytes.length; i++) bytes[i] = Math.floor(next() * 256);
  return bytes;
}

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

/** Elements as text, so that a NaN is any NaN. Float16 has no typed array, so its bits stand for it. */
function elements(kind: NumberType, bytes: Uint8Array): string[] {
  if (kind === 'float16') {
    const bits = new Uint16Array(Uint8Array.from(bytes).buffer);
    return Array.from(bits, (b) => ((b & 0x7fff) > 0x7c00 ? 'NaN' : `0x${b.toString(16)}`));
  }
  const values = numberArray(kind, 0).constructor as unknown as new (b: ArrayBufferLike) => ArrayLike<number | bigint>;
  return Array.from(new values(Uint8Array.from(bytes).buffer), (v) => (Object.is(v, -0) ? '-0' : String(v)));
}

withOracle('python', 'number conversion as libhdf5 does it', () => {
  const next = random(seed('number conversion'));
  const sources = Object.fromEntries(NUMBER_TYPES.map((kind) => [kind, samples(kind, next)]));
  const answers = JSON.parse(
    pythonSync(
      CONVERT,
      [],
      JSON.stringify(Object.fromEntries(Object.entries(sources).map(([k, b]) => [k, base64(b)]))),
    ),
  ) as Record<string, string[]>;

  for (const from of NUMBER_TYPES) {
    test(`${from} to every type, in both byte orders`, () => {
      const bytes = sources[from] as Uint8Array;
      const values = numberArray(from, 0);
      const count = bytes.length / (from === 'float16' ? 2 : values.BYTES_PER_ELEMENT);
      const host = numberArray(from, count);
      unpackNumbers(bytes, 0, count, from, host, 0);
      for (const to of NUMBER_TYPES) {
        const allowed = (answers[`${from} ${to}`] as string[]).map((a) => elements(to, Buffer.from(a, 'base64')));
        expect((allowed[0] as string[]).length).toBe(count);
        const size = byteSize(to);
        const little = new Uint8Array(count * size);
        packNumbers(host, 0, count, to, little, 0);
        const ours = elements(to, little);
        const off: string[] = [];
        for (let i = 0; i < count; i++) {
          // libhdf5 1.10 makes garbage of these; the integer itself is the only sensible answer.
          if (from === 'float16' && to === 'int64' && (host[i] as number) < 0) {
            const exact = host[i] === Number.NEGATIVE_INFINITY ? -(2n ** 63n) : BigInt(Math.trunc(host[i] as number));
            if (ours[i] !== String(exact)) off.push(`${host[i]}: ${ours[i]}, expected ${exact}`);
          } else if (!allowed.some((answer) => answer[i] === ours[i])) {
            off.push(`${host[i]}: ${ours[i]}, libhdf5 ${allowed.map((answer) => answer[i]).join(' or ')}`);
          }
        }
        expect(off, `${from} to ${to}`).toEqual([]);

        const big = new Uint8Array(count * size + 1);
        packNumbers(host, 0, count, T.bigEndian(to), big, 1);
        expect(elements(to, reversed(big.subarray(1), size)), `${from} to big-endian ${to}`).toEqual(ours);

        if (to === 'float16') continue;
        const target = numberArray(to, count + 1);
        unpackNumbers(bytes, 0, count, from, target, 1);
        expect(arrayKind(target)).toBe(to);
        const read = new Uint8Array(target.buffer, size, count * size);
        expect(elements(to, read), `${from} read into ${to}`).toEqual(ours);
      }
    });
  }
});

const byteSize = (kind: NumberType): number => (kind === 'float16' ? 2 : numberArray(kind, 0).BYTES_PER_ELEMENT);

function reversed(bytes: Uint8Array, size: number): Uint8Array {
  const out = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) out[i] = bytes[i - (i % size) + size - 1 - (i % size)] as number;
  return out;
}

const UNUSUAL = `
import sys, json, base64
import numpy as np
from h5py import h5t
answers = []
def run(src, dst, data, n):
    buf = np.zeros(n * max(src.get_size(), dst.get_size()), 'u1')
    buf[:len(data)] = np.frombuffer(data, 'u1')
    h5t.convert(src, dst, n, buf)
    return buf.tobytes()[:n * dst.get_size()]
for job in json.load(sys.stdin):
    data = base64.b64decode(job['values'])
    t = job['type']
    if t['class'] == 'integer':
        x = h5t.STD_I8LE.copy(); x.set_size(t['size']); x.set_sign(h5t.SGN_2 if t['signed'] else h5t.SGN_NONE)
        native = h5t.STD_I64LE
    else:
        x = h5t.IEEE_F64LE.copy(); x.set_size(max(t['size'], 8)); x.set_precision(8 * x.get_size())
        x.set_fields(t['signBit'], t['exponentAt'], t['exponentBits'], t['mantissaAt'], t['mantissaBits'])
        x.set_ebias(t['exponentBias']); x.set_norm([h5t.NORM_NONE, h5t.NORM_MSBSET, h5t.NORM_IMPLIED][t['normalization']])
        x.set_precision(t['precision']); x.set_size(t['size'])
        native = h5t.IEEE_F64LE
    x.set_order(h5t.ORDER_BE if t['order'] == 'big' else h5t.ORDER_LE)
    x.set_precision(t['precision']); x.set_offset(t['bitOffset'])
    packed = run(native, x, data, len(data) // 8)
    back = run(x, native, packed, len(data) // 8)
    answers.append([base64.b64encode(packed).decode(), base64.b64encode(back).decode()])
print(json.dumps(answers))
`;

withOracle('python', 'numbers of unusual size as libhdf5 stores them', () => {
  const integer = (size: number, precision: number, bitOffset: number, signed: boolean, big = false): IntegerType => ({
    class: 'integer',
    size,
    signed,
    order: big ? 'big' : 'little',
    bitOffset,
    precision,
  });
  const float = (size: number, fields: number[], big = false): FloatType => {
    const [signBit = 0, exponentAt = 0, exponentBits = 0, mantissaAt = 0, mantissaBits = 0, normalization = 2] = fields;
    const exponentBias = 2 ** (exponentBits - 1) - 1;
    const order = big ? 'big' : 'little';
    const places = { signBit, exponentAt, exponentBits, mantissaAt, mantissaBits, exponentBias, normalization };
    return { class: 'float', size, order, bitOffset: 0, precision: signBit + 1, ...places };
  };
  const whole = BigInt64Array.of(0n, 1n, -1n, 5n, 100n, -100n, 8191n, -8192n, 70000n, -70000n, 2n ** 40n, -(2n ** 62n));
  // Few enough bits for every type here: libhdf5 rounds ties up, we to even.
  const fractions = Float64Array.of(0, -0, 1, -1, 0.5, 1.25, -3.5, 96, 2 ** -6, 448, Number.POSITIVE_INFINITY, -1.75);
  const types: [name: string, type: IntegerType | FloatType][] = [
    ['int24', integer(3, 24, 0, true)],
    ['big-endian uint24', integer(3, 24, 0, false, true)],
    ['17 bits from bit 3 on', integer(4, 17, 3, true)],
    ['big-endian 13 bits from bit 2 on', integer(2, 13, 2, false, true)],
    ['48 bits in 8 bytes', integer(8, 48, 8, true)],
    ['60 bits in 8 bytes', integer(8, 60, 0, true)],
    ['bfloat16', float(2, [15, 7, 8, 0, 7])],
    ['big-endian 24-bit float', float(3, [23, 16, 7, 0, 16], true)],
    ['quadruple', float(16, [127, 112, 15, 0, 112])],
    ['long double of x87', float(16, [79, 64, 15, 0, 64, 0])],
  ];
  const jobs = types.map(([, type]) => ({ type, values: base64(valueBytes(type)) }));
  const answers = JSON.parse(pythonSync(UNUSUAL, [], JSON.stringify(jobs))) as [packed: string, back: string][];

  function valueBytes(type: IntegerType | FloatType): Uint8Array {
    return new Uint8Array(type.class === 'integer' ? whole.buffer : fractions.buffer);
  }

  /** The bytes that count, in hexadecimal. The C cast to a native long double leaves what was there in the last six. */
  function used(type: IntegerType | FloatType, bytes: Uint8Array): string[] {
    const size = type.class === 'float' ? type.precision / 8 : type.size;
    const count = bytes.length / type.size;
    return Array.from({ length: count }, (_, i) =>
      Buffer.from(bytes).toString('hex', i * type.size, i * type.size + size),
    );
  }

  for (const [i, [name, type]] of types.entries()) {
    test(name, () => {
      const [packed, back] = (answers[i] as [string, string]).map(
        (text) => new Uint8Array(Buffer.from(text, 'base64')),
      );
      const values = type.class === 'integer' ? whole : fractions;
      const ours = encodeValues(type, values, values.length).bytes;
      expect(used(type, ours)).toEqual(used(type, packed as Uint8Array));
      const decoded = decodeValues(type, packed as Uint8Array, values.length, NO_RESOLVER) as (number | bigint)[];
      if (type.class === 'float') expect(decoded).toEqual(Array.from(new Float64Array((back as Uint8Array).buffer)));
      else expect(decoded.map(BigInt)).toEqual(Array.from(new BigInt64Array((back as Uint8Array).buffer)));
    });
  }
});
