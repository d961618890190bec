import { describe, expect, test } from 'vitest';
import { Cursor } from '../../../src/hdf5/format/cursor.ts';
import { Budget } from '../../../src/hdf5/format/file-bytes.ts';
import { parseAttribute } from '../../../src/hdf5/messages/attribute.ts';
import { parseDataspace } from '../../../src/hdf5/messages/dataspace.ts';
import { parseDatatype } from '../../../src/hdf5/messages/datatype.ts';
import { parseFill } from '../../../src/hdf5/messages/fill-value.ts';
import { parseFilters } from '../../../src/hdf5/messages/filter-pipeline.ts';
import * as MESSAGE from '../../../src/hdf5/messages/message-types.ts';
import { readHeader } from '../../../src/hdf5/read/object-header.ts';
import {
  encodeSharedObject,
  parseShared,
  SHARED_ADDRESS_AT,
  SharedTable,
} from '../../../src/hdf5/read/shared-messages.ts';
import { expectFormat, expectNoTruncation, Fixture, FLIPS } from '../fixture.ts';
import { sayFill, saySpace, sayType } from '../say.ts';

describe('a record that points to a committed datatype', () => {
  test.each([
    ['releases/tcompound', '/group1/dset2', '/type1', 1],
    ['releases/tcompound', '/group1/dset3', '/type2', 1],
    ['releases/tcompound', '/group1/dset4', '/group1/type3', 1],
  ])('%s %s: leads to %s, in version %i', (name, path, type, version) => {
    const fixture = new Fixture(name);
    const bytes = fixture.one(path, MESSAGE.datatype);
    expect(bytes[0]).toBe(version);
    const record = parseShared(new Cursor(bytes, 0), fixture.file);
    expect(record).toEqual({ kind: 'object', address: fixture.object(type).address });
    expectNoTruncation(bytes, (cursor) => parseShared(cursor, fixture.file));
  });

  test('of h5log says where its address is, so that it can be patched', () => {
    const { file } = new Fixture('latest');
    const bytes = encodeSharedObject(4711);
    expect(parseShared(new Cursor(bytes, 0), file)).toEqual({ kind: 'object', address: 4711 });
    expect(new Cursor(bytes, 0, SHARED_ADDRESS_AT).u64()).toBe(4711);
    expect(bytes).toHaveLength(SHARED_ADDRESS_AT + 8);
  });

  test.each([0, 4, 255])('of version %i is refused', (version) => {
    const { file } = new Fixture('latest');
    expectFormat(() => parseShared(new Cursor(Uint8Array.of(version, 2, ...new Array(20).fill(0)), 0), file));
  });
});

describe("a file's table of shared messages", () => {
  const fixture = new Fixture('shared');
  const { file, superblock } = fixture;

  /** The message of the superblock's extension that leads to the table. */
  function tableMessage(of: Fixture): Cursor {
    const { messages } = of.run(readHeader(of.file, superblock.extension, new Budget(of.file)));
    const found = messages.find(({ type }) => type === MESSAGE.sharedTable);
    if (!found) throw new Error('no table');
    return new Cursor(found.body, found.offset);
  }

  const open = (of: Fixture): SharedTable => of.run(SharedTable.open(of.file, tableMessage(of)));

  /** What a message says, whether it lies in the header or in the table's heap. */
  function content(of: Fixture, path: string, type: number, table = open(of)): Cursor[] {
    const { messages } = of.object(path);
    const name = `0x${type.toString(16).padStart(2, '0')}`;
    const shared = messages
      .split(', ')
      .filter((each) => each.startsWith(`${name}:`))
      .map((each) => each.endsWith('shared'));
    return of.cut(path, type).map((bytes, i) => {
      if (!shared[i]) return new Cursor(bytes, 0);
      const record = parseShared(new Cursor(bytes, 0), of.file);
      if (record.kind !== 'heap') throw new Error('not in the heap');
      return new Cursor(of.run(table.content(type, record.id)), 0);
    });
  }

  test.each(['/d0', '/d1', '/d2', '/d3', '/d4'])(
    '%s: dataspace, type, fill value and filters are found in it',
    (path) => {
      const expected = fixture.object(path);
      const [space, type, fill, filters] = [MESSAGE.dataspace, MESSAGE.datatype, MESSAGE.fill, MESSAGE.filters].map(
        (each) => content(fixture, path, each)[0] as Cursor,
      ) as [Cursor, Cursor, Cursor, Cursor];
      expect(saySpace(parseDataspace(space, 8))).toBe(expected.space);
      expect(sayType(parseDatatype(type))).toBe(expected.type);
      expect(sayFill(parseFill(fill))).toBe(expected.fill);
      expect(parseFilters(filters)).toMatchObject([{ id: 1, values: [4] }]);
    },
  );

  test('attributes are found in it, and so are the types and dataspaces that they share', () => {
    const names = content(fixture, '/d3', MESSAGE.attribute).map((each) => parseAttribute(each, 8).name);
    expect(names.sort()).toEqual(['own', 'point', 'same', 'scalar']);
    const scalar = content(fixture, '/d3', MESSAGE.attribute).find(
      (each) => parseAttribute(each, 8).name === 'scalar',
    ) as Cursor;
    const { space } = parseAttribute(new Cursor(scalar.bytes, 0), 8) as {
      space: { sharedAt: number; sharedSize: number };
    };
    const part = new Cursor(scalar.bytes, 0, space.sharedAt, space.sharedAt + space.sharedSize);
    const record = parseShared(part, file);
    if (record.kind !== 'heap') throw new Error('not in the heap');
    // A scalar dataspace is four bytes: so few that the heap id holds them itself.
    expect(((record.id.bytes[record.id.at] as number) >> 4) & 3).toBe(2);
    expect(
      saySpace(parseDataspace(new Cursor(fixture.run(open(fixture).content(MESSAGE.dataspace, record.id)), 0), 8)),
    ).toBe('scalar');
  });

  test('the same message is the same bytes in memory, however often it is used', () => {
    const table = open(fixture);
    const [first] = content(fixture, '/d2', MESSAGE.datatype, table);
    const [second] = content(fixture, '/d3', MESSAGE.datatype, table);
    expect(first?.bytes).toBe(second?.bytes);
  });

  test('messages of a type that is never shared are not in it', () => {
    const id = new Cursor(new Uint8Array(8), 0);
    expectFormat(() => fixture.run(open(fixture).content(MESSAGE.link, id)));
  });

  test('is refused when any byte of it changes', () => {
    const address = tableMessage(fixture);
    address.skip(1);
    const at = address.address(8);
    const count = address.u8();
    expect(count).toBe(3);
    const size = 4 + count * (14 + 16) + 4;
    for (let i = at; i < at + size; i++) {
      for (const flip of FLIPS) {
        const damaged = fixture.damaged((bytes) => {
          bytes[i] = (bytes[i] as number) ^ flip;
        });
        expectFormat(() => open(damaged), `byte ${i - at} xor ${flip}`);
      }
    }
  });
});
