import fc from 'fast-check';
import { T } from '../../src/dtype/construct.ts';
import { numberArray } from '../../src/dtype/convert.ts';
import type { Resolver } from '../../src/dtype/decode.ts';
import type { Encoded } from '../../src/dtype/encode.ts';
import { fromHalf } from '../../src/dtype/kernels.ts';
import {
  type CompoundType,
  type DType,
  fullType,
  isBool,
  type NumberType,
  numberName,
  type OpaqueType,
  type StringType,
  storedNumber,
} from '../../src/dtype/model.ts';

export const NUMBER_TYPES: readonly NumberType[] = [
  'int8',
  'uint8',
  'int16',
  'uint16',
  'int32',
  'uint32',
  'int64',
  'uint64',
  'float16',
  'float32',
  'float64',
];

/** For types that keep everything in the element. */
export const NO_RESOLVER: Resolver = {
  heap: () => undefined,
  path: () => {
    throw new Error('no references expected');
  },
};

/** A heap and a table of objects in memory, as a file would have them. */
export class MemoryHeap implements Resolver {
  readonly objects: Uint8Array[] = [];
  readonly paths: string[] = [];

  /** Stores the contents and patches their ids into the bytes; returns the bytes. */
  store(encoded: Encoded): Uint8Array {
    const view = new DataView(encoded.bytes.buffer, encoded.bytes.byteOffset, encoded.bytes.byteLength);
    for (const { at, content } of encoded.heap) {
      this.objects.push(this.store(content));
      view.setBigUint64(at + 4, 4096n, true);
      view.setUint32(at + 12, this.objects.length, true);
    }
    for (const { at, path } of encoded.references) {
      this.paths.push(path);
      view.setBigUint64(at, BigInt(this.paths.length * 8), true);
    }
    return encoded.bytes;
  }

  heap(address: number, index: number): Uint8Array | undefined {
    return address === 4096 ? this.objects[index - 1] : undefined;
  }

  path(address: number): string {
    return this.paths[address / 8 - 1] as string;
  }
}

const number = fc.constantFrom(...NUMBER_TYPES);
const named = fc.constantFrom('a', 'b', 'c', 'näme', '__proto__', 'constructor', '7');

const leaf: fc.Arbitrary<DType> = fc.oneof(
  { weight: 4, arbitrary: number as fc.Arbitrary<DType> },
  number.map((of) => T.bigEndian(of)),
  fc
    .record({
      length: fc.integer({ min: 1, max: 12 }),
      pad: fc.constantFrom('zero', 'null', 'space'),
      charset: fc.constantFrom('utf8', 'ascii'),
    })
    .map(T.string) as fc.Arbitrary<DType>,
  fc.constantFrom<DType>(T.string(), T.string({ charset: 'ascii' }), T.bool, T.reference),
  fc.constantFrom<DType>(T.enum('int16', { up: 1, down: -1 }), T.enum('uint64', { none: 0, all: 2n ** 64n - 1n })),
  fc.integer({ min: 1, max: 9 }).map((size) => T.opaque(size, 'tag')),
  fc.constantFrom(1, 2, 4, 8).map((bytes) => T.bitfield(bytes as 1 | 2 | 4 | 8)),
);

/** Any type: compounds with gaps, arrays and sequences of one another, three levels deep. */
export const anyType: fc.Arbitrary<DType> = fc.letrec<{ type: DType }>((tie) => ({
  type: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    leaf,
    fc
      .uniqueArray(fc.tuple(named, tie('type'), fc.nat(5)), { minLength: 1, maxLength: 4, selector: ([name]) => name })
      .map(gappy),
    fc
      .tuple(tie('type'), fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 2 }))
      .map(([base, shape]) => T.array(base, shape)),
    tie('type').map((base) => T.vlen(base)),
  ),
})).type;

function gappy(fields: [string, DType, number][]): DType {
  const offsets: [string, number][] = [];
  let end = 0;
  for (const [name, dtype, gap] of fields) {
    offsets.push([name, end + gap]);
    end += gap + fullType(dtype).size;
  }
  // Built from entries, for an object literal cannot have a field named __proto__.
  const types = Object.fromEntries(fields.map(([name, dtype]) => [name, dtype]));
  return T.compound(types, { offsets: Object.fromEntries(offsets), size: end + 3 });
}

/** `count` elements in the form in which a read returns them. */
export function elements(dtype: DType, count: number): fc.Arbitrary<ArrayLike<unknown>> {
  const type = fullType(dtype);
  const many = (one: fc.Arbitrary<unknown>) => fc.array(one, { minLength: count, maxLength: count });
  switch (type.class) {
    case 'integer':
    case 'float':
    case 'bitfield':
    case 'enum':
      return numbers(dtype, count);
    case 'string':
      return many(text(type));
    case 'reference':
      return many(fc.constantFrom('', '/a', '/a/b'));
    case 'opaque':
      return many(bytes(type));
    case 'compound':
      return many(record(type));
    case 'array':
      return many(
        elements(
          type.base,
          type.shape.reduce((a, b) => a * b, 1),
        ),
      );
    case 'vlen':
      return many(fc.nat(3).chain((length) => elements(type.base, length)));
  }
}

function numbers(dtype: DType, count: number): fc.Arbitrary<ArrayLike<unknown>> {
  const stored = storedNumber(dtype) ?? 'int8';
  const kind = numberName(stored) as NumberType;
  const fill = (one: fc.Arbitrary<number | bigint>) =>
    fc.array(one, { minLength: count, maxLength: count }).map((values) => {
      const array = numberArray(dtype, count) as { [i: number]: number | bigint };
      values.forEach((value, i) => {
        array[i] = value;
      });
      return array as ArrayLike<unknown>;
    });
  if (isBool(dtype)) return fill(fc.constantFrom(0, 1));
  if (kind === 'float16') return fill(fc.integer({ min: 0, max: 0xffff }).map(fromHalf));
  if (kind === 'float32') return fill(fc.float());
  if (kind === 'float64') return fill(fc.double());
  if (kind === 'int64') return fill(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }));
  if (kind === 'uint64') return fill(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }));
  return fill(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }));
}

function text(type: StringType): fc.Arbitrary<string> {
  const room = type.variable ? 40 : type.pad === 'zero' ? type.size - 1 : type.size;
  const unit = type.charset === 'ascii' ? 'binary-ascii' : 'binary';
  return fc.string({ unit, maxLength: room }).map((value) => {
    let cut = value.replaceAll('\0', '');
    if (type.pad === 'space') cut = cut.replace(/ +$/, '');
    while (new TextEncoder().encode(cut).length > room) cut = Array.from(cut).slice(0, -1).join('');
    return type.pad === 'space' ? cut.replace(/ +$/, '') : cut;
  });
}

const bytes = (type: OpaqueType) => fc.uint8Array({ minLength: type.size, maxLength: type.size });

function record(type: CompoundType): fc.Arbitrary<unknown> {
  const fields = type.fields.map(({ name, dtype }) =>
    elements(dtype, 1).map((one) => [name, isBool(dtype) ? one[0] !== 0 : one[0]] as const),
  );
  return fc.tuple(...fields).map((entries) => Object.fromEntries(entries));
}
