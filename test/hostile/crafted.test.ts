import { afterAll, describe, expect, test } from 'vitest';
import {
  array,
  attribute,
  block,
  Craft,
  collection,
  continuation,
  GROUP,
  HEADER_START,
  hard,
  header,
  INT8,
  INT32,
  message,
  pack,
  REFERENCE,
  rootWith,
  SCALAR,
  STRING,
  sealed,
  simple,
  soft,
  vlen,
} from './craft.ts';
import { Cases, type Ending } from './outcome.ts';

const all = new Cases();
afterAll(() => {
  all.report('crafted files');
});

/** Reads and appends; `ending` is how reading must end. */
function hostile(what: string, ending: Ending, make: () => Uint8Array): void {
  test(`${what}: ${ending}`, () => {
    const bytes = make();
    const before = all.problems.length;
    all.expect(all.run(what, 'crafted', bytes), ending, what);
    all.run(what, 'crafted', bytes, 'append');
    expect(all.problems.slice(before)).toEqual([]);
  });
}

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

describe('datatypes', () => {
  const typed = (type: Uint8Array, data = new Uint8Array(64), space = SCALAR): Uint8Array =>
    rootWith(attribute('a', type, space, data));
  const nested = (depth: number): Uint8Array => (depth === 0 ? INT32 : array(nested(depth - 1), 4, 1));
  const compound = (size: number, count: number, ...fields: Uint8Array[]): Uint8Array =>
    pack([1, 0x36], [3, count], [4, size], ...fields);
  const field = (name: string, offset: number, type: Uint8Array): Uint8Array => pack(name, [1, 0], [1, offset], type);
  hostile('a type nested 1000 deep', 'FORMAT', () => typed(nested(1000)));
  hostile('a type nested 60 deep', 'opened', () => typed(nested(60), new Uint8Array(4)));
  hostile('an enum of 65535 members in a short message', 'FORMAT', () =>
    typed(pack([1, 0x38], [3, 0xffff], [4, 4], INT32, 'a\0')),
  );
  hostile('a compound of 65535 fields in a short message', 'FORMAT', () =>
    typed(compound(4, 0xffff, field('a', 0, INT32))),
  );
  hostile('a compound whose fields overlap', 'FORMAT', () =>
    typed(compound(8, 2, field('a', 0, INT32), field('b', 3, INT32))),
  );
  hostile('a compound whose field lies outside', 'FORMAT', () => typed(compound(8, 1, field('a', 6, INT32))));
  hostile('an array of 2^32 - 1 elements', 'FORMAT', () => typed(array(INT32, 2 ** 32 - 1, 2 ** 32 - 1)));
  hostile('an array of 32 dimensions of 2^32 - 1', 'FORMAT', () =>
    typed(array(INT32, 4, ...new Array<number>(32).fill(2 ** 32 - 1))),
  );
  hostile('an array without elements', 'FORMAT', () => typed(array(INT32, 4, 0)));
  hostile('a number of 2^32 - 1 bytes', 'FORMAT', () => typed(pack([4, 0x10], [4, -1], [2, 0], [2, 32])));
  hostile('a number of no bytes', 'FORMAT', () => typed(pack([4, 0x10], [4, 0], [2, 0], [2, 32])));
  hostile('bits outside the number', 'FORMAT', () => typed(pack([4, 0x10], [4, 4], [2, 30], [2, 8])));
  hostile('a float without a mantissa', 'FORMAT', () =>
    typed(pack([4, 0x11 | (0x20 << 8)], [4, 4], [2, 0], [2, 32], [1, 0], [1, 31], [1, 31], [1, 0], [4, 127])),
  );
  hostile('a float of the largest exponent', 'opened', () =>
    typed(
      pack([4, 0x11 | (0x3f20 << 8)], [4, 64], [2, 0], [2, 512], [1, 0], [1, 255], [1, 255], [1, 255], [4, -1]),
      new Uint8Array(64).fill(0x55),
    ),
  );
  hostile('a class that does not exist', 'FORMAT', () => typed(pack([4, 0x1f], [4, 4])));
  hostile('a VAX number', 'UNSUPPORTED', () =>
    typed(pack([4, 0x31 | (0x61 << 8)], [4, 4], [2, 0], [2, 32], [1, 23], [1, 8], [1, 0], [1, 23], [4, 127])),
  );
  hostile('a string of 2^32 - 1 bytes', 'FORMAT', () => typed(pack([4, 0x13], [4, -1])));
  hostile('an attribute of 2^63 elements', 'FORMAT', () => typed(INT32, new Uint8Array(4), simple(2n ** 63n)));
  hostile('an attribute of 2^52 elements', 'FORMAT', () => typed(INT32, new Uint8Array(4), simple(2 ** 52)));
  hostile('more elements than a number can count', 'FORMAT', () =>
    typed(INT32, new Uint8Array(4), simple(2 ** 40, 2 ** 40)),
  );
  hostile('an attribute of 255 dimensions', 'FORMAT', () =>
    typed(INT32, new Uint8Array(4), pack([1, 2], [1, 255], [1, 0], [1, 1])),
  );
  hostile('an attribute without a name', 'FORMAT', () => rootWith(attribute('', INT32, SCALAR, new Uint8Array(4))));
  hostile('two attributes of the same name', 'FORMAT', () =>
    rootWith(...[1, 2].map((value) => attribute('a', INT32, SCALAR, pack([4, value])))),
  );
  hostile('a type longer than its attribute', 'FORMAT', () =>
    rootWith(message(12, pack([1, 3], [1, 0], [2, 2], [2, 0xffff], [2, 4], [1, 0], 'a\0', INT32, SCALAR))),
  );
});

