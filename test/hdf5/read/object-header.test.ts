import { describe, expect, test } from 'vitest';
import { Cursor } from '../../../src/hdf5/format/cursor.ts';
import { Budget } from '../../../src/hdf5/format/file-bytes.ts';
import { attributeName } from '../../../src/hdf5/messages/attribute.ts';
import * as MESSAGE from '../../../src/hdf5/messages/message-types.ts';
import { type RawHeader, readHeader } from '../../../src/hdf5/read/object-header.ts';
import { expectFormat, FIXTURES, Fixture, FLIPS } from '../fixture.ts';
import { sayHeader } from '../say.ts';

function headerAt(fixture: Fixture, path: string): RawHeader {
  const { file } = fixture;
  return fixture.run(readHeader(file, fixture.object(path).address, new Budget(file)));
}

/** Version 2 says how many hard links there are only when there are several, in a message. */
function linksOf({ referenceCount, messages }: RawHeader): number {
  const message = messages.find(({ type }) => type === MESSAGE.referenceCount);
  return message ? (message.body[1] as number) : referenceCount;
}

describe('object headers of libhdf5', () => {
  test.each(FIXTURES)('%s: chunks, flags and messages are what h5debug shows', (name) => {
    const fixture = new Fixture(name);
    for (const [path, expected] of fixture.objects) {
      const header = headerAt(fixture, path);
      const { base } = fixture.superblock;
      expect(sayHeader(header, linksOf(header), base), path).toEqual({
        header: expected.header,
        messages: expected.messages,
      });
    }
  });

  test('bodies are the bytes at the offsets that are told', () => {
    const fixture = new Fixture('superblock-2');
    for (const [path] of fixture.objects) {
      for (const { body, offset } of headerAt(fixture, path).messages)
        expect(body).toEqual(fixture.bytes.subarray(offset, offset + body.length));
    }
  });

  test('messages know their chunk, chunks the one that points to them', () => {
    const { messages, chunks } = headerAt(new Fixture('headers'), '/plain');
    expect(chunks.length).toBeGreaterThan(2);
    chunks.forEach(({ parent }, i) => {
      expect(parent).toBeLessThanOrEqual(Math.max(0, i - 1));
    });
    for (const { offset, chunk } of messages) {
      const { address, size } = chunks[chunk] as { address: number; size: number };
      expect(offset).toBeGreaterThan(address);
      expect(offset).toBeLessThan(address + size);
    }
  });

  test('the creation order of attributes is that of their names, which were numbered', () => {
    const fixture = new Fixture('headers');
    const attributes = headerAt(fixture, '/ordered').messages.filter(({ type }) => type === MESSAGE.attribute);
    expect(attributes).toHaveLength(12);
    for (const { body, order } of attributes) expect(attributeName(new Cursor(body, 0))).toBe(`attribute ${order}`);
    for (const { order } of headerAt(fixture, '/plain').messages) expect(order).toBe(0);
  });

  test('times and phase change values are kept as they are', () => {
    const fixture = new Fixture('headers');
    const lengths = ['/plain', '/timed', '/ordered', '/indexed', '/type'].map(
      (path) => headerAt(fixture, path).extras.length,
    );
    // Four times of four bytes, then two phase change values of two.
    expect(lengths).toEqual([4, 20, 4, 20, 16]);
    expect([...headerAt(fixture, '/plain').extras]).toEqual([100, 0, 0, 0]);
  });
});

describe('a damaged object header is refused', () => {
  test.each([
    ['headers', '/plain'],
    ['headers', '/indexed'],
    ['short-addresses', '/g'],
  ])('%s %s: version 2, whichever byte of whichever chunk changes', (name, path) => {
    const fixture = new Fixture(name);
    for (const { address, size } of headerAt(fixture, path).chunks) {
      for (let at = address; at < address + size; at++) {
        const flip = FLIPS[at % FLIPS.length] as number;
        const damaged = fixture.damaged((bytes) => {
          bytes[at] = (bytes[at] as number) ^ flip;
        });
        expectFormat(() => headerAt(damaged, path), `byte ${at} xor ${flip}`);
      }
    }
  });

  test('but not version 1 with more messages than it announces: libhdf5 reads them all', () => {
    const fixture = new Fixture('earliest');
    const { address } = fixture.object('/layouts/filtered');
    const { messages } = headerAt(fixture, '/layouts/filtered');
    const damaged = fixture.damaged((bytes) => {
      bytes[address + 2] = 3;
    });
    expect(headerAt(damaged, '/layouts/filtered').messages).toHaveLength(messages.length);
  });

  test('version 1: a message that is longer than its chunk', () => {
    const fixture = new Fixture('earliest');
    const { address } = fixture.object('/layouts/filtered');
    const damaged = fixture.damaged((bytes) => {
      bytes[address + 16 + 3] = 1; // the first message has 256 bytes more
    });
    expectFormat(() => headerAt(damaged, '/layouts/filtered'));
  });

  test('version 1: a continuation that leads to a chunk that was read already', () => {
    const fixture = new Fixture('releases/mergemsg');
    const { chunks } = headerAt(fixture, '/grp1');
    const [first, second, third] = chunks.map(({ address }) => address) as [number, number, number];
    // The message that points to the third chunk is made to point to the second.
    const at = find(fixture.bytes, third, [first, second]);
    const damaged = fixture.damaged((bytes) => {
      new DataView(bytes.buffer).setBigUint64(at, BigInt(second), true);
    });
    expectFormat(() => headerAt(damaged, '/grp1'));
  });

  test('a version that nobody knows, and no header at all', () => {
    const fixture = new Fixture('earliest');
    for (const version of [0, 2, 3, 0x4f]) {
      const damaged = fixture.damaged((bytes) => {
        bytes[fixture.object('/types').address] = version;
      });
      expectFormat(() => headerAt(damaged, '/types'), `version ${version}`);
    }
    const { file } = fixture;
    for (const address of [-1, file.end, file.end - 3, 2 ** 50])
      expectFormat(() => fixture.run(readHeader(file, address, new Budget(file))), `at ${address}`);
  });

  test('one that is read so often that it would fill the file', () => {
    const fixture = new Fixture('headers');
    const budget = new Budget(fixture.file);
    const read = () => fixture.run(readHeader(fixture.file, fixture.object('/plain').address, budget));
    read();
    expectFormat(() => {
      for (let i = 0; i < 100; i++) read();
    });
  });
});

/** Where a chunk's messages hold a number of eight bytes. */
function find(bytes: Uint8Array, value: number, starts: readonly number[]): number {
  const view = new DataView(bytes.buffer);
  for (const start of starts)
    for (let at = start; at < start + 200; at += 8) if (view.getBigUint64(at, true) === BigInt(value)) return at;
  throw new Error(`${value} not found`);
}
