import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { root } from '../../scripts/root.ts';

interface Package {
  readonly type: string;
  readonly sideEffects: boolean;
  readonly bin: Readonly<Record<string, string>>;
  readonly files: readonly string[];
  readonly engines: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, unknown>>;
  readonly imports: Readonly<Record<string, unknown>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly bundleDependencies?: readonly string[];
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta: Readonly<Record<string, { optional?: boolean }>>;
}

const manifest = JSON.parse(read('package.json')) as Package;

describe('package.json', () => {
  test('has no runtime dependencies', () => {
    expect(manifest.dependencies ?? {}).toEqual({});
    expect(manifest.optionalDependencies ?? {}).toEqual({});
    expect(manifest.bundleDependencies ?? []).toEqual([]);
  });

  test('has koffi as an optional peer, and no other', () => {
    expect(Object.keys(manifest.peerDependencies)).toEqual(['koffi']);
    expect(manifest.peerDependenciesMeta).toEqual({ koffi: { optional: true } });
  });

  test('exports these entry points', () => {
    // As text: the order of the conditions decides.
    expect(JSON.stringify(manifest.exports)).toBe(
      JSON.stringify({
        '.': entry('index', everywhere('index')),
        './mpi': entry('mpi', onlyNode('mpi')),
        './netcdf': entry('netcdf', everywhere('netcdf')),
        './storage': entry('storage', everywhere('storage')),
        './threads': entry('threads', onlyNode('threads')),
        './tools': entry('tools', onlyNode('tools')),
        './package.json': './package.json',
      }),
    );
  });

  test('has one program', () => {
    expect(manifest.bin).toEqual({ h5log: 'dist/node/cli.js' });
  });

  test('chooses the platform of the sources, and how the core of dist/node is loaded, by condition', () => {
    expect(JSON.stringify(manifest.imports)).toBe(
      JSON.stringify({
        '#core': {
          bun: './dist/node/core.js',
          deno: './dist/node/core.js',
          module: './dist/node/core.js',
          node: './dist/node/core-compiled.js',
          default: './dist/node/core.js',
        },
        '#platform': {
          'h5log-source': { browser: './src/platform/browser.ts', default: './src/platform/node.ts' },
          types: {
            browser: './dist/types/platform/browser.d.ts',
            node: './dist/types/platform/node.d.ts',
            default: './dist/types/platform/browser.d.ts',
          },
        },
      }),
    );
  });

  test('is ESM without side effects, for Node 20.19 and up, and ships sources, documents and examples', () => {
    expect(manifest.type).toBe('module');
    expect(manifest.sideEffects).toBe(false);
    expect(manifest.engines).toEqual({ node: '>=20.19' });
    expect(manifest.files).toEqual(expect.arrayContaining(['dist', 'src', 'docs', 'examples']));
  });

  test('has a line in docs/dependencies.md for every development dependency', () => {
    const document = read('docs/dependencies.md');
    const missing = Object.keys(manifest.devDependencies).filter((name) => !document.includes(`| \`${name}\` |`));
    expect(missing).toEqual([]);
  });
});

describe('the project', () => {
  test('is run by continuous integration with the very command of the README', () => {
    const readme = read('README.md');
    expect(readme).toContain('npm ci && npm run demo');
    expect(readme).toContain('npm ci && npm run oracles && npm test');
    expect(read('.ci/run')).toContain('npm ci && npm run oracles && npm test');
  });

  test('names no folder of a machine and no package registry', () => {
    // Put together here so that this file does not find itself.
    const folders = ['work', 'root', 'home', 'Users', 'mnt'].join('|');
    const folder = new RegExp(`(?<![\\w.@)}\\]-])/(?:${folders})/[\\w.]`);
    const host = new RegExp(`${['re', 'gistry'].join('')}\\.[a-z]|"${['re', 'solved'].join('')}": "http`);
    const found: string[] = [];
    for (const path of trackedFiles()) {
      for (const [number, line] of read(path).split('\n').entries()) {
        if (folder.test(line) || host.test(line)) found.push(`${path}:${number + 1}: ${line.trim().slice(0, 100)}`);
      }
    }
    expect(found).toEqual([]);
  });
});

function entry(name: string, built: Record<string, string>): Record<string, string> {
  return { 'h5log-source': `./src/${name}.ts`, types: `./dist/types/${name}.d.ts`, ...built };
}

/** Node, Deno and Bun know the condition `node`; bundlers for pages know `browser`, or none of the two. */
function everywhere(name: string): Record<string, string> {
  const browser = `./dist/browser/${name}.js`;
  return { browser, node: `./dist/node/${name}.js`, default: browser };
}

function onlyNode(name: string): Record<string, string> {
  return { default: `./dist/node/${name}.js` };
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** The text files that are, or would be, committed. */
function trackedFiles(): string[] {
  const list = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: root });
  const binary = /\.(h5|nc|png|gz|bin|wasm)$/;
  return list
    .toString()
    .split('\n')
    .filter((path) => path !== '' && !binary.test(path) && existsSync(join(root, path)));
}
