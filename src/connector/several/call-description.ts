import type { CallDescription } from '../../comm/agreement.ts';

/** What a call was called with, in a form that can be compared between ranks. */
export function describeCall(call: string, details: Readonly<Record<string, unknown>>): CallDescription {
  const description: Record<string, string> = { call };
  // In one order, whatever the caller's: the descriptions are compared as texts.
  const named = Object.entries(details).sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [name, value] of named) if (value !== undefined) description[name] = shown(value);
  return description;
}

/** The longest part of a value that is compared letter by letter; of longer ones the rest counts by a sum. */
const LONGEST = 2000;

function shown(value: unknown): string {
  const text = JSON.stringify(value, (_key, item: unknown) => {
    // Not as texts: a text that looks the same is another value.
    if (typeof item === 'bigint') return { bigint: String(item) };
    if (typeof item === 'number' && (!Number.isFinite(item) || Object.is(item, -0)))
      return { number: Object.is(item, -0) ? '-0' : String(item) };
    if (ArrayBuffer.isView(item))
      return { [item.constructor.name]: [...new Uint8Array(item.buffer, item.byteOffset, item.byteLength)] };
    if (typeof item === 'function') return undefined;
    return item;
  });
  if (text === undefined) return String(value);
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}... (${text.length} characters, sum ${sumOf(text)})`;
}

function sumOf(text: string): number {
  let sum = 0;
  for (let i = 0; i < text.length; i++) sum = (Math.imul(sum, 31) + text.charCodeAt(i)) | 0;
  return sum >>> 0;
}
