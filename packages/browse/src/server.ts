import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { type FileHandle, open, readFile, realpath } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { basename, dirname, resolve, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';

export interface BrowseOptions {
  /** 0, the default: a free port. */
  port?: number;
  /** The address to listen on; 127.0.0.1 unless it is said. */
  host?: string;
  /** Serves the files of the same folder, and below it, that external links and virtual datasets name. */
  allowExternal?: boolean;
  /** The folder of the page; that of the package unless it is said. */
  site?: string;
}

/** A server that shows one file. */
export interface Browsing {
  /** Opens the page in one browser: the token in it can be used once. */
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

/** The page: what a browser may ask for by name. Nothing else is looked up on the disk. */
const PAGE: Readonly<Record<string, string>> = {
  'index.html': 'text/html; charset=utf-8',
  'app.js': 'text/javascript; charset=utf-8',
  'worker.js': 'text/javascript; charset=utf-8',
  'app.css': 'text/css; charset=utf-8',
  'licenses.txt': 'text/plain; charset=utf-8',
};

/**
 * Scripts, styles and requests only from this server, nothing inline, no eval. Images as data: icons in the style sheet; as blob: pictures
 * that the page makes itself.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "worker-src 'self'",
  "connect-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
};

/** Files that may be open at once for external links. */
const MOST_EXTERNAL = 64;

/**
 * Serves one file, and the page that shows it, until it is closed.
 *
 * @example const { url, close } = await browse('run.h5');
 */
export async function browse(path: string, options: BrowseOptions = {}): Promise<Browsing> {
  const { port = 0, host = '127.0.0.1', allowExternal = false, site = DEFAULT_SITE } = options;
  const file = await openRegular(path);
  let pages: ReadonlyMap<string, Buffer>;
  try {
    pages = await readSite(site, basename(path), allowExternal);
  } catch (error) {
    await file.close();
    throw error;
  }
  const shown = new Shown(file, pages, allowExternal ? new Neighbours(await realpath(dirname(resolve(path)))) : null);
  const server = createServer((request, response) => {
    shown.answer(request, response).catch(() => response.destroy());
  });
  // A browser needs a few connections; nobody else has a reason to hold one open.
  server.headersTimeout = 10_000;
  try {
    await new Promise<void>((done, failed) => server.once('error', failed).listen(port, host, () => done()));
  } catch (error) {
    await shown.close();
    throw error;
  }
  const { port: real } = server.address() as AddressInfo;
  shown.hosts = hostsOf(host, real);
  return {
    url: `http://${shown.hosts[0]}/?token=${shown.token}`,
    port: real,
    async close() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
      await shown.close();
    },
  };
}

// The same from src/ and from dist/.
const DEFAULT_SITE = fileURLToPath(new URL('../dist/site/', import.meta.url));

/** The values of Host that are meant for this server: any other is a name that somebody made point here. */
function hostsOf(host: string, port: number): string[] {
  const isWildcard = host === '0.0.0.0' || host === '::';
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? []);
  const names = isWildcard ? ['127.0.0.1', ...addresses.filter((address) => address !== '127.0.0.1')] : [host];
  return names.map((name) => `${isIP(name) === 6 ? `[${name}]` : name}${port === 80 ? '' : `:${port}`}`);
}

async function openRegular(path: string): Promise<FileHandle> {
  // Without O_NONBLOCK, opening a pipe would wait for somebody to write into it.
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  const stat = await file.stat();
  if (stat.isFile()) return file;
  await file.close();
  throw new Error(`${path} is not a file`);
}

