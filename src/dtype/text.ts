// Strings and their bytes in the file.

import { H5LogError } from '../base/errors.ts';
import { describeType } from './describe.ts';
import type { StringType } from './model.ts';

const encoder = new TextEncoder();
// A byte order mark is text like any other: dropping it would change what was written.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Whether something is a text that a file can hold as a name: no NUL, and no half of a surrogate pair. */
export function isText(text: unknown): text is string {
  if (typeof text !== 'string' || text.includes('\0')) return false;
  // Older browsers do not know of it.
  const { isWellFormed } = text as { isWellFormed?: () => boolean };
  return isWellFormed ? isWellFormed.call(text) : !/\p{Surrogate}/u.test(text);
}

/** The bytes of a text, without padding; throws DTYPE for text that the type cannot hold. */
export function textBytes(text: string, type: StringType): Uint8Array {
  const bytes = encoder.encode(text);
  const fail = (why: string) =>
    new H5LogError('DTYPE', `${why}, expected text for ${describeType(type)}: '${text.slice(0, 40)}'`);
  // Only ASCII text has as many bytes as UTF-16 units.
  if (bytes.length !== text.length) {
    if (type.charset === 'ascii') throw fail('text with characters beyond ASCII');
    if (/\p{Surrogate}/u.test(text)) throw fail('text with half of a surrogate pair');
  }
  // Readers end these at the first NUL, or cut NULs off the end; what follows would be lost.
  if (type.variable || type.pad === 'zero' ? text.includes('\0') : text.endsWith('\0')) {
    throw fail('text with a NUL character');
  }
  if (!type.variable) {
    // One byte is a character, as netCDF writes them, and not an empty text.
    const room = type.pad === 'zero' && type.size > 1 ? type.size - 1 : type.size;
    if (bytes.length > room) {
      throw fail(
        `text of ${bytes.length} bytes where ${room} fit${type.pad === 'zero' ? ' before the final NUL' : ''}`,
      );
    }
  }
  return bytes;
}

/** The text in bytes from `from` to `to`. Bytes that are not UTF-8 become U+FFFD. */
export function textOf(bytes: Uint8Array, from: number, to: number, type: StringType): string {
  let end = to;
  if (type.variable || type.pad === 'zero') {
    // Also for variable length: some writers count the final NUL in.
    end = from;
    while (end < to && bytes[end] !== 0) end += 1;
  } else {
    while (type.pad === 'space' && end > from && bytes[end - 1] === 0x20) end -= 1;
    // Also behind blanks: what was never written is zeros.
    while (end > from && bytes[end - 1] === 0) end -= 1;
  }
  const short = import.meta.page ? undefined : shortAscii(bytes, from, end);
  return short ?? decoder.decode(Uint8Array.prototype.slice.call(bytes, from, end));
}

/** Most strings in files are short names; for them the decoder's call costs more than the work. */
function shortAscii(bytes: Uint8Array, from: number, to: number): string | undefined {
  if (to - from > 24) return undefined;
  let text = '';
  for (let i = from; i < to; i++) {
    const byte = bytes[i] as number;
    if (byte > 0x7f) return undefined;
    text += String.fromCharCode(byte);
  }
  return text;
}
