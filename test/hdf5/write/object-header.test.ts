import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Budget, FileBytes } from '../../../src/hdf5/format/file-bytes.ts';
import {
  type ContinuationBlock,
  HeaderMessage,
  ObjectNode,
  removeMessage,
} from '../../../src/hdf5/graph/object-node.ts';
import * as MESSAGE from '../../../src/hdf5/messages/message-types.ts';
import { type RawHeader, readHeader } from '../../../src/hdf5/read/object-header.ts';
import {
  blockSize,
  encodeBlock,
  encodeFirstChunk,
  firstChunkSize,
  type GeneratedMessage,
  generatedBytes,
  HeaderWriter,
  packHeader,
  unwrittenBlocks,
} from '../../../src/hdf5/write/object-header.ts';
import { repeats, seed } from '../../seed.ts';
import { Fixture, hex, runOn } from '../fixture.ts';

/** One object's header in a file of its own, which only grows: each commit writes what changed behind the last one. */
class HeaderFile {
  readonly node: ObjectNode;
  readonly #generated: readonly GeneratedMessage[];
  #bytes = new Uint8Array(64);
  #commit = 0;
  /** Bytes that the last commit wrote. */
  written = 0;

  constructor(node: ObjectNode, generated: readonly GeneratedMessage[] = []) {
    this.node = node;
    this.#generated = generated;
  }

  add(type: number, bytes: Uint8Array, flags = 0, order = 0): HeaderMessage {
    const message = new HeaderMessage(this.node, type, flags, order, bytes, true);
    message.changed = this.#commit;
    this.node.firstChunk.add(message);
    return message;
  }

