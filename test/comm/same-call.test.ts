import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { describeCall, digestOf as digestOfText, exactTextOf, textOfCall } from '../../src/comm/same-call.ts';
import { runs } from '../seed.ts';

const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(null, undefined, true, false, 0, -0, Number.NaN, 1n, ''),
    fc.double(),
    fc.integer(),
    fc.bigInt(),
    fc.string(),
    fc.float64Array({ maxLength: 4 }),
    fc.uint8Array({ maxLength: 4 }),
    fc.array(tie('any'), { maxLength: 4 }),
    fc.dictionary(fc.string({ maxLength: 3 }), tie('any'), { maxKeys: 4 }),
  ),
})).any;
const details = fc.dictionary(fc.string({ maxLength: 3 }), value, { maxKeys: 4, noNullPrototype: true });

/** The same value with the entries of all objects in the order of their names: texts of it can be compared. */
function inOrder(item: unknown): unknown {
  if (Array.isArray(item)) return item.map(inOrder);
  if (typeof item !== 'object' || item === null || ArrayBuffer.isView(item)) return item;
  return Object.fromEntries(
    Object.entries(item)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, one]) => [name, inOrder(one)]),
  );
}

const digestOf = (call: string, given: Readonly<Record<string, unknown>>) => digestOfText(exactTextOf(call, given));

const text = (given: Readonly<Record<string, unknown>>): string =>
  JSON.stringify(describeCall('call', inOrder(given) as Record<string, unknown>));

const pair = fc.oneof(
  fc.tuple(details, details),
  fc.tuple(details, details).map(
    ([a, b]) =>
      [
        { ...a, ...b },
        { ...b, ...a },
      ] as const,
  ),
  details.map((one) => [one, structuredClone(one)] as const),
);

const alike: readonly unknown[] = [
  0,
  -0,
  '0',
  0n,
  [0],
  [[0]],
  null,
  false,
  '',
  [],
  {},
  [null],
  Number.NaN,
  'NaN',
  new Float32Array(1),
  new Int32Array(1),
  new Uint8Array(4),
  new Float64Array(9),
  new Float32Array(18),
  new BigInt64Array(1),
  [0, 0, 0, 0],
  { 0: 0 },
  { a: 1, b: 2 },
  { a: 2, b: 1 },
  { a: { b: 1 } },
  { a: new Float32Array(1), b: { 0: 0 } },
  { a: { 0: 0 }, b: new Float32Array(1) },
  [null, new Float32Array(1), { 0: 0 }],
  [null, { 0: 0 }, new Float32Array(1)],
  new DataView(new ArrayBuffer(1)),
  new DataView(Uint8Array.of(1).buffer),
  'ab',
  ['a', 'b'],
  ['b', 'a'],
];

describe('the text of a call', () => {
  test('differs for calls that are not described alike, and is the same for the same call', () => {
    fc.assert(
      fc.property(pair, ([a, b]) => {
        if (textOfCall('call', a) === textOfCall('call', b)) expect(text(a)).toBe(text(b));
        expect(textOfCall('call', a)).toBe(textOfCall('call', structuredClone(a)));
      }),
      runs('texts of calls', 100_000),
    );
  });

  test('tells apart what looks alike', () => {
    expect(new Set(alike.map((one) => textOfCall('call', { one }))).size).toBe(alike.length);
    expect(textOfCall('call', {})).not.toBe(textOfCall('other', {}));
    const view = new Float32Array(1);
    const hole = new Array<unknown>(4);
    const same = () => 1;
    const inPlaces: readonly unknown[] = [
      Object.assign([...hole], { 0: null, 2: view, 3: { 0: 0 } }),
      Object.assign([...hole], { 2: { 0: 0 }, 3: view }),
      { a: { 0: 0 }, b: view },
      { f: same, a: view, b: { 0: 0 } },
    ];
    expect(new Set(inPlaces.map((one) => textOfCall('call', { one }))).size).toBe(inPlaces.length);
  });
});

describe('the digest of a call', () => {
  test('is the same for calls that are described alike, and another for others', () => {
    fc.assert(
      fc.property(pair, ([a, b]) => {
        expect(String(digestOf('call', a)) === String(digestOf('call', b))).toBe(text(a) === text(b));
      }),
      runs('digests of calls', 100_000),
    );
  });

  test('tells apart what looks alike', () => {
    expect(new Set(alike.map((one) => String(digestOf('call', { one })))).size).toBe(alike.length);
    expect(digestOf('call', { x: 1 })).not.toEqual(digestOf('call', { y: 1 }));
    expect(digestOf('call', {})).not.toEqual(digestOf('other', {}));
  });

  test('does not depend on the order of entries', () => {
    expect(digestOf('call', { a: 1, b: { c: 1, d: 2 } })).toEqual(digestOf('call', { b: { d: 2, c: 1 }, a: 1 }));
  });

  test('does not count what is undefined or a function', () => {
    expect(digestOf('call', { a: undefined, b: () => 1 })).toEqual(digestOf('call', {}));
  });
});
