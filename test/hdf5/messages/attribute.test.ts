import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type FullType, fullType } from '../../../src/dtype/model.ts';
import { Cursor, UNDEFINED } from '../../../src/hdf5/format/cursor.ts';
import {
  type AttributeMessage,
  attributeName,
  parseAttribute,
  parseAttributeInfo,
} from '../../../src/hdf5/messages/attribute.ts';
import { type Dataspace, elementCount, SCALAR_SPACE, simpleSpace } from '../../../src/hdf5/messages/dataspace.ts';
import {
  encodeAttribute,
  encodeAttributeInfo,
  encodeDatatype,
  encodeTypedAttribute,
} from '../../../src/hdf5/messages/encode.ts';
import * as MESSAGE from '../../../src/hdf5/messages/message-types.ts';
import { encodeSharedObject, parseShared } from '../../../src/hdf5/read/shared-messages.ts';
import { anyType } from '../../dtype/generate.ts';
import { repeats, seed } from '../../seed.ts';
import { expectFormat, expectNoTruncation, FIXTURES, Fixture, hex } from '../fixture.ts';
import { sayAttribute, sayType } from '../say.ts';

const parse = (bytes: Uint8Array, lengthSize = 8): AttributeMessage => parseAttribute(new Cursor(bytes, 0), lengthSize);
const isShared = (part: object): part is { readonly sharedAt: number; readonly sharedSize: number } =>
  'sharedAt' in part;

/** Attributes in headers that are not shared as a whole. */
function* attributes(
  name: string,
): Iterable<{ path: string; bytes: Uint8Array; lines: readonly string[]; lengthSize: number }> {
  const fixture = new Fixture(name);
  for (const [path, { attributes: lines, messages }] of fixture.objects) {
    if (!lines || /0x0c: \d+ at \d+ shared/.test(messages)) continue;
    for (const bytes of fixture.cut(path, MESSAGE.attribute))
      yield { path, bytes, lines, lengthSize: fixture.superblock.lengthSize };
  }
}

