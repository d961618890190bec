/** What went wrong, as a stable word that programs may compare. */
export type ErrorCode =
  | 'BUFFER_FULL'
  | 'SELECTION'
  | 'SHAPE'
  | 'DTYPE'
  | 'NOT_FOUND'
  | 'EXISTS'
  | 'READ_ONLY'
  | 'CLOSED'
  | 'LOCKED'
  | 'FORMAT'
  | 'UNSUPPORTED'
  | 'STORAGE'
  | 'COMM'
  | 'MISMATCH'
  | 'OPTION';

/** Where it went wrong: the file, the object in it, the byte offset, the rank, and the system's own error. */
export interface ErrorDetails {
  readonly file?: string | undefined;
  readonly object?: string | undefined;
  readonly offset?: number | undefined;
  readonly rank?: number | undefined;
  readonly cause?: unknown;
}

/** Every error h5log throws on purpose. One class, told apart by `code` alone. */
export class H5LogError extends Error {
  override readonly name = 'H5LogError' as const;
  readonly code: ErrorCode;
  declare readonly file?: string;
  declare readonly object?: string;
  declare readonly offset?: number;
  declare readonly rank?: number;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    // Absent details stay absent, so that `'file' in error` and a printed error say only what is known.
    if (details.file !== undefined) this.file = details.file;
    if (details.object !== undefined) this.object = details.object;
    if (details.offset !== undefined) this.offset = details.offset;
    if (details.rank !== undefined) this.rank = details.rank;
  }
}

/** Tells an {@link H5LogError}, of a given code if one is named, from any other thrown value. */
export function isH5LogError(error: unknown, code?: ErrorCode): error is H5LogError {
  // By name and not by instanceof: the error may come from another thread or a second copy of the package.
  return (
    error instanceof Error &&
    error.name === 'H5LogError' &&
    typeof (error as Partial<H5LogError>).code === 'string' &&
    (code === undefined || (error as H5LogError).code === code)
  );
}

/** Whether an error says that something in a file is damaged, or of a kind that is not known: the rest of the file can still be read. */
export function isUnreadable(error: unknown): error is H5LogError {
  return isH5LogError(error, 'FORMAT') || isH5LogError(error, 'UNSUPPORTED');
}

/**
 * An error of ours with more context: `prefix` before its message, and the details that it did not have yet. `unlessKnown` names
 * the detail that whoever was nearer to the mistake may have added already; then the error stays as it is, as do errors that are
 * not ours.
 */
export function addContext(
  error: unknown,
  prefix: string,
  details: ErrorDetails,
  unlessKnown?: keyof ErrorDetails,
): unknown {
  if (!isH5LogError(error) || (unlessKnown !== undefined && error[unlessKnown] !== undefined)) return error;
  const { code, message, file, object, offset, rank, cause } = error;
  // `cause` is the first error: it has the stack of the place that threw.
  return new H5LogError(code, `${prefix}${message}`, {
    file: file ?? details.file,
    object: object ?? details.object,
    offset: offset ?? details.offset,
    rank: rank ?? details.rank,
    cause: cause ?? error,
  });
}

/** Says which file an error is about. */
export function inFile(error: unknown, file: string): unknown {
  return addContext(error, `${file}: `, { file }, 'file');
}

/** Says which object of a file an error is about. */
export function inObject(error: unknown, path: string): unknown {
  return addContext(error, `${path}: `, { object: path }, 'object');
}

/** Says at which byte of the file an error was noticed. Only errors of format are about bytes. */
export function atOffset(error: unknown, offset: number): unknown {
  return isH5LogError(error, 'FORMAT') && error.offset === undefined ? formatError(error.message, offset) : error;
}

/** The file is not what it claims to be; `offset` is the byte at which that was noticed. */
export function formatError(message: string, offset?: number): H5LogError {
  return new H5LogError('FORMAT', offset === undefined ? message : `${message} (at byte ${offset})`, { offset });
}

/**
 * Makes objects print as one line: in Node and Bun, in Deno, and as a string. The consoles of browsers cannot be told; they show the
 * class and its fields.
 */
export function printAs<T extends object>(prototype: T, name: string, line: (object: T) => string): void {
  const value = function (this: T): string {
    return line(this);
  };
  for (const key of [Symbol.for('nodejs.util.inspect.custom'), Symbol.for('Deno.customInspect'), 'toString'])
    Object.defineProperty(prototype, key, { value, configurable: true, writable: true });
  Object.defineProperty(prototype, Symbol.toStringTag, { value: name, configurable: true });
}
