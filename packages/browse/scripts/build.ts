// Builds dist/: the page as a static site, the server that h5log browse starts, and the licenses of what is in the page.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { type BuildOptions, build, type Metafile } from 'esbuild';
import { tsc } from '../../../scripts/root.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const here = fileURLToPath(new URL('..', import.meta.url));
const page = join(here, 'src', 'page');

const shared = {
  absWorkingDir: root,
  bundle: true,
  format: 'esm',
  target: 'es2022',
  conditions: ['h5log-source'],
  minify: true,
  metafile: true,
  legalComments: 'none',
  logLevel: 'warning',
  tsconfig: join(here, 'tsconfig.json'),
} satisfies BuildOptions;

/** Writes the page into a folder that any web server can serve. */
export async function buildSite(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const { metafile } = await build({
    ...shared,
    entryPoints: { app: join(page, 'app.tsx'), worker: join(here, 'src', 'worker.ts') },
    outdir: folder,
    platform: 'browser',
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"production"', 'import.meta.page': 'true' },
    // Both compile code at run time, which the content security policy of the page forbids.
    alias: { ndarray: join(page, 'ndarray.ts'), 'ndarray-ops': join(page, 'ndarray.ts') },
  });
  writeFileSync(join(folder, 'index.html'), readFileSync(join(page, 'index.html')));
  writeFileSync(join(folder, 'licenses.txt'), licenses(metafile));
}

/** A package whose code is in the page. */
interface Bundled {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly text: string;
}

/** The packages that a bundle consists of, by name. */
export function bundledPackages({ inputs }: Pick<Metafile, 'inputs'>): Bundled[] {
  const folders = new Set<string>();
  for (const path of Object.keys(inputs)) {
    const [, folder] = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path) ?? [];
    if (folder !== undefined) folders.add(join(root, folder));
  }
  return [...folders].map(bundledIn).sort((a, b) => (a.name < b.name ? -1 : 1));
}

function bundledIn(folder: string): Bundled {
  const { name, version, license, author } = JSON.parse(
    readFileSync(join(folder, 'package.json'), 'utf8'),
  ) as Bundled & {
    author?: string | { name: string };
  };
  // Some packages contain others, each with its license beside it.
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (path) => /(^|\/)licen[cs]e[^/]*$/i.test(path) && !/\.[jt]s$/.test(path) && !path.includes('node_modules'),
  );
  const texts = new Set(files.sort().map((path) => readFileSync(join(folder, path), 'utf8').trim()));
  if (texts.size === 0 && license === 'MIT')
    texts.add(mitOf(typeof author === 'string' ? author : (author?.name ?? name)));
  return { name, version, license: String(license), text: [...texts].join('\n\n') };
}

/** The MIT License, for a package that names it and brings no text along. */
function mitOf(author: string): string {
  const own = readFileSync(join(root, 'LICENSE'), 'utf8').trim();
  return own.replace(/^Copyright .*$/m, `Copyright (c) ${author}`);
}

function licenses(metafile: Metafile): string {
  const own = readFileSync(join(root, 'LICENSE'), 'utf8').trim();
  const parts = [`h5log, h5log-browse\n\n${own}`];
  for (const { name, version, license, text } of bundledPackages(metafile))
    parts.push(`${name} ${version} (${license})\n\n${text || 'The package names its license and has no text of it.'}`);
  return `This page consists of the following packages.\n\n${parts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}

async function buildServer(folder: string): Promise<void> {
  const entryPoints = { server: join(here, 'src', 'server.ts') };
  await build({ ...shared, entryPoints, outdir: folder, platform: 'node', minify: false });
  const { ok, output } = tsc(['-p', join(here, 'tsconfig.build.json'), '--outDir', folder]);
  if (!ok) throw new Error(`tsc cannot emit the declarations:\n${output}`);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const dist = join(here, 'dist');
  const site = join(dist, 'site');
  rmSync(dist, { recursive: true, force: true });
  await Promise.all([buildSite(site), buildServer(dist)]);
  for (const name of readdirSync(site).filter((entry) => existsSync(join(site, entry)))) {
    const bytes = readFileSync(join(site, name));
    const sizes = `${(bytes.length / 1000).toFixed(0)} kB, ${(gzipSync(bytes, { level: 9 }).length / 1000).toFixed(0)} kB gzip`;
    process.stdout.write(`${relative(root, join(site, name))}: ${sizes}\n`);
  }
}
