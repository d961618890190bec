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
