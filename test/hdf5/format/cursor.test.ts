import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { lookup3 } from '../../../src/base/checksum.ts';
import { ByteWriter, bytesFor, textLength } from '../../../src/hdf5/format/byte-writer.ts';
import { Cursor, checkSum, UNDEFINED } from '../../../src/hdf5/format/cursor.ts';
import { repeats, seed } from '../../seed.ts';
import { expectFormat } from '../fixture.ts';

type Field =
  | { kind: 'u8' | 'u16' | 'u32' | 'u64'; value: number }
  | { kind: 'uint'; value: number; size: number }
  | { kind: 'bytes'; value: Uint8Array }
  | { kind: 'text'; value: string }
  | { kind: 'zeros'; value: number };

const small = (kind: 'u8' | 'u16' | 'u32' | 'u64', most: number): fc.Arbitrary<Field> =>
  fc.record({ kind: fc.constant(kind), value: fc.nat(most) }) as fc.Arbitrary<Field>;
const field: fc.Arbitrary<Field> = fc.oneof(
  small('u8', 0xff),
  small('u16', 0xffff),
  small('u32', 0xffffffff),
  small('u64', Number.MAX_SAFE_INTEGER),
  fc.nat(Number.MAX_SAFE_INTEGER).chain((value) =>
    fc.record({
      kind: fc.constant('uint' as const),
      value: fc.constant(value),
      size: fc.integer({ min: bytesFor(value), max: 8 }),
    }),
  ),
  fc.record({ kind: fc.constant('bytes' as const), value: fc.uint8Array({ maxLength: 60 }) }),
  fc.record({ kind: fc.constant('text' as const), value: fc.string({ unit: 'grapheme', maxLength: 20 }) }),
  fc.record({ kind: fc.constant('zeros' as const), value: fc.nat(100) }),
);

function write(out: ByteWriter, { kind, ...rest }: Field): void {
  if (kind === 'uint') out.uint(rest.value as number, (rest as { size: number }).size);
  else if (kind === 'bytes') out.put(rest.value as Uint8Array);
  else if (kind === 'text') out.text(rest.value as string);
  else if (kind === 'zeros') out.zeros(rest.value as number);
  else out[kind](rest.value as number);
}

function read(cursor: Cursor, given: Field): unknown {
  switch (given.kind) {
    case 'uint':
      return cursor.uint(given.size);
    case 'bytes':
      return cursor.take(given.value.length);
    case 'text':
      return cursor.string(textLength(given.value));
    case 'zeros':
      return cursor.take(given.value).every((byte) => byte === 0) ? given.value : -1;
    default:
      return cursor[given.kind]();
  }
}

test('what a writer writes, a cursor reads, field by field', () => {
  fc.assert(
    fc.property(fc.array(field, { maxLength: 30 }), fc.integer({ min: 1, max: 100 }), (fields, capacity) => {
      const out = new ByteWriter(capacity);
      for (const each of fields) write(out, each);
      const cursor = new Cursor(out.done(), 1000);
      for (const each of fields) expect(read(cursor, each)).toEqual(each.value);
      expect(cursor.left).toBe(0);
      expect(cursor.offset).toBe(1000 + out.length);
    }),
    { seed: seed('fields'), numRuns: repeats(2000) },
  );
});

describe('a cursor', () => {
  const bytes = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);

  test('reads little-endian numbers of any width', () => {
    expect(new Cursor(bytes, 0).u16()).toBe(0x0201);
    expect(new Cursor(bytes, 0).u32()).toBe(0x04030201);
    expect(new Cursor(bytes, 0).uint(3)).toBe(0x030201);
    expect(new Cursor(Uint8Array.of(0xfe, 0xff, 0xff, 0xff), 0).i32()).toBe(-2);
    expect(new Cursor(Uint8Array.of(255, 255, 255, 255, 255, 255, 31, 0), 0).u64()).toBe(Number.MAX_SAFE_INTEGER);
  });

  test.each([2, 4, 8])('takes an address of %i bytes, all bits one, for undefined', (size) => {
    expect(new Cursor(new Uint8Array(size).fill(0xff), 0).address(size)).toBe(UNDEFINED);
    const nearly = new Uint8Array(size).fill(0xff);
    nearly[0] = 0xfe;
    if (size < 8) expect(new Cursor(nearly, 0).address(size)).toBe(256 ** size - 2);
    else expectFormat(() => new Cursor(nearly, 0).address(size));
  });

  test('refuses numbers beyond 2^53 - 1 and says where', () => {
    const cursor = new Cursor(Uint8Array.of(9, 0, 0, 0, 0, 0, 0, 32, 0), 100, 1);
    expect(() => cursor.u64()).toThrow(expect.objectContaining({ code: 'FORMAT', offset: 101 }));
  });

  test('stops at its end, also before the end of the bytes', () => {
    const cursor = new Cursor(bytes, 0, 2, 5);
    expect(cursor.left).toBe(3);
    expectFormat(() => cursor.u32());
    expect(cursor.take(3)).toEqual(Uint8Array.of(3, 4, 5));
    expectFormat(() => cursor.u8());
    expect(new Cursor(bytes, 0, 0, 1000).left).toBe(10);
  });

  test('reads texts with an end, and refuses those without', () => {
    const text = new TextEncoder().encode('größe\0rest');
    const cursor = new Cursor(text, 0);
    expect(cursor.cstring()).toBe('größe');
    expectFormat(() => cursor.cstring());
    expect(cursor.string(4)).toBe('rest');
    expectFormat(() => new Cursor(text, 0, 0, 5).cstring());
  });

  test('keeps a byte order mark: without it two names could be one', () => {
    expect(new Cursor(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61), 0).string(4)).toBe('\ufeffa');
  });

  test('checks signatures and versions, and stays before what is wrong', () => {
    const cursor = new Cursor(new TextEncoder().encode('OHDR\x02'), 0);
    expect(() => cursor.signature('FRHP')).toThrow(expect.objectContaining({ code: 'FORMAT', offset: 0 }));
    cursor.signature('OHDR');
    expect(() => cursor.expect(1, 'version')).toThrow(expect.objectContaining({ code: 'FORMAT', offset: 4 }));
    cursor.expect(2, 'version');
  });

  test('compares the checksum behind its bytes', () => {
    const out = new ByteWriter(14).put(bytes);
    const sealed = out.u32(lookup3(bytes)).done();
    checkSum(new Cursor(sealed, 0), 10, 0);
    for (let at = 0; at < 14; at++) {
      const damaged = sealed.slice();
      damaged[at] = (damaged[at] as number) ^ 1;
      expectFormat(() => checkSum(new Cursor(damaged, 0), 10, 0), `byte ${at}`);
    }
  });
});

describe('sizes', () => {
  test.each([
    [0, 1],
    [255, 1],
    [256, 2],
    [65535, 2],
    [65536, 3],
    [2 ** 32 - 1, 4],
    [2 ** 32, 5],
    [Number.MAX_SAFE_INTEGER, 7],
  ])('%i needs %i bytes', (value, size) => {
    expect(bytesFor(value)).toBe(size);
  });

  test.each(['', 'plain', 'größe', '🌍', 'a\0b'])('"%s" is as long as its UTF-8', (text) => {
    expect(textLength(text)).toBe(new TextEncoder().encode(text).length);
  });
});
