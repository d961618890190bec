// Builds dist/: bundled entry points for Node and for browsers, and the declarations of every module.
// Loading one file takes Node half a millisecond, and `src` has hundreds: bundled, `import 'h5log'` is four times as fast.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type BuildOptions, build, type Metafile, type Plugin } from 'esbuild';
import { apiIn } from './api.ts';
import { splitCore } from './core.ts';
import { internalNames } from './internal-names.ts';
import { builtCommand, execute, readManifest, root, tsc } from './root.ts';
import { writingChunk } from './writing-chunk.ts';

/**
 * Modules that are started by name, beside the code that starts them: all of dist/node is one folder, so that
 * `new URL('./name.js', import.meta.url)` finds them from every chunk.
 */
const programs = {
  cli: 'src/cli/main.ts',
  worker: 'src/comm/threads/worker.ts',
  'demo-rank': 'src/tools/demo/demo-rank.ts',
  'replay-rank': 'src/tools/replay/replay-rank.ts',
  'e3sm-rank': 'src/bench/e3sm-rank.ts',
  'layouts-rank': 'src/bench/layouts-rank.ts',
  'small-heap': 'src/bench/small-heap.ts',
  'warm-up': 'src/cli/code-cache/warm-up.ts',
};

/** Splitting keeps what several entries share in chunks that they import, so that each class exists once. */
const shared: BuildOptions = {
  absWorkingDir: root,
  bundle: true,
  format: 'esm',
  splitting: true,
  chunkNames: '[name]-[hash]',
  target: 'es2022',
  conditions: ['h5log-source'],
  external: ['koffi'],
  sourcemap: 'linked',
  // The maps lead to src/, which is part of the package.
  sourcesContent: false,
  logLevel: 'warning',
};

/** Writes the bundles for Node into a folder. */
async function bundleForNode(outdir: string): Promise<void> {
  const define = { 'import.meta.page': 'false' };
  const options = { ...shared, platform: 'node', outdir, define } satisfies BuildOptions;
  const entryPoints = { ...entriesFor('node'), ...programs };
  const { metafile } = await build({ ...options, entryPoints, write: false, metafile: true });
  // Without ignoreAnnotations esbuild drops the imports that are added: package.json says that modules have no side effects.
  const plugins = [fewChunks(metafile)];
  const built = await build({ ...options, entryPoints, plugins, ignoreAnnotations: true, metafile: true });
  await splitCore(outdir, built.metafile);
}

/**
 * Writes the bundles for browsers into a folder. What a page loads should be small, and minifiers leave the names of properties and
 * methods alone: here they become short where nobody else can see them.
 */
async function bundleForBrowsers(outdir: string, types: string): Promise<void> {
  const options = {
    ...shared,
    platform: 'browser',
    outdir,
    entryPoints: entriesFor('browser'),
    define: { 'import.meta.page': 'true' },
  } satisfies BuildOptions;
  const { metafile } = await build({ ...options, write: false, metafile: true });
  const used = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.entries(inputs));
  const modules = used.flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : []));
  const names = internalNames(modules, apiIn(types));
  const mangleProps = new RegExp(`^(?:${names.join('|')})$`);
  await build({ ...options, minifySyntax: true, mangleProps, plugins: [writingChunk(modules)] });
}

/** The entry points that package.json names for a platform: file name without extension to source. */
function entriesFor(platform: 'node' | 'browser'): Record<string, string> {
  const entries: Record<string, string> = {};
  for (const target of Object.values(readManifest().exports)) {
    if (typeof target === 'string') continue;
    const built = [target[platform], target.default].find((path) => path?.startsWith(`./dist/${platform}/`));
    if (built && target['h5log-source']) entries[basename(built, '.js')] = target['h5log-source'];
  }
  return entries;
}

/** Entry points, and modules that they import when they need them, that do not read or write files themselves. */
const light = /^src\/(cli\/.*|mpi|threads|comm\/threads\/worker)\.ts$/;
const core = 'src/index.ts';

/**
 * esbuild makes a chunk for every set of entries that share a module: 13 for `import 'h5log'`, which take Node 8 ms to load. Added
 * imports leave two of them: everything that `h5log` needs, but for what light entries need too.
 */
function fewChunks({ inputs }: Metafile): Plugin {
  const needs = (path: string, found = new Set<string>()): Set<string> => {
    if (found.has(path)) return found;
    found.add(path);
    for (const { path: other, kind } of inputs[path]?.imports ?? [])
      if (kind === 'import-statement') needs(other, found);
    return found;
  };
  const ofCore = needs(core);
  const ofLight = new Set(
    Object.keys(inputs)
      .filter((path) => light.test(path))
      .flatMap((path) => [...needs(path)]),
  );
  const inBoth = [...ofCore].filter((path) => ofLight.has(path) && path in inputs);
  return {
    name: 'few chunks',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, (module) => {
        const path = relative(root, module.path).replaceAll('\\', '/');
        if (ofCore.has(path) || (ofLight.has(path) && !light.test(path))) return undefined;
        const added = (light.test(path) ? inBoth : [core]).map(
          (other) => `import ${JSON.stringify(join(root, other))};`,
        );
        const contents = readFileSync(module.path, 'utf8').replace(
          /^(#!.*\n)?/,
          (first) => `${first}${added.join('')}`,
        );
        return { contents, loader: 'ts' };
      });
    },
  };
}

function declarations(outDir: string): void {
  const { ok, output } = tsc(['-p', 'tsconfig.build.json', '--outDir', outDir]);
  if (!ok) throw new Error(`tsc cannot emit the declarations:\n${output}`);
  for (const name of readdirSync(outDir, { recursive: true, encoding: 'utf8' })) {
    if (name.endsWith('.d.ts')) forOlderCompilers(join(outDir, name));
  }
}

/**
 * Typed arrays are generic since TypeScript 5.7. What their `slice` returns is `Uint8Array<ArrayBuffer>` for newer compilers and
 * plain `Uint8Array` for older ones, from 5.4 on.
 */
function forOlderCompilers(path: string): void {
  const text = readFileSync(path, 'utf8');
  const plain = text
    .replaceAll(/\b(\w+Array)<ArrayBuffer>/g, "ReturnType<$1['slice']>")
    .replaceAll(/\b(\w+Array)<ArrayBufferLike>/g, '$1');
  if (plain !== text) writeFileSync(path, plain);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const dist = join(root, 'dist');
  rmSync(dist, { recursive: true, force: true });
  declarations(join(dist, 'types'));
  await Promise.all([bundleForNode(join(dist, 'node')), bundleForBrowsers(join(dist, 'browser'), join(dist, 'types'))]);
  execute(process.execPath, [builtCommand, 'code-cache']);
  process.stdout.write(`built ${relative(root, dist)}\n`);
}
