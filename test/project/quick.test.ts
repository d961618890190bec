import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../../scripts/root.ts';
import { LEFT_OUT } from '../quick.ts';

test('what npm run test:quick leaves out exists', () => {
  const paths = LEFT_OUT.flatMap((pattern) => {
    const [, before = pattern, names = '', after = ''] = /^(.*)\{(.*)\}(.*)$/.exec(pattern) ?? [];
    return names.split(',').map((name) => `${before}${name}${after}`);
  });
  const missing = paths.filter((path) => {
    const real = path.endsWith('/**') ? path.slice(0, -3) : `${path}.test.ts`;
    return !existsSync(join(root, 'test', real));
  });
  expect(missing).toEqual([]);
});