async function readSite(site: string, name: string, allowExternal: boolean): Promise<Map<string, Buffer>> {
  const pages = new Map<string, Buffer>();
  for (const page of Object.keys(PAGE)) {
    try {
      pages.set(page, await readFile(resolve(site, page)));
    } catch (cause) {
      throw new Error(`${resolve(site, page)} is missing; npm run browse:build makes it`, { cause });
    }
  }
  const html = (pages.get('index.html') as Buffer).toString();
  const facts = `data-file="file" data-name="${escaped(name)}"${allowExternal ? ' data-external="external"' : ''}`;
  pages.set('index.html', Buffer.from(html.replace('data-file=""', () => facts)));
  return pages;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

/** A secret of 128 bits. */
const secret = (): string => randomBytes(16).toString('hex');

function isSame(given: string | undefined, expected: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return given !== undefined && timingSafeEqual(digest(given), digest(expected));
}

/** One open file, and who may read it. */
class Shown {
  readonly token = secret();
  /** The values of Host that are accepted; the first is that of the URL. */
  hosts: readonly string[] = [];
  readonly #file: FileHandle;
  readonly #pages: ReadonlyMap<string, Buffer>;
  readonly #neighbours: Neighbours | null;
  readonly #cookie = secret();
  /** The folder of every URL: cookies are sent to all ports of a host, but not to another folder. */
  readonly #folder = `/${secret()}/`;
  #isTokenUsed = false;

  constructor(file: FileHandle, pages: ReadonlyMap<string, Buffer>, neighbours: Neighbours | null) {
    this.#file = file;
    this.#pages = pages;
    this.#neighbours = neighbours;
  }

  async close(): Promise<void> {
    await this.#file.close();
    await this.#neighbours?.close();
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    const refusal = this.#refusal(request);
    if (refusal) {
      if (refusal.status === 405) response.setHeader('allow', 'GET, HEAD');
      say(response, refusal.status, refusal.why);
      return;
    }
    const url = request.url ?? '';
    if (url.startsWith('/?')) this.#exchange(url, response);
    else if (!isSame(cookieOf(request), this.#cookie))
      say(response, 403, 'Open the address that h5log browse printed; it works once, in one browser.');
    else await this.#serve(url, request, response);
  }

  /** Why a request does not come from the page or the address bar. */
  #refusal({ method, headers }: IncomingMessage): { status: number; why: string } | undefined {
    const { host, origin } = headers;
    if (host === undefined || !this.hosts.includes(host)) return { status: 403, why: 'Wrong Host.' };
    if (method !== 'GET' && method !== 'HEAD') return { status: 405, why: 'Only GET and HEAD.' };
    if (origin !== undefined && origin !== `http://${host}`) return { status: 403, why: 'Wrong Origin.' };
    const site = headers['sec-fetch-site'];
    if (site !== undefined && site !== 'same-origin' && site !== 'none')
      return { status: 403, why: 'Another site sent you here: copy the address into the address bar.' };
    return undefined;
  }

  /** The token, which anybody may read who sees the command line of the browser, is worth a cookie once. */
  #exchange(url: string, response: ServerResponse): void {
    const [, token] = /^\/\?token=([0-9a-f]{32})$/.exec(url) ?? [];
    if (!isSame(token, this.token) || this.#isTokenUsed) {
      say(response, 403, 'This address has been used, or is wrong; start h5log browse again for a new one.');
      return;
    }
    this.#isTokenUsed = true;
    response.setHeader('set-cookie', `h5log=${this.#cookie}; Path=${this.#folder}; HttpOnly; SameSite=Strict`);
    response.writeHead(303, { location: this.#folder }).end();
  }

  async #serve(url: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const name = url.startsWith(this.#folder) ? url.slice(this.#folder.length) || 'index.html' : '';
    const page = this.#pages.get(name);
    if (page) {
      response.writeHead(200, { 'content-type': PAGE[name], 'content-length': page.length });
      response.end(request.method === 'HEAD' ? undefined : page);
    } else if (name === 'file') await sendFile(this.#file, request, response);
    else if (name.startsWith('external?')) await this.#serveOther(name, request, response);
    else say(response, 404, 'Not here.');
  }

  async #serveOther(name: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const file = await this.#neighbours?.open(new URLSearchParams(name.slice('external?'.length)).get('name') ?? '');
    if (file) await sendFile(file, request, response);
    else say(response, 404, 'Not here.');
  }
}

function cookieOf({ headers }: IncomingMessage): string | undefined {
  return /(?:^|;\s*)h5log=([0-9a-f]{32})(?:;|$)/.exec(headers.cookie ?? '')?.[1];
}

function say(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' }).end(`${text}\n`);
}

/** Files that another one names: those in its folder and below, wherever symbolic links lead. */
class Neighbours {
  readonly #folder: string;
  readonly #open = new Map<string, Promise<FileHandle>>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** undefined if there is no such file here. */
  async open(name: string): Promise<FileHandle | undefined> {
    if (name === '' || name.includes('\0')) return undefined;
    try {
      const real = await realpath(resolve(this.#folder, name));
      if (!real.startsWith(this.#folder + (this.#folder.endsWith(sep) ? '' : sep))) return undefined;
      let opening = this.#open.get(real);
      if (!opening) {
        if (this.#open.size >= MOST_EXTERNAL) return undefined;
        opening = openRegular(real);
        this.#open.set(real, opening);
      }
      return await opening;
    } catch {
      return undefined;
    }
  }

  async close(): Promise<void> {
    for (const opening of this.#open.values()) await opening.then((file) => file.close()).catch(() => undefined);
  }
}

/** All of a file, or one range of it. */
async function sendFile(file: FileHandle, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { size, ino, mtimeMs } = await file.stat();
  const etag = `"${ino.toString(36)}-${size.toString(36)}-${Math.round(mtimeMs * 1000).toString(36)}"`;
  const { range, 'if-range': condition } = request.headers;
  const asked = range !== undefined && (condition === undefined || condition === etag) ? rangeIn(range, size) : null;
  response.setHeader('accept-ranges', 'bytes');
  response.setHeader('etag', etag);
  if (asked === undefined) {
    response.setHeader('content-range', `bytes */${size}`);
    say(response, 416, 'One range of bytes that the file has, please.');
    return;
  }
  const [start, end] = asked ?? [0, size];
  response.setHeader('content-type', 'application/octet-stream');
  response.setHeader('content-length', end - start);
  if (asked) response.setHeader('content-range', `bytes ${start}-${end - 1}/${size}`);
  response.writeHead(asked ? 206 : 200);
  if (request.method === 'HEAD' || end === start) response.end();
  else await pipeline(createReadStream('', { fd: file.fd, start, end: end - 1, autoClose: false }), response);
}

/** The bytes from the first number up to, but not including, the second; undefined for anything but one range that is there. */
function rangeIn(text: string, size: number): [number, number] | undefined {
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(text) ?? [];
  if (first === '' && last === '') return undefined;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1);
  return start < end ? [start, end] : undefined;
}
