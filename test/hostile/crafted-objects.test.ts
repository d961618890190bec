import { describe } from 'vitest';
import {
  attribute,
  block,
  Craft,
  continuation,
  GROUP,
  HEADER_START,
  hard,
  header,
  INT8,
  INT32,
  message,
  pack,
  rootWith,
  SCALAR,
  sealed,
  soft,
} from './craft.ts';
import { craftedFiles } from './crafted.ts';

const hostile = craftedFiles('crafted headers, links and shared messages');

describe('headers', () => {
  hostile('a header that continues into itself', 'FORMAT', () => {
    const craft = new Craft();
    const size = header(GROUP, continuation(0, 0)).length;
    return craft.done(craft.put(header(GROUP, continuation(craft.next, size))));
  });
  hostile('continuations in a circle', 'FORMAT', () => {
    const craft = new Craft();
    const size = block(continuation(0, 0)).length;
    const first = craft.reserve(size);
    const second = craft.put(block(continuation(first, size)));
    craft.write(first, block(continuation(second, size)));
    return craft.done(craft.put(header(GROUP, continuation(first, size))));
  });
  hostile('continuations that overlap', 'FORMAT', () => {
    const craft = new Craft();
    // Each block holds the next one whole: to read them all is to read half the square of the file.
    let outer = block(message(0, new Uint8Array(8)));
    for (let i = 100; i > 0; i--) outer = block(message(0, outer), continuation(craft.next + 8 * i, outer.length));
    craft.put(outer);
    return craft.done(craft.put(header(GROUP, continuation(48, outer.length))));
  });
  hostile('a long chain of continuations', 'opened', () => {
    const craft = new Craft();
    let at = craft.put(block(attribute('last', INT32, SCALAR, new Uint8Array(4))));
    let size = craft.next - at;
    for (let i = 0; i < 5000; i++) {
      at = craft.put(block(continuation(at, size)));
      size = craft.next - at;
    }
    return craft.done(craft.put(header(GROUP, continuation(at, size))));
  });
  hostile('a continuation of 2^53 bytes', 'FORMAT', () => rootWith(continuation(48, 2 ** 53)));
  hostile('a message longer than its header', 'FORMAT', () => rootWith(message(12, new Uint8Array(4), 0, 0xffff)));
  hostile('a root at 0', 'FORMAT', () => new Craft().done(0));
  hostile('a root behind the end', 'FORMAT', () => new Craft().done(10_000));
  hostile('a root of no address', 'FORMAT', () => new Craft().done(-1));
  hostile('a root in the middle of data', 'FORMAT', () => {
    const craft = new Craft();
    return craft.done(craft.put(new Uint8Array(600).fill(1)));
  });
  hostile('an extension that is garbage', 'FORMAT', () => {
    const craft = new Craft();
    const root = craft.put(header(GROUP));
    return craft.done(root, craft.put(new Uint8Array(64).fill(0xee)));
  });
  hostile('a root that is a dataset', 'FORMAT', () => {
    const craft = new Craft();
    return craft.done(craft.put(header(message(1, SCALAR), message(3, INT32))));
  });
});

describe('links', () => {
  hostile('a circle of groups', 'opened', () => {
    const craft = new Craft();
    const size = header(GROUP, hard('a', 0), hard('b', 0)).length;
    const first = craft.reserve(size);
    const second = craft.put(header(GROUP, hard('a', first), hard('b', craft.next)));
    craft.write(first, header(GROUP, hard('a', second), hard('b', first)));
    return craft.done(first);
  });
  hostile('soft links in a circle', 'opened', () =>
    rootWith(soft('a', '/b'), soft('b', '/a'), soft('c', 'c/c/c'), soft('d', '.')),
  );
  hostile('soft links that multiply', 'opened', () => {
    // Each stands for ten of the next: 10^40 steps.
    const links = Array.from({ length: 40 }, (_, i) => soft(`l${i}`, `/l${i + 1}`.repeat(10)));
    return rootWith(...links, soft('l40', '/'));
  });
  hostile('two links of the same name', 'FORMAT', () => rootWith(soft('a', '/b'), soft('a', '/c')));
  hostile('a link without a name', 'FORMAT', () => rootWith(soft('', '/b')));
  hostile('a name with a slash', 'opened', () => rootWith(soft('a/b', '/c')));
  hostile('a name with a NUL', 'FORMAT', () => rootWith(soft('a\0b', '/c')));
  hostile('a name that is not UTF-8', 'opened', () => rootWith(hard(Uint8Array.of(0xff, 0xfe, 0x80), 48)));
  hostile('a link to nowhere', 'FORMAT', () => rootWith(hard('a', -1)));
  hostile('a link behind the end', 'FORMAT', () => rootWith(hard('a', 2 ** 40)));
  hostile('an external link without an end', 'FORMAT', () =>
    rootWith(message(6, pack([1, 1], [1, 8], [1, 64], [1, 1], 'x', [2, 3], 'abc'))),
  );
  hostile('a name of 2^64 - 1 bytes', 'FORMAT', () =>
    rootWith(message(6, pack([1, 1], [1, 3], [8, -1], 'x', [8, 48]))),
  );
  hostile('a link with the last creation order', 'FORMAT', () =>
    rootWith(message(6, pack([1, 1], [1, 4], [8, 2 ** 53 - 1], [1, 1], 'x', [8, 48]))),
  );
  hostile('many headers in the same bytes', 'FORMAT', () => {
    const craft = new Craft();
    // Each object's header lies inside the next one's.
    let outer = header(GROUP);
    for (let i = 0; i < 200; i++) outer = header(GROUP, message(0, outer));
    const step = HEADER_START + GROUP.length + 4;
    const links = Array.from({ length: 201 }, (_, i) => hard(`o${i}`, craft.next + i * step));
    craft.put(outer);
    return craft.done(craft.put(header(GROUP, ...links)));
  });
});

describe('shared messages', () => {
  const shared = (address: number): Uint8Array => pack([1, 3], [1, 2], [8, address]);
  hostile('a type that shares itself', 'FORMAT', () => {
    const craft = new Craft();
    const type = craft.put(header(message(3, shared(craft.next), 2)));
    return craft.done(craft.put(header(GROUP, attribute('a', shared(type), SCALAR, new Uint8Array(4), 1))));
  });
  hostile('types that share one another, 5000 deep', 'FORMAT', () => {
    const craft = new Craft();
    let at = craft.put(header(message(3, INT32)));
    for (let i = 0; i < 5000; i++) at = craft.put(header(message(3, shared(at), 2)));
    return craft.done(craft.put(header(GROUP, attribute('a', shared(at), SCALAR, new Uint8Array(4), 1))));
  });
  hostile('a shared message without a table', 'FORMAT', () =>
    rootWith(attribute('a', pack([1, 3], [1, 1], [8, 0]), SCALAR, new Uint8Array(4), 1)),
  );
  hostile('a shared table of 255 indexes', 'FORMAT', () => {
    const craft = new Craft();
    const table = craft.put(sealed(pack('SMTB')));
    const root = craft.put(header(GROUP));
    return craft.done(root, craft.put(header(message(15, pack([1, 0], [8, table], [1, 255])))));
  });
  hostile('an attribute type of one byte', 'FORMAT', () =>
    rootWith(attribute('a', INT8.subarray(0, 1), SCALAR, new Uint8Array(1))),
  );
});
