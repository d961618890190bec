import { readlinkSync } from 'node:fs';
import { basename, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { OpfsHandle } from 'h5log/storage';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { oracle } from '../oracles.ts';
import { startServer } from '../storage/server.ts';

/** What a function in a page or a worker is given: everything that `h5log` and `h5log/storage` export. */
export type H5log = typeof import('h5log') &
  typeof import('h5log/storage') & {
    /** A file in the origin private file system, made if it is missing. */
    opfs(name: string): Promise<OpfsHandle>;
  };

/** Runs where the page or worker is, so it may use nothing of the test but its argument. Both go through JSON. */
export type InBrowser<A, R> = (h5log: H5log, argument: A) => R | Promise<R>;

type Serve = Awaited<ReturnType<typeof startServer>>;

/** Chromium with two servers: one that pages come from, and one of another origin. */
export interface Lab {
  /** Puts a file on the server of the pages. */
  readonly serve: Serve;
  /** Puts a file on the server of another origin. */
  readonly serveElsewhere: Serve;
  readonly browser: Browser;
  /** Opens an empty page at a path of the first server. */
  open(path?: string, options?: PageOptions): Promise<Tab>;
  /** Starts another Chromium whose profile is in a folder and outlives it. `kill` ends it as `kill -9` does. */
  startProfile(folder: string): Promise<{ context: BrowserContext; kill(): Promise<void> }>;
}

interface PageOptions {
  /** HTML for the head of the page. */
  readonly head?: string;
  /** The profile, with an OPFS and a cache of its own; one for all pages without it. */
  readonly context?: BrowserContext;
}

/** An open page. */
export interface Tab {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Runs a function in the page; what it throws arrives as an Error with the text of it. */
  run<R>(work: InBrowser<undefined, R>): Promise<R>;
  run<A, R>(work: InBrowser<A, R>, argument: A): Promise<R>;
  /** Runs a function in a module worker of its own, whose script is at `/workers/worker.js`. */
  runInWorker<R>(work: InBrowser<undefined, R>): Promise<R>;
  runInWorker<A, R>(work: InBrowser<A, R>, argument: A): Promise<R>;
  /** Starts a worker that stays: what functions leave on `globalThis` is there for the next one. */
  startWorker(): Promise<TabWorker>;
}

/** A dedicated module worker of a page. */
export interface TabWorker {
  run<R>(work: InBrowser<undefined, R>): Promise<R>;
  run<A, R>(work: InBrowser<A, R>, argument: A): Promise<R>;
  terminate(): Promise<void>;
}

/** Starts Chromium once for a test file. To be called inside `withOracle('chromium', ...)`. */
export function startLab(): Lab {
  let lab: Lab | undefined;
  const started = (): Lab => {
    if (!lab) throw new Error('the browser has not been started yet');
    return lab;
  };
  beforeAll(async () => {
    lab = await launch();
  });
  afterAll(() => lab?.browser.close());
  return {
    serve: (site) => started().serve(site),
    serveElsewhere: (site) => started().serveElsewhere(site),
    get browser() {
      return started().browser;
    },
    open: (path, options) => started().open(path, options),
    startProfile: (folder) => started().startProfile(folder),
  };
}

const servers = await Promise.all([startServer(), startServer()]);

async function launch(): Promise<Lab> {
  const [serve, serveElsewhere] = servers;
  const [browser, library] = await Promise.all([chromium.launch(launchOptions()), bundle(LIBRARY, '/h5log.js')]);
  const common = await browser.newContext();
  const text = (path: string, type: string, contents: string | Uint8Array): { url: string } =>
    serve({ path, bytes: Buffer.from(contents), sent: { 'content-type': type } });
  for (const { path, bytes } of library) text(path, 'text/javascript', bytes);
  text('/workers/worker.js', 'text/javascript', WORKER);
  return {
    serve,
    serveElsewhere,
    browser,
    startProfile,
    async open(path = '/page.html', { head = '', context = common } = {}) {
      const { url } = text(path, 'text/html', `<!doctype html><title>h5log</title>${head}<script>${PAGE}</script>`);
      const page = await context.newPage();
      await page.goto(url);
      return tab(page, context);
    },
  };
}

function tab(page: Page, context: BrowserContext): Tab {
  const runner =
    (call: string) =>
    async <A, R>(work: InBrowser<A, R>, argument?: A): Promise<R> => {
      const args = `${JSON.stringify(String(work))}, ${JSON.stringify(argument ?? null)}`;
      const { value, error } = (await page.evaluate(`${call}${args})`)) as { value: R; error?: string };
      if (error !== undefined) throw new Error(`in the browser: ${error}`);
      return value;
    };
  const startWorker = async (): Promise<TabWorker> => {
    const number = await page.evaluate('startWorker()');
    return { run: runner(`inWorker(${number}, `), terminate: () => page.evaluate(`workers[${number}].terminate()`) };
  };
  const runInWorker = async <A, R>(work: InBrowser<A, R>, argument?: A): Promise<R> => {
    const worker = await startWorker();
    try {
      return await worker.run(work, argument as A);
    } finally {
      await worker.terminate();
    }
  };
  return { page, context, run: runner('run('), runInWorker, startWorker };
}

function launchOptions(): { executablePath: string; args: string[] } {
  const executablePath = oracle('chromium');
  if (executablePath === undefined) throw new Error('chromium not found; npm run oracles installs it');
  // Root cannot use Chromium's sandbox; containers often give it a /dev/shm that is too small.
  const sandbox = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return { executablePath, args: [...sandbox, '--disable-dev-shm-usage'] };
}

async function startProfile(folder: string): Promise<{ context: BrowserContext; kill(): Promise<void> }> {
  const context = await chromium.launchPersistentContext(folder, launchOptions());
  // Chromium's lock on the profile is a symbolic link whose target ends in the ID of its process.
  const pid = Number(/-(\d+)$/.exec(readlinkSync(join(folder, 'SingletonLock')))?.[1]);
  const ended = new Promise<void>((resolve) => context.once('close', () => resolve()));
  return {
    context,
    async kill() {
      process.kill(pid, 'SIGKILL');
      await ended;
    },
  };
}

const LIBRARY = `
  export * from 'h5log';
  export * from 'h5log/storage';
  export const opfs = async (name) => {
    const folder = await navigator.storage.getDirectory();
    return folder.getFileHandle(name, { create: true });
  };`;

/**
 * A module, or the text of one, with `h5log` as it was built for browsers, as a bundler makes it: its files by their paths, those that it
 * imports when it needs them among them.
 */
export async function bundle(module: URL | string, path: string): Promise<{ path: string; bytes: Uint8Array }[]> {
  const { outputFiles } = await build({
    ...(module instanceof URL
      ? { entryPoints: [{ in: fileURLToPath(module), out: 'entry' }] }
      : { stdin: { contents: module, resolveDir: fileURLToPath(new URL('..', import.meta.url)) } }),
    bundle: true,
    splitting: true,
    write: false,
    outdir: '/out',
    platform: 'browser',
    format: 'esm',
    target: 'es2022',
    external: ['h5wasm'],
    logLevel: 'error',
  });
  return outputFiles.map((file) => {
    const name = basename(file.path);
    const isEntry = name === 'entry.js' || name === 'stdin.js';
    return { path: isEntry ? path : `${posix.dirname(path)}/${name}`.replace('//', '/'), bytes: file.contents };
  });
}

const RUN = `
  async function run(code, argument) {
    try {
      return { value: await (0, eval)('(' + code + ')')(await import('/h5log.js'), argument) };
    } catch (error) {
      return { error: String(error.stack ?? error) };
    }
  }`;

const PAGE = `${RUN}
  const workers = [];
  const waiting = new Map();
  const startWorker = () => {
    const worker = new Worker('/workers/worker.js', { type: 'module' });
    worker.onerror = ({ message }) => console.error('the worker failed: ' + message);
    worker.onmessage = ({ data: { id, ...outcome } }) => waiting.get(id)(outcome);
    return workers.push(worker) - 1;
  };
  const inWorker = (number, code, argument) => new Promise((resolve) => {
    const id = waiting.size;
    waiting.set(id, resolve);
    workers[number].postMessage({ id, code, argument });
  });`;

const WORKER = `${RUN}
  onmessage = async ({ data: { id, code, argument } }) => postMessage({ id, ...await run(code, argument) });`;
