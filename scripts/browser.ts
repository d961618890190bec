import { builtinModules } from 'node:module';
import { basename, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import { type BuildOptions, build, type Metafile } from 'esbuild';

/** What a page may have to load for `import 'h5log'`, minified and compressed, and what it loads in addition when it first writes. */
const limits = { reading: 119_700, writing: 51_200 };

const options = {
  bundle: true,
  write: false,
  platform: 'browser',
  target: 'es2022',
  minify: true,
  metafile: true,
  logLevel: 'error',
} as const satisfies BuildOptions;

interface BundleSize {
  readonly raw: number;
  readonly gzip: number;
  readonly limit: number;
}

/**
 * The size of everything that `h5log` exports, bundled for a page: what is loaded at once, with which everything can be read, and what
 * is loaded when a file is first created or opened for writing. A module of Node in it is an error.
 */
export async function browserBundle(folder: string): Promise<Readonly<Record<keyof typeof limits, BundleSize>>> {
  const stdin = { contents: "export * from 'h5log';", resolveDir: folder };
  const { files, metafile } = await bundle({ ...options, stdin, format: 'esm', splitting: true, outdir: folder });
  const outputs = Object.entries(metafile.outputs);
  const [entry] = outputs.find(([, { entryPoint }]) => entryPoint === '<stdin>') ?? [];
  const atOnce = new Set(entry === undefined ? [] : [entry]);
  for (const path of atOnce)
    for (const { path: other, kind } of metafile.outputs[path]?.imports ?? [])
      if (kind === 'import-statement') atOnce.add(other);
  const sizes = {
    reading: { raw: 0, gzip: 0, limit: limits.reading },
    writing: { raw: 0, gzip: 0, limit: limits.writing },
  };
  for (const [path] of outputs) {
    const contents = files.get(basename(path)) as Uint8Array;
    const size = sizes[atOnce.has(path) ? 'reading' : 'writing'];
    size.raw += contents.length;
    size.gzip += gzipSync(contents, { level: 9 }).length;
  }
  return sizes;
}

/** What web.ts found in a thread without Node. */
interface Answer {
  readonly lines: string[];
  /** The code of the error for bytes that are no HDF5. */
  readonly code: unknown;
  /** The error for a path, which only Node can open. */
  readonly path: string;
  /** The code of the error for several ranks. */
  readonly ranks: unknown;
}

/** Bundles web.ts and runs it, on a Blob of the bytes, in a thread that has lost what only Node has. */
export async function runWithoutNode(folder: string, bytes: Uint8Array): Promise<Answer> {
  const entryPoints = [join(folder, 'web.ts')];
  const { files } = await bundle({ ...options, entryPoints, format: 'iife', globalName: 'web' });
  const [code = new Uint8Array(0)] = files.values();
  const worker = new Worker(withoutNode, { eval: true, workerData: { code: Buffer.from(code).toString(), bytes } });
  return await new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (status) => reject(new Error(`the browser bundle ended with ${status} and no answer`)));
  });
}

async function bundle(options: BuildOptions): Promise<{ files: Map<string, Uint8Array>; metafile: Metafile }> {
  const { outputFiles, metafile } = await build({ ...options, write: false, metafile: true });
  const imported = Object.values(metafile.outputs).flatMap(({ imports }) => imports.map(({ path }) => path));
  const ofNode = imported.filter((path) => path.startsWith('node:') || builtinModules.includes(path));
  if (ofNode.length > 0) throw new Error(`the browser bundle imports ${ofNode.join(', ')}`);
  return { files: new Map(outputFiles.map(({ path, contents }) => [basename(path), contents])), metafile };
}

// In a thread and not in a vm context: there, typed arrays of two realms would meet, as they never do in a page.
const withoutNode = `(() => {
  const { parentPort, workerData } = require('node:worker_threads');
  const evaluate = globalThis.eval;
  for (const name of ['process', 'Buffer', 'global', 'require', 'module', 'exports', 'setImmediate', 'clearImmediate',
    '__filename', '__dirname']) {
    Reflect.deleteProperty(globalThis, name);
    if (name in globalThis) throw new Error(name + ' is still there');
  }
  const web = evaluate(workerData.code + '; web');
  Promise.all([
    web.listing(new Blob([workerData.bytes])),
    web.refusal(new Blob([new Uint8Array(4096)])),
    web.refusalOfPath(),
    web.refusalOfRanks(),
  ]).then(([lines, code, path, ranks]) => parentPort.postMessage({ lines, code, path, ranks }));
})()`;
