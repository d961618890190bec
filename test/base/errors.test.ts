import { describe, expect, test } from 'vitest';
import { addContext, atOffset, formatError, H5LogError, inFile, inObject } from '../../src/base/errors.ts';

describe('context of an error', () => {
  const first = new H5LogError('FORMAT', 'a bad header', { offset: 96 });

  test('goes before the message and into the details; the rest stays', () => {
    const error = inFile(inObject(first, '/a/b'), 'run.h5') as H5LogError;
    expect(error.message).toBe('run.h5: /a/b: a bad header');
    expect(error).toMatchObject({ code: 'FORMAT', file: 'run.h5', object: '/a/b', offset: 96 });
    expect('rank' in error).toBe(false);
  });

  test('leads to the first error, or to what the system said', () => {
    expect((inFile(inObject(first, '/a'), 'f') as H5LogError).cause).toBe(first);
    const system = new Error('EIO');
    const error = new H5LogError('STORAGE', 'read failed', { cause: system });
    expect((inFile(error, 'f') as H5LogError).cause).toBe(system);
  });

  test('is not added where the error knows it already', () => {
    const known = new H5LogError('STORAGE', 'f.0: read failed', { file: 'f.0' });
    expect(inFile(known, 'f')).toBe(known);
    expect(inObject(inObject(first, '/inner'), '/outer')).toMatchObject({
      object: '/inner',
      message: '/inner: a bad header',
    });
    expect(addContext(known, 'attribute x of /a: ', { file: 'f', object: '/a' }, 'object')).toMatchObject({
      message: 'attribute x of /a: f.0: read failed',
      file: 'f.0',
      object: '/a',
    });
  });

  test('is not added to errors of others', () => {
    for (const other of [new RangeError('x'), 'text', undefined]) {
      expect(inFile(other, 'f')).toBe(other);
      expect(atOffset(other, 1)).toBe(other);
    }
  });

  test('an offset goes to errors of format only, and only once', () => {
    expect(atOffset(formatError('cut off'), 8)).toMatchObject({ message: 'cut off (at byte 8)', offset: 8 });
    expect(atOffset(first, 8)).toBe(first);
    const unsupported = new H5LogError('UNSUPPORTED', 'filter 9 is not supported');
    expect(atOffset(unsupported, 8)).toBe(unsupported);
  });
});
