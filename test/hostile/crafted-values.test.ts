import { describe } from 'vitest';
import {
  array,
  attribute,
  Craft,
  collection,
  GROUP,
  header,
  INT32,
  message,
  pack,
  REFERENCE,
  rootWith,
  SCALAR,
  STRING,
  simple,
  vlen,
} from './craft.ts';
import { craftedFiles } from './crafted.ts';

const hostile = craftedFiles('crafted datatypes, attributes and heaps');

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
