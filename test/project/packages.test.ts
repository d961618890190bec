import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, expect, test } from 'vitest';
import { root } from '../../scripts/root.ts';
import { source } from './sources.ts';

interface Package {
  readonly version: string;
  readonly dependencies?: object;
  readonly peerDependencies?: object;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly files: readonly string[];
}

const folder = join(root, 'packages', 'browse');
const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Package;

const files = readdirSync(join(folder, 'src'), { recursive: true, encoding: 'utf8' })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => /\.tsx?$/.test(path))
  .map((path) => source(path, readFileSync(join(folder, 'src', path), 'utf8')));

describe('the package h5log-browse', () => {
  test('needs no other package: all that the page consists of is in the bundle', () => {
    expect(manifest.dependencies ?? {}).toEqual({});
    expect(manifest.peerDependencies ?? {}).toEqual({});
    expect(manifest.files).toEqual(['dist']);
  });

  test('has the version of h5log', () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Package;
    expect(manifest.version).toBe(version);
  });

  test('has a line in docs/dependencies.md for every package that it is built from', () => {
    const document = readFileSync(join(root, 'docs', 'dependencies.md'), 'utf8');
    expect(Object.keys(manifest.devDependencies).filter((name) => !document.includes(`| \`${name}\` |`))).toEqual([]);
  });

  test('has a server that is Node alone, a reader that knows no page, and a page that reads only through the worker', () => {
    const wrong: string[] = [];
    for (const { path, text } of files) {
      // Types are gone when the bundle is made.
      const values = source(path, text.replace(/^import type .*?;$/gms, ''));
      for (const from of values.imports) {
        const to = from.startsWith('.') ? posix.join(posix.dirname(path), from) : from;
        const allowed = path.startsWith('page/')
          ? /^(page\/|react|@h5web\/)/
          : path === 'server.ts'
            ? /^node:/
            : /^(reader\/|h5log(\/|$)|\.\.\/\.\.\/\.\.\/src\/)/;
        if (!allowed.test(to)) wrong.push(`${path}: ${from}`);
      }
    }
    expect(files.length).toBeGreaterThan(10);
    expect(wrong).toEqual([]);
  });

  test('has files of at most 500 lines, with extensions in their imports', () => {
    expect(files.filter(({ text }) => text.split('\n').length > 501).map(({ path }) => path)).toEqual([]);
    const bare = files.flatMap(({ path, imports }) =>
      imports.filter((from) => from.startsWith('.') && !/\.(tsx?|css)$/.test(from)).map((from) => `${path}: ${from}`),
    );
    expect(bare).toEqual([]);
  });
});
