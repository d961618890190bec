import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { H5LogError } from '../../base/errors.ts';
import { command } from '../command.ts';

/** What is used of the package h5log-browse. Declared again, so that h5log compiles without it. */
interface BrowsePackage {
  browse(
    path: string,
    options: { port?: number; host?: string; allowExternal?: boolean },
  ): Promise<{ readonly url: string; close(): Promise<void> }>;
}

const PACKAGE = 'h5log-browse';
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export default command({
  name: 'browse',
  summary: 'open a page that shows a file: tree, tables, curves, images, and the history of a log',
  details: [
    'Needs the package h5log-browse (npm install h5log-browse). Serves the file, and nothing else, to one browser on this machine until the command is ended. A log that is being written is followed.',
    'The address works once: the browser gets a cookie for it. Over ssh, use --port and --no-open, forward the port, and open the address.',
    '--host makes the file readable from other machines, without encryption, for whoever sees the address first. --allow-external lets external links and virtual datasets show files of the same folder, and below it.',
  ],
  positionals: [{ name: 'FILE', help: 'a log or an ordinary file' }],
  options: {
    port: { type: 'count', value: 'N', default: 0, help: 'the port; 0: any that is free' },
    'no-open': { type: 'flag', help: 'print the address and open no browser' },
    host: { type: 'text', value: 'ADDRESS', default: '127.0.0.1', help: 'the address to listen on' },
    'allow-external': { type: 'flag', help: 'show files that FILE names, too' },
  },
  examples: [
    { command: 'browse run.h5', says: 'shows run.h5 in the browser' },
    { command: 'browse --port 8000 --no-open run.h5', says: 'for ssh -L 8000:127.0.0.1:8000' },
  ],
  async run({ values, positionals, context }) {
    if (context.comm.rank > 0) return 0;
    const path = positionals[0] as string;
    const { port, host } = values;
    const { browse } = await load();
    const server = await started(path, () => browse(path, { port, host, allowExternal: values['allow-external'] }));
    const ended = new Promise<void>((resolve) => {
      for (const signal of SIGNALS) process.once(signal, () => resolve());
    });
    context.print(`${path}: ${server.url}`);
    if (!isLoopback(host))
      process.stderr.write(`h5log: warning: whoever reaches ${host} and sees this address first can read the file\n`);
    context.print('Ctrl+C ends it.');
    if (!values['no-open']) openBrowser(server.url);
    await ended;
    await server.close();
    return 0;
  },
});

/** From where h5log is, or from the project in the working directory: npx keeps h5log in a folder of its own. */
async function load(): Promise<BrowsePackage> {
  const places = [
    (): string => import.meta.resolve(PACKAGE),
    (): string => pathToFileURL(createRequire(join(process.cwd(), 'package.json')).resolve(PACKAGE)).href,
  ];
  for (const place of places) {
    let url: string;
    try {
      url = place();
    } catch {
      continue;
    }
    return (await import(url)) as BrowsePackage;
  }
  throw new H5LogError('UNSUPPORTED', `h5log browse needs the package ${PACKAGE}; npm install ${PACKAGE}`);
}

async function started<T>(path: string, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new H5LogError('NOT_FOUND', `${path} does not exist`, { file: path, cause });
    throw new H5LogError('STORAGE', `${path} cannot be shown: ${message}`, { file: path, cause });
  }
}

const isLoopback = (host: string): boolean => /^(127\.|::1$|localhost$)/.test(host);

/** Starts the user's browser. Where there is none, the address that was printed is enough. */
function openBrowser(url: string): void {
  const [name, ...args] =
    process.platform === 'darwin'
      ? ['open', url]
      : process.platform === 'win32'
        ? ['rundll32', 'url.dll,FileProtocolHandler', url]
        : ['xdg-open', url];
  const child = spawn(name as string, args, { stdio: 'ignore', detached: true });
  child.on('error', () => {});
  child.unref();
}
