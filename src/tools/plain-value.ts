/*
 * Values as JSON can hold them. 64-bit integers are numbers where a number is exact, else strings; what no JSON number is, NaN and the
 * infinities, are strings; opaque bytes are hexadecimal.
 */

export type Plain = null | boolean | number | string | Plain[] | { [name: string]: Plain };

export function plainValue(value: unknown): Plain {
  if (value === null || value === undefined) return null;
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'bigint':
      return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
    case 'boolean':
    case 'string':
      return value;
  }
  if (Array.isArray(value) || (ArrayBuffer.isView(value) && 'length' in value))
    return Array.from(value as ArrayLike<unknown>, plainValue);
  const entries = Object.entries(value as object).map(([name, inner]) => [name, plainValue(inner)] as const);
  return Object.fromEntries(entries);
}

export function hexadecimal(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0');
  return text;
}
