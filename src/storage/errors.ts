import { H5LogError, isH5LogError } from '../base/errors.ts';

/** The error of every call on a storage that was closed. */
export function closedError(name: string): H5LogError {
  return new H5LogError('CLOSED', `${name} is closed`, { file: name });
}

/** The error of every change to a storage that was opened for reading. */
export function readOnlyError(name: string): H5LogError {
  return new H5LogError('READ_ONLY', `${name} is read only`, { file: name });
}

/** Wraps what the system threw; an error that is ours already passes unchanged. */
export function storageFailure(name: string, doing: string, cause: unknown, offset?: number): H5LogError {
  if (isH5LogError(cause)) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  const where = offset === undefined ? '' : ` at byte ${offset}`;
  return new H5LogError('STORAGE', `${name}: ${doing}${where} failed: ${reason}`, { file: name, offset, cause });
}

/**
 * Refuses offsets and sizes that are not whole numbers from 0 to 2^53 - 1. It matters: to the system -1 means "the current
 * position", so that a wrong offset would write somewhere instead of failing.
 */
export function checkPosition(name: string, position: number): void {
  if (Number.isSafeInteger(position) && position >= 0) return;
  throw new H5LogError('STORAGE', `${name}: ${position} is not a position in a file`, { file: name });
}
