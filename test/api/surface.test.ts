import { File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';

describe('what users hold', () => {
  const file = File.createSync(memoryStorage());
  const group = file.createGroup('g');
  const dataset = group.createDataset('x', { dtype: 'int32', shape: [2] });

  test.each([
    ['a file', file, ['attributes', 'comm', 'kind', 'path']],
    ['a group', group, ['attributes', 'kind', 'path']],
    ['a dataset', dataset, ['attributes', 'file', 'kind', 'path']],
    ['attributes', dataset.attributes, []],
  ])('%s has no field that leads to internals', (_, object, fields) => {
    expect(Object.getOwnPropertyNames(object).sort()).toEqual(fields);
    for (const name of ['session', 'node', 'structure', 'storage', 'log', 'mustBe']) expect(name in object).toBe(false);
  });
});
