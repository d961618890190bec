import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, expect, test } from 'vitest';
import { root } from '../../scripts/root.ts';
import { anchorsOf, linksOf } from './markdown.ts';

const documents = ['', 'docs'].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => posix.join(folder, name)),
);

describe('links between documents', () => {
  const tarball = tarballFiles();

  test.each(documents)('of %s lead to files and headings that are there', (document) => {
    expect(
      brokenLinks(document, read(document), (path) => (existsSync(join(root, path)) ? read(path) : undefined)),
    ).toEqual([]);
  });

  test.each(documents)('of %s lead to files that the package brings along', (document) => {
    // As if there were nothing but the tarball.
    const packed = (path: string) => (tarball.has(path) ? read(path) : undefined);
    expect(packed(document), `${document} is in the tarball`).toBeDefined();
    expect(brokenLinks(document, read(document), packed)).toEqual([]);
  });

  test('that lead nowhere are found', () => {
    const files: Record<string, string> = { 'docs/b.md': '# One thing\n## `two()`, and a half\n' };
    const text = [
      '[file](b.md) [heading](b.md#one-thing) [code](b.md#two-and-a-half) [here](#here) [web](https://example.org/x)',
      '`[code](missing.md)`',
      '[file](missing.md) [heading](b.md#two-things) [here](#there) ![image](missing.svg) [up](../b.md)',
      '# Here',
    ].join('\n');
    expect(brokenLinks('docs/a.md', text, (path) => files[path])).toEqual([
      'docs/a.md:3: missing.md',
      'docs/a.md:3: b.md#two-things',
      'docs/a.md:3: #there',
      'docs/a.md:3: missing.svg',
      'docs/a.md:3: ../b.md',
    ]);
  });
});

/** Relative links of a document that lead to no file, or to no heading of it; `find` gives a file's text. */
function brokenLinks(document: string, text: string, find: (path: string) => string | undefined): string[] {
  const isBroken = (target: string): boolean => {
    if (/^[a-z]+:/i.test(target)) return false;
    const [path = '', anchor] = target.split('#');
    const there = path === '' ? text : find(posix.join(posix.dirname(document), path));
    return there === undefined || (anchor !== undefined && !anchorsOf(there).has(anchor));
  };
  return linksOf(text)
    .filter(({ target }) => isBroken(target))
    .map(({ target, line }) => `${document}:${line}: ${target}`);
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** What `npm pack` would put into the tarball. */
function tarballFiles(): Set<string> {
  const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [{ files }] = JSON.parse(output.toString()) as [{ files: readonly { path: string }[] }];
  return new Set(files.map(({ path }) => path));
}