describe('heaps', () => {
  const id = (length: number, address: number, index = 1): Uint8Array => pack([4, length], [8, address], [4, index]);
  /** An attribute whose heap id is made when the place of the collection is known. */
  const held = (
    type: Uint8Array,
    make: (at: number) => Uint8Array,
    data: (at: number) => Uint8Array,
    space = SCALAR,
  ): Uint8Array => {
    const craft = new Craft();
    const at = craft.put(make(craft.next));
    return craft.done(craft.put(header(GROUP, attribute('a', type, space, data(at)))));
  };
  const text = (): Uint8Array => collection([pack('hello')]);
  hostile('a text of 2^32 - 1 bytes', 'FORMAT', () => held(STRING, text, (at) => id(2 ** 32 - 1, at)));
  hostile('a collection of no bytes', 'FORMAT', () =>
    held(
      STRING,
      () => collection([pack('hello')], 0),
      (at) => id(5, at),
    ),
  );
  hostile('a collection of 2^53 bytes', 'FORMAT', () =>
    held(
      STRING,
      () => collection([pack('hello')], 2 ** 53),
      (at) => id(5, at),
    ),
  );
  hostile('a collection of 2^64 - 1 bytes', 'FORMAT', () =>
    held(
      STRING,
      () => collection([pack('hello')], -1),
      (at) => id(5, at),
    ),
  );
  hostile('an object longer than its collection', 'FORMAT', () =>
    held(
      STRING,
      () => collection([pack('hello')], undefined, [4000]),
      (at) => id(5, at),
    ),
  );
  hostile('an object of 2^64 - 1 bytes', 'FORMAT', () =>
    held(
      STRING,
      () => collection([pack('hello')], undefined, [-1]),
      (at) => id(5, at),
    ),
  );
  hostile('an object that overlaps the next', 'FORMAT', () =>
    held(
      STRING,
      () => collection([pack('hello'), pack('world')], undefined, [20]),
      (at) => id(5, at, 2),
    ),
  );
  hostile('an object that is not there', 'FORMAT', () => held(STRING, text, (at) => id(5, at, 9)));
  hostile('a collection that is none', 'FORMAT', () => held(STRING, text, () => id(5, 8)));
  hostile('a text counted thousands of times', 'FORMAT', () =>
    held(
      STRING,
      () => collection([new Uint8Array(3000).fill(65)]),
      (at) => pack(...Array.from({ length: 3000 }, () => id(3000, at))),
      simple(3000),
    ),
  );
  // Four heap ids that all lead back to the four: read to the end they are 4^40 values.
  const loop = (base: Uint8Array): Uint8Array =>
    Array.from({ length: 40 }).reduce<Uint8Array>((type) => vlen(type), base);
  hostile('a sequence that holds itself', 'FORMAT', () =>
    held(
      loop(INT32),
      (at) => collection([pack(...[1, 2, 3, 4].map(() => id(4, at)))]),
      (at) => id(4, at),
    ),
  );
  hostile('references that hold themselves', 'FORMAT', () =>
    held(
      loop(REFERENCE),
      (at) => collection([pack(...[1, 2, 3, 4].map(() => id(4, at)))]),
      (at) => id(4, at),
    ),
  );
  hostile('a reference to nowhere', 'opened', () => rootWith(attribute('a', REFERENCE, SCALAR, pack([8, 12_345]))));
  hostile('a reference beyond 2^53', 'FORMAT', () => rootWith(attribute('a', REFERENCE, SCALAR, pack([8, 2n ** 60n]))));
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
