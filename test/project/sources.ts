import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/root.ts';

/** One file of src/ or test/, by its path there. */
export interface Source {
  readonly path: string;
  readonly text: string;
  /** The text with comments and the contents of strings blanked; its lines are where they were. */
  readonly code: string;
  /** The text with only comments blanked. */
  readonly plain: string;
  /** What it imports or re-exports, as written. */
  readonly imports: readonly string[];
}

export function readSources(of: 'src' | 'test' = 'src'): Source[] {
  const folder = join(root, of);
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));
  return paths.sort().map((path) => source(path.replaceAll('\\', '/'), readFileSync(join(folder, path), 'utf8')));
}

export function source(path: string, text: string): Source {
  const plain = blank(text, false);
  return { path, text, code: blank(text), plain, imports: importsOf(plain) };
}

function importsOf(plain: string): string[] {
  const statements = /^\s*(?:import|export)\b[^'";]*?\bfrom\s*['"]([^'"]+)['"]|^\s*import\s*['"]([^'"]+)['"]/gm;
  const calls = /\b(?:import|require)\(\s*['"]([^'"]+)['"]/g;
  return [...plain.matchAll(statements), ...plain.matchAll(calls)].map(([, from, bare]) => from ?? bare ?? '');
}

// One pass over comments, strings and templates: whichever begins first hides the others.
const pieces = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`/g;

/** Blanks comments and, unless they are to be kept, what strings hold; code inside `${}` stays. */
function blank(text: string, strings = true): string {
  return text.replace(pieces, (piece) => {
    if (piece.startsWith('/')) return piece.replace(/[^\n]/g, ' ');
    if (!strings) return piece;
    if (piece.startsWith('`')) return template(piece);
    return piece.replace(/[^\n'"]/g, ' ');
  });
}

function template(piece: string): string {
  let result = '';
  let end = 0;
  for (const match of piece.matchAll(/\$\{([^}]*)\}/g)) {
    result += piece.slice(end, match.index).replace(/[^\n`]/g, ' ') + match[0];
    end = match.index + match[0].length;
  }
  return result + piece.slice(end).replace(/[^\n`]/g, ' ');
}
