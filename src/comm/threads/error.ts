import { decodeError, encodeError } from '../error-message.ts';

/** An error on its way out of a thread. Structured clone alone would lose codes, ranks and names. */
export interface PackedError {
  readonly message: Uint8Array;
  readonly stack: string | undefined;
  /** What the error carried besides, such as `code` and `errno` of the system. */
  readonly properties: Readonly<Record<string, unknown>>;
  readonly cause: PackedError | undefined;
}

const depthLimit = 8;

export function packError(error: unknown, rank: number, depth = 0): PackedError {
  const properties: Record<string, unknown> = {};
  let cause: PackedError | undefined;
  if (error instanceof Error) {
    for (const [name, value] of Object.entries(error)) {
      if (value === null || !['object', 'function', 'symbol'].includes(typeof value)) properties[name] = value;
    }
    if (error.cause !== undefined && depth < depthLimit) cause = packError(error.cause, rank, depth + 1);
  }
  return {
    message: encodeError(error, rank),
    stack: error instanceof Error ? error.stack : undefined,
    properties,
    cause,
  };
}

export function unpackError({ message, stack, properties, cause }: PackedError): Error {
  const error = decodeError(message);
  Object.assign(error, properties);
  if (stack !== undefined) error.stack = stack;
  if (cause) Object.defineProperty(error, 'cause', { value: unpackError(cause), configurable: true, writable: true });
  return error;
}
