import { H5LogError } from '../base/errors.ts';

/** A word is a name, a number or a keyword; what ncdump escapes in a name is plain again in `text`. */
export interface Token {
  readonly kind: 'word' | 'text' | 'mark' | 'currently';
  readonly text: string;
  readonly line: number;
}

const PATTERN =
  /(?<space>\s+)|\/\/\s*\((?<currently>\d+) currently\)|(?<comment>\/\/[^\n]*)|"(?<text>(?:[^"\\]|\\[\s\S])*)"|(?<mark>[{}()=;:,])|(?<word>(?:\\[\s\S]|[^\s{}()=;:,"\\])+)/gy;

/** Takes CDL text apart. Comments go, except for the length that ncdump writes behind an unlimited dimension. */
export function tokensOf(cdl: string): Token[] {
  const tokens: Token[] = [];
  const pattern = new RegExp(PATTERN);
  let line = 1;
  let at = 0;
  while (at < cdl.length) {
    pattern.lastIndex = at;
    const found = pattern.exec(cdl);
    if (!found) throw cdlError(line, `${JSON.stringify(cdl.slice(at, at + 20))} cannot be understood`);
    const { currently, text, mark, word } = found.groups as Record<string, string | undefined>;
    if (currently !== undefined) tokens.push({ kind: 'currently', text: currently, line });
    else if (text !== undefined) tokens.push({ kind: 'text', text: unescaped(text), line });
    else if (mark !== undefined) tokens.push({ kind: 'mark', text: mark, line });
    else if (word !== undefined) tokens.push({ kind: 'word', text: word, line });
    for (const letter of found[0]) if (letter === '\n') line++;
    at = pattern.lastIndex;
  }
  return tokens;
}

export function cdlError(line: number, message: string): H5LogError {
  return new H5LogError('FORMAT', `line ${line} of the CDL header: ${message}`);
}

/** A name without the backslashes that protect its letters. */
export function plainName(word: string): string {
  return word.replace(/\\([\s\S])/g, '$1');
}

const LETTERS: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
  v: '\v',
  a: '\x07',
};

function unescaped(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(/\\(x[\da-fA-F]{1,2}|[0-7]{1,3}|[\s\S])/g, (_, code: string) => {
    if (/^x./.test(code)) return String.fromCharCode(Number.parseInt(code.slice(1), 16));
    if (/^[0-7]/.test(code)) return String.fromCharCode(Number.parseInt(code, 8));
    return LETTERS[code] ?? code;
  });
}
