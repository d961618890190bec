import { deflateSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import {
  array,
  attribute,
  block,
  Craft,
  collection,
  continuation,
  GROUP,
  hard,
  header,
  message,
  pack,
  REFERENCE,
  SCALAR,
  simple,
  vlen,
} from './craft.ts';
import { Cases, type Ending } from './outcome.ts';

// Larger files, in which every part is sound but the same bytes are to be read over and over: work and memory would grow
// with the square of the file, or worse.
const all = new Cases();
afterAll(() => {
  all.report('files that multiply the work');
});

function greedy(what: string, endings: { read: Ending; append: Ending }, make: () => Uint8Array): void {
  test(what, () => {
    const bytes = make();
    for (const use of ['read', 'append'] as const)
      all.expect(all.run(what, `${bytes.length} bytes`, bytes, use), endings[use], `${what}, ${use}`);
    expect(all.problems).toEqual([]);
  });
}

const REFUSED = { read: 'FORMAT', append: 'FORMAT' } as const;
const FINE = { read: 'opened', append: 'opened' } as const;

/** An old group's parts: a B-tree of one symbol node with these names, given by their offset in the local heap. */
function oldGroup(craft: Craft, heap: Uint8Array, names: readonly number[], target: number): Uint8Array {
  const data = craft.put(heap);
  const local = craft.put(pack('HEAP', [4, 0], [8, heap.length], [8, -1], [8, data]));
  const nodes: number[] = [];
  for (let i = 0; i < names.length; i += 1000) {
    const some = names.slice(i, i + 1000);
    nodes.push(
      craft.put(
        pack(
          'SNOD',
          [1, 1],
          [1, 0],
          [2, some.length],
          ...some.map((name) => pack([8, name], [8, target], [8, 0], [8, 0], [8, 0])),
        ),
      ),
    );
  }
  const keys = nodes.map((node) => pack([8, 0], [8, node]));
  const tree = craft.put(pack('TREE', [1, 0], [1, 0], [2, nodes.length], [8, -1], [8, -1], ...keys, [8, 0]));
  return message(0x11, pack([8, tree], [8, local]));
}

describe('the work stays in proportion to the file', () => {
  greedy('names that are the ends of one long name', REFUSED, () => {
    const craft = new Craft();
    const empty = craft.put(header(GROUP));
    const heap = new Uint8Array(200_000).fill(0x61);
    heap[heap.length - 1] = 0;
    return craft.done(
      craft.put(
        header(
          oldGroup(
            craft,
            heap,
            Array.from({ length: 10_000 }, (_, i) => i),
            empty,
          ),
        ),
      ),
    );
  });
  greedy('thousands of groups with the same symbol table', REFUSED, () => {
    const craft = new Craft();
    const empty = craft.put(header(GROUP));
    const names = Array.from({ length: 3000 }, (_, i) => i * 8);
    const heap = pack(...names.map((at) => pack(`n${String(at).padStart(6, '0')}`, [1, 0])));
    const table = oldGroup(craft, heap, names, empty);
    const groups = Array.from({ length: 3000 }, (_, i) => hard(`g${i}`, craft.put(header(table))));
    return craft.done(craft.put(header(GROUP, ...groups)));
  });
  greedy('thousands of attributes with one content', { read: 'opened', append: 'FORMAT' }, () => {
    const craft = new Craft();
    const references = pack(...Array.from({ length: 6000 }, () => pack([8, 1])));
    const heap = craft.put(collection([references]));
    const attributes = Array.from({ length: 100 }, (_, i) =>
      attribute(`a${i}`, vlen(REFERENCE), SCALAR, pack([4, 6000], [8, heap], [4, 1])),
    );
    return craft.done(craft.put(header(GROUP, ...attributes)));
  });
  greedy('references in arrays 60 deep', FINE, () => {
    const craft = new Craft();
    let type = REFERENCE;
    for (let i = 0; i < 60; i++) type = array(type, 8, 1);
    return craft.done(craft.put(header(GROUP, attribute('a', type, simple(7000), new Uint8Array(56_000)))));
  });
  greedy('references to thousands of objects', FINE, () => {
    const craft = new Craft();
    const objects = Array.from({ length: 7000 }, () => craft.put(header(GROUP)));
    const links = objects.map((at, i) => hard(`o${i}`, at));
    const value = pack(...objects.map((at) => pack([8, at])));
    return craft.done(craft.put(header(GROUP, attribute('a', REFERENCE, simple(objects.length), value), ...links)));
  });
  greedy('groups 20,000 deep', FINE, () => {
    const craft = new Craft();
    let at = craft.put(header(GROUP));
    for (let i = 0; i < 20_000; i++) at = craft.put(header(GROUP, hard('g', at)));
    return craft.done(at);
  });
  greedy('a chain of 20,000 continuations with messages', FINE, () => {
    const craft = new Craft();
    let [at, size] = [craft.put(block(message(10, pack([2, 0])))), 0];
    size = craft.next - at;
    for (let i = 0; i < 20_000; i++) {
      at = craft.put(block(continuation(at, size), message(10, pack([2, 0]))));
      size = craft.next - at;
    }
    return craft.done(craft.put(header(GROUP, continuation(at, size))));
  });
  greedy('one compressed chunk of references named again and again', { read: 'opened', append: 'FORMAT' }, () => {
    const craft = new Craft();
    const elements = 2 ** 20;
    const chunk = craft.put(deflateSync(new Uint8Array(8 * elements)));
    const size = craft.next - chunk;
    const keys = Array.from({ length: 1000 }, (_, i) => pack([4, size], [4, 0], [8, i * elements], [8, 0], [8, chunk]));
    const tree = craft.put(
      pack('TREE', [1, 1], [1, 0], [2, keys.length], [8, -1], [8, -1], ...keys, [8, 0], [8, 0], [8, 0]),
    );
    const dataset = craft.put(
      header(
        message(1, simple(2 ** 24)),
        message(3, REFERENCE),
        message(8, pack([1, 3], [1, 2], [1, 2], [8, tree], [4, elements], [4, 8])),
        message(11, pack([1, 2], [1, 1], [2, 1], [2, 0], [2, 1], [4, 6])),
      ),
    );
    return craft.done(craft.put(header(GROUP, hard('d', dataset))));
  });
});
