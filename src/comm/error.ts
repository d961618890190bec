import { type ErrorCode, type ErrorDetails, H5LogError, isH5LogError } from '../base/errors.ts';

/** A plain copy of an error, for another rank or thread. JSON and structured clone alone would lose codes, ranks and names. */
export interface ErrorRecord {
  readonly isOurs: boolean;
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  /** The error's own properties that are no objects: `code`, `file` and `rank` of ours, `errno` of the system. */
  readonly properties: Readonly<Record<string, unknown>>;
  readonly cause: ErrorRecord | undefined;
}

/** An error may be its own cause, in a circle. */
const MAX_CAUSES = 8;

/** Copies an error. `rank` is where it happened, unless the error itself names a rank. */
export function recordError(error: unknown, rank: number, depth = 0): ErrorRecord {
  const properties: Record<string, unknown> = { rank };
  if (!(error instanceof Error))
    return { isOurs: false, name: 'Error', message: String(error), stack: undefined, properties, cause: undefined };
  for (const [name, value] of Object.entries(error)) {
    if (value === null || !['object', 'function', 'symbol'].includes(typeof value)) properties[name] = value;
  }
  const { name, message, stack, cause } = error;
  return {
    isOurs: isH5LogError(error),
    name,
    message,
    stack,
    properties,
    cause: cause === undefined || depth >= MAX_CAUSES ? undefined : recordError(cause, rank, depth + 1),
  };
}

/** The error that {@link recordError} copied: an H5LogError if it was one, else a plain Error with the same name. */
export function restoreError({ isOurs, name, message, stack, properties, cause }: ErrorRecord): Error {
  const error = isOurs
    ? new H5LogError(properties.code as ErrorCode, message, properties as ErrorDetails)
    : Object.assign(new Error(message), { name });
  Object.assign(error, properties);
  if (stack !== undefined) error.stack = stack;
  if (cause) Object.defineProperty(error, 'cause', { value: restoreError(cause), configurable: true, writable: true });
  return error;
}

/** An error as bytes, for a collective. */
export function encodeError(error: unknown, rank: number): Uint8Array {
  const text = JSON.stringify(recordError(error, rank), (_key, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  return new TextEncoder().encode(text);
}

export function decodeError(bytes: Uint8Array): Error {
  return restoreError(JSON.parse(new TextDecoder().decode(bytes)) as ErrorRecord);
}
