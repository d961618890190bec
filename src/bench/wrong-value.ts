import { H5LogError } from '../base/errors.ts';

/** What was read is not what was written: its times are worth nothing. */
export function wrongValue(file: string, where: readonly number[], found: unknown, expected: unknown): H5LogError {
  const text = `${file}: element ${where.join(', ')} is ${String(found)}, but ${String(expected)} was written`;
  return new H5LogError('MISMATCH', text, { file });
}
