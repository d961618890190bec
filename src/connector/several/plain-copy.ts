import { arrayKind, numberArray } from '../../dtype/convert.ts';
import type { TypedArray } from '../../dtype/model.ts';

/** Characters, bytes and attributes up to which an object header surely has room. */
const SHORT = 10_000;
const PLAIN = /^[\x01-\x7e]*$/;

/** A copy of attributes if it is sure that all of them can be set, whenever that will be; otherwise null. */
export function plainCopy<V>(attributes: Readonly<Record<string, V>>): Readonly<Record<string, V>> | null {
  const names = Object.keys(attributes);
  if (names.length > SHORT) return null;
  const copy: Record<string, V> = Object.create(null);
  for (const name of names) {
    if (name === '' || !isPlain(name)) return null;
    const value = attributes[name] as V;
    if (typeof value === 'number' || (typeof value === 'string' && isPlain(value))) copy[name] = value;
    else {
      const kind = arrayKind(value);
      if (!kind || (value as TypedArray).byteLength > SHORT) return null;
      const numbers = numberArray(kind, (value as TypedArray).length);
      numbers.set(value as never);
      copy[name] = numbers as V;
    }
  }
  return copy;
}

/** Short, and text in every encoding: neither NUL nor halves of surrogate pairs. */
function isPlain(text: string): boolean {
  return text.length <= SHORT && PLAIN.test(text);
}
