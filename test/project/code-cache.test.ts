import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { describe, expect, test } from 'vitest';
import { root } from '../../scripts/root.ts';
import { temporaryDirectory } from '../temporary.ts';

// The setup of the tests has built dist/, with code for this Node.
const cacheIn = (folder: string): string[] =>
  readdirSync(join(folder, 'dist', 'node')).filter((name) => name.endsWith('.bin'));

/** Says whether V8 took the code from the cache, for each script that is compiled with one. */
const WATCHED = `
  const vm = process.getBuiltinModule('node:vm');
  const { Script } = vm;
  vm.Script = class extends Script {
    constructor(source, options) {
      super(source, options);
      if (options.cachedData) console.log('rejected: ' + this.cachedDataRejected);
    }
  };`;

/** Writes and reads a file, and prints where an error comes from. */
const PROGRAM = `
  const { File } = await import('h5log');
  const file = File.createSync('run.h5');
  file.createDataset('x', { dtype: 'int32', shape: [3] }).write([1, 2, 3]);
  file.closeSync();
  const again = await File.open('run.h5');
  console.log(...(await again.dataset('x').read()));
  try {
    again.dataset('y');
  } catch (error) {
    console.log(error.stack.split('\\n').slice(0, 3).join(' ').replaceAll(/\\(?file:\\S*\\/|\\(\\S*\\/(?=core)/g, ''));
  }`;

describe('code that V8 has compiled before', () => {
  /** A folder in which h5log is installed as it was built. */
  function installed(): { home: string; own: string } {
    const home = temporaryDirectory();
    const own = join(home, 'node_modules', 'h5log');
    cpSync(join(root, 'package.json'), join(own, 'package.json'));
    cpSync(join(root, 'dist', 'node'), join(own, 'dist', 'node'), { recursive: true });
    return { home, own };
  }

  function run(home: string, program: string, ...flags: string[]): string {
    const args = [...flags, '--input-type=module', '-e', program];
    const { NODE_V8_COVERAGE: _, NODE_OPTIONS: __, ...env } = process.env;
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: home, encoding: 'utf8', env });
    expect(stderr).toBe('');
    expect(status).toBe(0);
    return stdout;
  }

  test('is in the package for the Node that built it, and is used', () => {
    const { home, own } = installed();
    expect(cacheIn(own)).toHaveLength(1);
    const printed = run(home, `${WATCHED}${PROGRAM}`);
    expect(printed).toMatch(/^rejected: false\n1 2 3\n/);
  });

  test('changes nothing: without it, with one that V8 refuses, and with other flags the same is printed', () => {
    const { home, own } = installed();
    const expected = run(home, PROGRAM);
    expect(expected).toMatch(/^1 2 3\nH5LogError: .*core\.js:\d+:\d+/);
    expect(run(home, `${WATCHED}${PROGRAM}`, '--no-lazy-feedback-allocation')).toBe(`rejected: true\n${expected}`);
    const [name] = cacheIn(own) as [string];
    truncateSync(join(own, 'dist', 'node', name), 1000);
    expect(run(home, `${WATCHED}${PROGRAM}`)).toBe(`rejected: true\n${expected}`);
    rmSync(join(own, 'dist', 'node', name));
    expect(run(home, `${WATCHED}${PROGRAM}`)).toBe(expected);
  });

  test('is not used where stack traces name the sources', () => {
    const { home } = installed();
    const printed = run(home, `${WATCHED}${PROGRAM}`, '--enable-source-maps');
    expect(printed).not.toContain('rejected');
  });

  test('is made anew by h5log code-cache', () => {
    const { home, own } = installed();
    const [name] = cacheIn(own) as [string];
    const path = join(own, 'dist', 'node', name);
    rmSync(path);
    const { stdout } = spawnSync(process.execPath, [join(own, 'dist', 'node', 'cli.js'), 'code-cache', '--json'], {
      encoding: 'utf8',
    });
    expect(JSON.parse(stdout)).toEqual({ path, bytes: readFileSync(path).length });
    expect(run(home, `${WATCHED}${PROGRAM}`)).toMatch(/^rejected: false\n1 2 3\n/);
  });

  test('is not needed by a program that a bundler makes one file of', async () => {
    const { home } = installed();
    const alone = temporaryDirectory();
    const outfile = join(alone, 'program.mjs');
    const stdin = { contents: PROGRAM, resolveDir: home, sourcefile: 'program.mjs' };
    await build({
      stdin,
      outfile,
      bundle: true,
      platform: 'node',
      format: 'esm',
      external: ['koffi'],
      logLevel: 'error',
    });
    const { stdout } = spawnSync(process.execPath, [outfile], { cwd: alone, encoding: 'utf8' });
    expect(stdout).toMatch(/^1 2 3\nH5LogError: /);
  });

  test('is the same module for CommonJS and for ES modules', () => {
    const { home } = installed();
    const program = `
      import { createRequire } from 'node:module';
      import { File } from 'h5log';
      console.log(createRequire(process.cwd() + '/x.js')('h5log').File === File);`;
    expect(run(home, program)).toBe('true\n');
  });

  test('is not used for globals of its own, which test runners have', () => {
    const { home, own } = installed();
    // As Jest does: each module of the package is compiled for another global object.
    const program = `
      import { readFileSync } from 'node:fs';
      import vm from 'node:vm';
      const context = vm.createContext({ process, URL, Buffer, performance, TextEncoder, TextDecoder, WebAssembly, crypto });
      const dist = ${JSON.stringify(pathToFileURL(join(own, 'dist', 'node', '/')).href)};
      const modules = new Map();
      const builtin = async (name) => {
        const found = await import(name);
        return new vm.SyntheticModule(Object.keys(found), function () {
          for (const key of Object.keys(found)) this.setExport(key, found[key]);
        }, { context });
      };
      const load = (name) => {
        const url = new URL(name === '#core' ? './core-compiled.js' : name, dist);
        if (!modules.has(url.href))
          modules.set(url.href, new vm.SourceTextModule(readFileSync(url, 'utf8'), {
            context,
            identifier: url.href,
            initializeImportMeta: (meta) => { meta.url = url.href; },
          }));
        return modules.get(url.href);
      };
      const link = (name) => (name.startsWith('node:') ? builtin(name) : load(name));
      const index = load('./index.js');
      await index.link(link);
      await index.evaluate();
      const { File } = index.namespace;
      const file = File.createSync('realm.h5');
      const { x, theirs } = vm.runInContext('({ x: Float64Array.of(1, 2), theirs: Float64Array })', context);
      file.createDataset('x', { dtype: 'float64', shape: [2] }).write(x);
      file.flushSync();
      console.log(file.dataset('x').readSync() instanceof theirs, file.dataset('x').readSync() instanceof Float64Array);
      file.closeSync();`;
    expect(run(home, program, '--experimental-vm-modules', '--no-warnings')).toBe('true false\n');
  });
});
