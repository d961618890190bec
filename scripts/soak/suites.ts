import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, posix } from 'node:path';
import { root } from '../root.ts';

/** A test file that a new seed makes do something new. */
export interface Suite {
  /** Its path in test/ without the extension. */
  readonly name: string;
  readonly command: readonly string[];
}

const SEEDED = /import\s*\{[^}]*\b(?:seed|runs)\b[^}]*\}\s*from\s*'[./]*\/seed\.ts'/;

/**
 * All random suites: the test files that import `seed` or `runs` of test/seed.ts, themselves or through another file of test/.
 * Whoever draws from a seed takes part; there is no list to keep.
 */
export function randomSuites(): Suite[] {
  const folder = join(root, 'test');
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => path.replaceAll('\\', '/'));
  const texts = new Map(
    paths.filter((path) => path.endsWith('.ts')).map((path) => [path, readFileSync(join(folder, path), 'utf8')]),
  );
  // Checks of the project look at the sources, whatever the seed.
  const tests = [...texts.keys()].filter((path) => path.endsWith('.test.ts') && !path.startsWith('project/'));
  return tests
    .filter((path) => isSeeded(path, texts))
    .sort()
    .map((path) => ({ name: path.replace('.test.ts', ''), command: vitest(`test/${path}`) }));
}

function isSeeded(path: string, texts: ReadonlyMap<string, string>, seen = new Set<string>()): boolean {
  const text = texts.get(path);
  if (text === undefined || seen.has(path)) return false;
  seen.add(path);
  if (SEEDED.test(text)) return true;
  const imports = [...text.matchAll(/\bfrom\s*'(\.[^']+)'/g)];
  return imports.some(([, from]) => isSeeded(posix.join(posix.dirname(path), from as string), texts, seen));
}

/** The command that runs one test file. */
function vitest(path: string): string[] {
  const program = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');
  return [process.execPath, program, 'run', path, '--reporter=default', '--maxWorkers=1'];
}
