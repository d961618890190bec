import { formatError, isH5LogError } from '../../base/errors.ts';

/** Adds where in the file an error was noticed, unless the error says so itself. */
export function located(error: unknown, offset: number): unknown {
  return isH5LogError(error, 'FORMAT') && error.offset === undefined ? formatError(error.message, offset) : error;
}
