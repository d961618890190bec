const NAMED: Readonly<Record<string, string>> = { '\n': '\\n', '\t': '\\t', '\r': '\\r', '\b': '\\b', '\f': '\\f' };

// Control characters, also those of eight bits, and what turns the direction of writing: a name must not move a terminal's cursor.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/gu;

/** A text in which nothing moves the cursor of a terminal. */
export function shownText(text: string): string {
  return text.replace(UNSAFE, (character) => {
    const code = character.charCodeAt(0);
    return NAMED[character] ?? (code < 256 ? `\\${code.toString(8).padStart(3, '0')}` : `\\u${code.toString(16)}`);
  });
}

/** The same between quotes. */
export function quotedText(text: string): string {
  return `"${shownText(text.replace(/["\\]/g, '\\$&'))}"`;
}