  commit(): void {
    const { node } = this;
    const generatedSize = generatedBytes(node, this.#generated);
    packHeader(node, generatedSize);
    const start = this.#bytes.length;
    let end = start;
    const blocks: ContinuationBlock[] = [...unwrittenBlocks(node.blocks)];
    for (const block of blocks) {
      block.address = end;
      block.size = blockSize(node, block);
      end += block.size;
    }
    node.address = end;
    const size = firstChunkSize(node, generatedSize);
    const grown = new Uint8Array(end + size);
    grown.set(this.#bytes);
    for (const block of blocks) {
      encodeBlock(node, block, new HeaderWriter(grown), block.address);
      block.written = true;
    }
    encodeFirstChunk(node, this.#generated, new HeaderWriter(grown), end, grown.length - end);
    this.#bytes = grown;
    this.#commit++;
    this.written = grown.length - start;
  }

  read(): RawHeader {
    const file = new FileBytes(0, this.#bytes.length);
    return runOn(this.#bytes, readHeader(file, this.node.address, new Budget(file)));
  }
}

const say = ({ type, flags, order }: { type: number; flags: number; order: number }, bytes: Uint8Array): string =>
  `${type} ${flags} ${order} ${hex(bytes)}`;
const sayRead = ({ messages }: RawHeader): string[] => messages.map((message) => say(message, message.body)).sort();

describe('an object header of h5log', () => {
  test('is read as it was written, whatever was added, changed and removed before', () => {
    const operation = fc.oneof(
      { weight: 6, arbitrary: fc.record({ op: fc.constant('add' as const), size: fc.integer({ min: 0, max: 400 }) }) },
      { weight: 2, arbitrary: fc.record({ op: fc.constant('remove' as const), which: fc.nat(1000) }) },
      { weight: 1, arbitrary: fc.record({ op: fc.constant('commit' as const) }) },
    );
    const given = fc.record({
      orders: fc.boolean(),
      generated: fc.boolean(),
      operations: fc.array(operation, { minLength: 1, maxLength: 120 }),
    });
    fc.assert(
      fc.property(given, ({ orders, generated, operations }) => {
        const node = new ObjectNode('group');
        node.flags = orders ? 0x0c : 0;
        const made = generated ? [{ type: MESSAGE.linkInfo, bytes: new Uint8Array(18).fill(7) }] : [];
        const file = new HeaderFile(node, made);
        const model: HeaderMessage[] = [];
        let number = 0;
        const check = (): void => {
          file.commit();
          const meant = model.map((message) => say(message, message.bytes));
          for (const message of made) meant.push(say({ type: message.type, flags: 0, order: 0 }, message.bytes));
          expect(sayRead(file.read())).toEqual(meant.sort());
        };
        for (const step of operations) {
          if (step.op === 'add') {
            const body = new Uint8Array(step.size).fill(number);
            model.push(file.add(MESSAGE.attribute, body, number % 2, orders ? number % 65536 : 0));
            number++;
          } else if (step.op === 'commit') check();
          else if (model.length > 0) {
            const [gone] = model.splice(step.which % model.length, 1);
            removeMessage(gone as HeaderMessage);
          }
        }
        check();
      }),
      { seed: seed('object headers'), numRuns: repeats(500) },
    );
  });

  test('of a few messages is in one piece', () => {
    const file = new HeaderFile(new ObjectNode('group'));
    for (let i = 0; i < 20; i++) file.add(MESSAGE.attribute, new Uint8Array(90));
    file.commit();
    expect(file.read().chunks).toHaveLength(1);
  });

  test('of 10,000 messages costs little to change', () => {
    const file = new HeaderFile(new ObjectNode('group'));
    const messages = Array.from({ length: 10_000 }, (_, i) => file.add(MESSAGE.link, new Uint8Array(30).fill(i), 0, 0));
    file.commit();
    const all = file.written;
    expect(all).toBeGreaterThan(300_000);
    for (let i = 0; i < 50; i++) {
      file.add(MESSAGE.link, new Uint8Array(30));
      file.commit();
      expect(file.written).toBeLessThan(4096);
    }
    removeMessage(messages[5000] as HeaderMessage);
    file.commit();
    // The block that held it, and those that lead to that block.
    expect(file.written).toBeLessThan(8192);
    expect(file.read().messages).toHaveLength(10_049);
    expect(longestWay(file.read())).toBeLessThan(6);
  });

  test.each([1000, 3000, 10_000, 20_000])('of %i messages points to at most eight blocks when it is new', (count) => {
    const node = new ObjectNode('group');
    const file = new HeaderFile(node);
    for (let i = 0; i < count; i++) file.add(MESSAGE.link, new Uint8Array(30).fill(i), 0, 0);
    file.commit();
    expect(node.blocks.length).toBeLessThanOrEqual(8);
    expect(file.read().messages).toHaveLength(count);
    expect(longestWay(file.read())).toBeLessThan(6);
  });

  test('gives the room of removed messages back', () => {
    const file = new HeaderFile(new ObjectNode('group'));
    const messages = Array.from({ length: 1000 }, () => file.add(MESSAGE.link, new Uint8Array(30)));
    file.commit();
    for (const message of messages.slice(5)) removeMessage(message);
    file.commit();
    const { chunks, messages: left } = file.read();
    expect(left).toHaveLength(5);
    expect(chunks).toHaveLength(1);
  });

  test.each([
    [0, 1],
    [255 - 4, 1],
    [256 - 4, 2],
    [1500, 2],
  ])('says the size of %i bytes of messages in %i bytes', (size, width) => {
    const node = new ObjectNode('datatype');
    node.flags = 0;
    const file = new HeaderFile(node);
    if (size > 0) file.add(MESSAGE.datatype, new Uint8Array(size));
    file.commit();
    const { chunks, messages } = file.read();
    expect(chunks[0]?.size).toBe(4 + 1 + 1 + width + (size > 0 ? 4 + size : 0) + 4);
    expect(messages.map(({ body }) => body.length)).toEqual(size > 0 ? [size] : []);
  });

  test('keeps times and phase change values', () => {
    const node = new ObjectNode('group');
    node.flags = 0x30;
    node.extras = Uint8Array.from({ length: 20 }, (_, i) => i);
    const file = new HeaderFile(node);
    file.add(MESSAGE.link, new Uint8Array(10));
    file.commit();
    expect(file.read()).toMatchObject({ flags: 0x30, extras: node.extras });
  });

  test.each([
    ['headers', '/plain'],
    ['headers', '/indexed'],
    ['latest', '/types/integer I8LE'],
    ['latest', '/ordered'],
  ])('has the bytes that libhdf5 writes for the same messages, but for its room for more: %s %s', (name, path) => {
    const fixture = new Fixture(name);
    const { file } = fixture;
    const theirs = fixture.run(readHeader(file, fixture.object(path).address, new Budget(file)));
    const first = theirs.messages.filter(({ chunk }) => chunk === 0);
    const node = new ObjectNode('group');
    node.flags = theirs.flags & 0x3c;
    node.extras = theirs.extras;
    for (const { type, flags, order, body } of first)
      node.firstChunk.add(new HeaderMessage(node, type, flags, order, body, true));
    const ours = new Uint8Array(firstChunkSize(node, 0));
    encodeFirstChunk(node, [], new HeaderWriter(ours), 0, ours.length);
    // Signature, version, flags and times; then the size; then each message with its head.
    const start = 6 + node.extras.length;
    expect(hex(ours.subarray(0, 5))).toBe(hex(fixture.bytes.subarray(theirs.address, theirs.address + 5)));
    expect(hex(ours.subarray(6, start))).toBe(hex(fixture.bytes.subarray(theirs.address + 6, theirs.address + start)));
    const head = node.flags & 4 ? 6 : 4;
    let at = start + 1;
    for (const { offset, body } of first) {
      const size = head + body.length;
      expect(hex(ours.subarray(at, at + size))).toBe(hex(fixture.bytes.subarray(offset - head, offset + body.length)));
      at += size;
    }
    expect(ours).toHaveLength(at + 4);
  });
});

/** How many continuations lead to a chunk, at most. */
function longestWay({ chunks }: RawHeader): number {
  const ways: number[] = [];
  chunks.forEach(({ parent }, i) => {
    ways.push(i === 0 ? 0 : (ways[parent] as number) + 1);
  });
  return Math.max(...ways);
}
