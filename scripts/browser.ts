import { builtinModules } from 'node:module';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import { type BuildOptions, build } from 'esbuild';

/** What a page may have to load for `import 'h5log'`, minified and compressed. It should become 120 kB again. */
const limit = 162_900;

const options = {
  bundle: true,
  write: false,
  platform: 'browser',
  target: 'es2022',
  minify: true,
  metafile: true,
  logLevel: 'error',
} as const satisfies BuildOptions;

/** The size of everything that `h5log` exports, bundled for a page. A module of Node in it is an error. */
export async function browserBundle(folder: string): Promise<{ raw: number; gzip: number; limit: number }> {
  const stdin = { contents: "export * from 'h5log';", resolveDir: folder };
  const code = await bundle({ ...options, stdin, format: 'esm' });
  return { raw: code.length, gzip: gzipSync(code, { level: 9 }).length, limit };
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
  const code = await bundle({ ...options, entryPoints, format: 'iife', globalName: 'web' });
  const worker = new Worker(withoutNode, { eval: true, workerData: { code: Buffer.from(code).toString(), bytes } });
  return await new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (status) => reject(new Error(`the browser bundle ended with ${status} and no answer`)));
  });
}

async function bundle(options: BuildOptions): Promise<Uint8Array> {
  const { outputFiles, metafile } = await build(options);
  const imported = Object.values(metafile?.outputs ?? {}).flatMap(({ imports }) => imports.map(({ path }) => path));
  const ofNode = imported.filter((path) => path.startsWith('node:') || builtinModules.includes(path));
  if (ofNode.length > 0) throw new Error(`the browser bundle imports ${ofNode.join(', ')}`);
  const [output] = outputFiles ?? [];
  if (output === undefined) throw new Error('esbuild wrote no bundle');
  return output.contents;
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
