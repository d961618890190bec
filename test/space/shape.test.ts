import { describe, expect, test } from 'vitest';
import { checkMaxShape, checkShape, sizeOf, stridesOf } from '../../src/space/shape.ts';

const refused = (message: RegExp) =>
  expect.objectContaining({ code: 'SHAPE', message: expect.stringMatching(message) });

describe('shapes', () => {
  test('from 0 to 32 dimensions are copied', () => {
    const shape = [3, 0, 5];
    expect(checkShape(shape)).toEqual(shape);
    expect(checkShape(shape)).not.toBe(shape);
    expect(checkShape([])).toEqual([]);
    expect(checkShape(new Array(32).fill(1))).toHaveLength(32);
    expect(checkShape(Int32Array.of(2, 3))).toEqual([2, 3]);
    expect(() => checkShape(new Array(33).fill(1))).toThrow(refused(/32/));
  });

  test('hold at most 2^53-1 elements', () => {
    expect(checkShape([2 ** 53 - 1])).toEqual([2 ** 53 - 1]);
    expect(checkShape([0, 2 ** 40, 2 ** 40])).toHaveLength(3);
    expect(() => checkShape([2 ** 27, 2 ** 26])).toThrow(refused(/2\^53-1/));
    expect(() => checkShape([2 ** 53])).toThrow(refused(/dimension 0/));
  });

  test.each([[-1], [1.5], [NaN], ['3'], [null], [undefined], [3n]])('a size of %s is refused', (size) => {
    expect(() => checkShape([2, size as number])).toThrow(refused(/dimension 1/));
  });

  test('are lists', () => {
    for (const bad of [undefined, null, 3, '3'])
      expect(() => checkShape(bad as unknown as number[])).toThrow(refused(/list/));
  });

  test('maxShape allows what it says, null everything', () => {
    expect(checkMaxShape(undefined, [2, 3])).toEqual([2, 3]);
    expect(checkMaxShape([null, 3], [2, 3])).toEqual([null, 3]);
    expect(() => checkMaxShape([null], [2, 3])).toThrow(refused(/1 dimensions/));
    expect(() => checkMaxShape([1, null], [2, 3])).toThrow(refused(/dimension 0 is 2, more than the 1/));
    expect(() => checkMaxShape([-1, null], [2, 3])).toThrow(refused(/dimension 0/));
  });

  test('know their size and strides', () => {
    expect([sizeOf([]), sizeOf([2, 3]), sizeOf([2 ** 600, 2 ** 600, 0])]).toEqual([1, 6, 0]);
    expect([...stridesOf([2, 3, 4])]).toEqual([12, 4, 1]);
    expect([...stridesOf([])]).toEqual([]);
  });
});