/** What is expected of the attribute of a name, without its creation order, which is not in the message. */
function lineOf(lines: readonly string[], name: string): string | undefined {
  return lines.map((line) => line.replace(/^(.*?) #\d+:/, '$1:')).find((line) => line.startsWith(`${name}:`));
}

describe('attributes of libhdf5', () => {
  test.each(FIXTURES)('%s: are those that h5py shows, and no beginning of one is taken for a whole one', (name) => {
    for (const { path, bytes, lines, lengthSize } of attributes(name)) {
      const { name: attribute, type, space, dataAt } = parse(bytes, lengthSize);
      const line = lineOf(lines, attribute);
      expect(line, `${path} ${attribute}`).toBeDefined();
      if (!isShared(type) && !isShared(space))
        expect(sayAttribute(attribute, -1, type, space, bytes.subarray(dataAt)), path).toBe(line);
      expectNoTruncation(bytes, (cursor) => parseAttribute(cursor, lengthSize));
    }
  });

  test('of all versions are among them', () => {
    const versions = FIXTURES.flatMap((name) => [...attributes(name)].map(({ bytes }) => bytes[0]));
    expect(new Set(versions)).toEqual(new Set([1, 2, 3]));
  });

  test('positions count from where the message begins, wherever that is', () => {
    for (const { bytes } of [...attributes('earliest'), ...attributes('latest')]) {
      const shifted = Uint8Array.of(...new Uint8Array(13), ...bytes);
      expect(parseAttribute(new Cursor(shifted, 0, 13), 8)).toEqual(parse(bytes));
    }
  });

  test('the name can be had without the rest', () => {
    for (const { bytes } of [...attributes('earliest'), ...attributes('latest')])
      expect(attributeName(new Cursor(bytes, 0))).toBe(parse(bytes).name);
  });

  test.each([
    ['earliest', 2],
    ['latest', 3],
  ])('%s: a committed type is pointed to, in version %i', (name, version) => {
    const fixture = new Fixture(name);
    const bytes = fixture
      .cut('/attributes', MESSAGE.attribute)
      .find((each) => parse(each).name === 'committed') as Uint8Array;
    const { type, space, dataAt } = parse(bytes);
    expect(bytes[0]).toBe(version);
    if (!isShared(type) || isShared(space)) throw new Error('the type is not shared');
    const record = parseShared(new Cursor(bytes, 0, type.sharedAt, type.sharedAt + type.sharedSize), fixture.file);
    expect(record).toEqual({ kind: 'object', address: fixture.object('/types/compound').address });
    const lines = fixture.object('/attributes').attributes as string[];
    const value = lineOf(lines, 'committed')?.split(' = ')[1];
    expect(hex(bytes.subarray(dataAt, dataAt + 15))).toBe(value);
  });
});

describe('an attribute of h5log', () => {
  const found = (fixture: Fixture, name: string): Uint8Array =>
    fixture.cut('/attributes', MESSAGE.attribute).find((bytes) => parse(bytes).name === name) as Uint8Array;

  function again(bytes: Uint8Array): Uint8Array {
    const { name, type, space, dataAt } = parse(bytes);
    const data = bytes.slice(dataAt, dataAt + elementCount(space as Dataspace) * (type as FullType).size);
    return encodeAttribute(name, type as FullType, space as Dataspace, data).body;
  }

  test.each(['größe', 'leer ø', 'scalar', 'nothing'])('has the bytes that libhdf5 writes: %s', (name) => {
    const bytes = found(new Fixture('latest'), name);
    const { space, dataAt } = parse(bytes);
    const ours = again(bytes);
    if ((space as Dataspace).kind !== 'simple') return expect(hex(ours)).toBe(hex(bytes));
    // libhdf5 repeats the shape as the maximum of the dataspace; all the rest is the same.
    const oursAt = parse(ours).dataAt;
    const rank = (space as Dataspace & { kind: 'simple' }).shape.length;
    expect(dataAt - oursAt).toBe(8 * rank);
    expect(hex(ours.subarray(oursAt))).toBe(hex(bytes.subarray(dataAt)));
    const spaceAt = oursAt - 4 - 8 * rank;
    expect(hex(ours.subarray(8, spaceAt))).toBe(hex(bytes.subarray(8, spaceAt)));
  });

  const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((text) => !text.includes('\0'));
  const space = fc.constantFrom(SCALAR_SPACE, { kind: 'null' } as Dataspace, simpleSpace([2]), simpleSpace([3, 0, 1]));

  test('is read as it was written', () => {
    fc.assert(
      fc.property(name, anyType, space, (given, dtype, extent) => {
        const data = new Uint8Array(elementCount(extent) * fullType(dtype).size).fill(7);
        const { body, dataAt } = encodeAttribute(given, dtype, extent, data);
        const parsed = parse(body);
        expect(parsed).toMatchObject({ name: given, space: extent, dataAt });
        expect(encodeDatatype(parsed.type as FullType)).toHaveLength(encodeDatatype(dtype).length);
        expect(body.slice(dataAt)).toEqual(data);
        expect(attributeName(new Cursor(body, 0))).toBe(given);
      }),
      { seed: seed('attributes'), numRuns: repeats(2000) },
    );
  });

  test('of the same name, but of another type or shape, is not taken for the one before', () => {
    // What stands before the value is kept by name, because the same attributes are set on thousands of objects.
    const value = new Uint8Array(16);
    for (const [dtype, extent] of [
      ['int32', simpleSpace([4])],
      ['int32', simpleSpace([2, 2])],
      ['float32', simpleSpace([2, 2])],
      ['float64', simpleSpace([2])],
      ['int32', simpleSpace([4])],
    ] as const) {
      const { type, space: parsed } = parse(encodeAttribute('same', dtype, extent, value).body);
      expect(sayType(type as FullType)).toBe(sayType(dtype));
      expect(parsed).toEqual(extent);
    }
  });

  test('of a committed type says where that is', () => {
    const shared = encodeSharedObject(4711);
    const { body, typeAt, dataAt } = encodeTypedAttribute('ä', shared, true, SCALAR_SPACE, Uint8Array.of(1, 2));
    const { type } = parse(body);
    expect(type).toEqual({ sharedAt: typeAt, sharedSize: shared.length });
    expect(body.slice(typeAt, typeAt + shared.length)).toEqual(shared);
    expect([...body.slice(dataAt)]).toEqual([1, 2]);
  });

  test('of a type given as bytes has the bytes that it has otherwise', () => {
    const data = Uint8Array.of(1, 2, 3, 4);
    const { body } = encodeTypedAttribute('n', encodeDatatype('int32'), false, SCALAR_SPACE, data);
    expect(hex(body)).toBe(hex(encodeAttribute('n', 'int32', SCALAR_SPACE, data).body));
  });
});

describe('an attribute that cannot be is refused', () => {
  const { body } = encodeAttribute('name', 'int32', SCALAR_SPACE, new Uint8Array(4));
  const changed = (at: number, value: number) => body.map((byte, i) => (i === at ? value : byte));

  test.each([
    ['of version 0', changed(0, 0)],
    ['of version 4', changed(0, 4)],
    ['with a name longer than itself', changed(3, 0xff)],
    ['with a type longer than itself', changed(5, 0xff)],
    ['with a type shorter than it must be', changed(4, 3)],
    ['with a dataspace longer than itself', changed(7, 0xff)],
    ['with a dataspace shorter than it must be', changed(6, 3)],
    ['with a dataspace of no version', changed(body.length - 8, 0)],
  ])('%s', (_what, bytes) => {
    expectFormat(() => parse(bytes));
  });
});

describe('the attribute info of an object', () => {
  const parseInfo = (bytes: Uint8Array) => parseAttributeInfo(new Cursor(bytes, 0), 8);

  test.each([
    ['/plain', { tracked: false, indexed: false, nextOrder: 0 }],
    ['/ordered', { tracked: true, indexed: false, nextOrder: 16 }],
    ['/indexed', { tracked: true, indexed: true, nextOrder: 16 }],
  ])('%s: has the bytes that libhdf5 writes', (path, info) => {
    const bytes = new Fixture('headers').one(path, MESSAGE.attributeInfo);
    expect(parseInfo(bytes)).toEqual({ ...info, heap: UNDEFINED, names: UNDEFINED });
    expect(hex(encodeAttributeInfo({ ...info, next: info.nextOrder }))).toBe(hex(bytes));
    expectNoTruncation(bytes, (cursor) => parseAttributeInfo(cursor, 8));
    expectFormat(() => parseInfo(Uint8Array.of(1, ...bytes.subarray(1))), 'version 1');
  });

  test('says where the heap and the tree of names are', () => {
    const fixture = new Fixture('dense-attributes');
    const { heap, names, nextOrder } = parseInfo(fixture.one('/g', MESSAGE.attributeInfo));
    expect(String.fromCharCode(...fixture.bytes.subarray(heap, heap + 4))).toBe('FRHP');
    expect(String.fromCharCode(...fixture.bytes.subarray(names, names + 4))).toBe('BTHD');
    expect(nextOrder).toBe(153);
  });
});
