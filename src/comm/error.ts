import { type ErrorCode, H5LogError, isH5LogError } from '../base/errors.ts';

interface Message {
  readonly code: ErrorCode | null;
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  readonly file: string | undefined;
  readonly object: string | undefined;
  readonly offset: number | undefined;
  readonly rank: number | undefined;
}

/** An error as bytes, for other ranks. `rank` is where it happened, unless the error says so itself. */
export function encodeError(error: unknown, rank: number): Uint8Array {
  const known = isH5LogError(error) ? error : undefined;
  const other = error instanceof Error ? error : undefined;
  const message: Message = {
    code: known?.code ?? null,
    name: other?.name ?? 'Error',
    message: other?.message ?? String(error),
    stack: other?.stack,
    file: known?.file,
    object: known?.object,
    offset: known?.offset,
    rank: known?.rank ?? rank,
  };
  return new TextEncoder().encode(JSON.stringify(message));
}

/** The error that {@link encodeError} packed: one of ours with its code and rank, or a plain Error with the rank beside it. */
export function decodeError(bytes: Uint8Array): Error {
  const { code, name, message, stack, file, object, offset, rank } = JSON.parse(
    new TextDecoder().decode(bytes),
  ) as Partial<Message>;
  if (code) return new H5LogError(code, message ?? '', { file, object, offset, rank });
  const error = Object.assign(new Error(message), { rank });
  if (name) error.name = name;
  if (stack) error.stack = stack;
  return error;
}

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
