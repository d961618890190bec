import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ByteStorage } from 'h5log/storage';
import { afterAll } from 'vitest';

/** What a server does with a file; change it between requests. */
export interface Site {
  bytes: Uint8Array;
  /** Serves ranges of this in place of the bytes: for files that are larger than memory. */
  readonly storage?: ByteStorage;
  /** The path of its URL; a number without it. */
  readonly path?: string;
  /** Sent with every response, for example those of CORS. */
  readonly sent?: Readonly<Record<string, string>>;
  etag?: string;
  modified?: string;
  /** Answers every request with the whole file. */
  noRanges?: boolean;
  /** Sends no more than this of a range. */
  atMost?: number;
  /** Cuts the connection of this many requests in the middle of the body. */
  drop?: number;
  /** Sent in place of the body, whatever the headers say: compressed bytes, for example. */
  body?: (body: Uint8Array) => Uint8Array;
  /** Answers with a body without an end. */
  endless?: boolean;
  /** Answers with a redirection to this URL. */
  redirect?: string;
  /** Answers If-Range with the whole file although nothing changed. */
  noConditions?: boolean;
  /** Waits so many milliseconds before it answers. */
  delay?: number;
  status?: number;
  /** The ranges that were asked for. */
  readonly asked: string[];
  readonly headers: Record<string, unknown>[];
  /** The most requests that were under way at once. */
  most: number;
}

/** A real server on 127.0.0.1; each site gets a URL. */
export async function startServer(): Promise<
  (site: Partial<Site> & { bytes: Uint8Array }) => { site: Site; url: string }
> {
  const sites = new Map<string, Site>();
  const server = createServer((request, response) => {
    const site = sites.get(request.url ?? '');
    if (!site) response.writeHead(404).end('no such file');
    else {
      open++;
      site.most = Math.max(site.most, open);
      response.on('close', () => open--);
      setTimeout(() => answer(site, request, response), site.delay ?? 0);
    }
  });
  let open = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return (options) => {
    const site: Site = { asked: [], headers: [], most: 0, ...options };
    const path = site.path ?? `/${sites.size}`;
    sites.set(path, site);
    return { site, url: `http://127.0.0.1:${port}${path}` };
  };
}

function answer(site: Site, request: IncomingMessage, response: ServerResponse): void {
  site.asked.push(request.headers.range ?? '');
  site.headers.push(request.headers);
  for (const [name, value] of Object.entries(site.sent ?? {})) response.setHeader(name, value);
  if (site.etag) response.setHeader('etag', site.etag);
  if (site.modified) response.setHeader('last-modified', site.modified);
  if (site.status) return void response.writeHead(site.status).end('sorry');
  if (site.redirect) return void response.writeHead(302, { location: site.redirect }).end();
  if (site.storage) return void sendFrom(site.storage, request, response);
  if (site.endless) return void sendForever(response);
  const { length } = site.bytes;
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
  let body = site.bytes;
  // As RFC 9110 says: the range counts only if the file is still the one that the condition names.
  const condition = request.headers['if-range'];
  const isSame =
    condition === undefined || (!site.noConditions && (condition === site.etag || condition === site.modified));
  if (!site.noRanges && first !== undefined && isSame) {
    const start = Number(first);
    const end = Math.min(Number(last) + 1, length, start + (site.atMost ?? Infinity));
    if (start >= length) return void response.writeHead(416, { 'content-range': `bytes */${length}` }).end();
    body = site.body?.(site.bytes.subarray(start, end)) ?? site.bytes.subarray(start, end);
    response.writeHead(206, { 'content-range': `bytes ${start}-${end - 1}/${length}`, 'content-length': body.length });
  } else {
    body = site.body?.(body) ?? body;
    response.writeHead(200, { 'content-length': body.length });
  }
  if (site.drop) {
    site.drop--;
    response.write(body.subarray(0, body.length >> 1), () => response.destroy());
  } else response.end(body);
}

/** A body without an end, until the client has had enough. */
function sendForever(response: ServerResponse): void {
  const piece = Buffer.alloc(2 ** 20);
  response.writeHead(200);
  const send = (): void => {
    while (!response.destroyed && response.write(piece));
  };
  response.on('drain', send);
  send();
}

async function sendFrom(storage: ByteStorage, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const size = await storage.size();
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
  const [start, end] = [Number(first), Math.min(Number(last) + 1, size)];
  const body = new Uint8Array(end - start);
  await storage.read(body, start);
  response.writeHead(206, { 'content-range': `bytes ${start}-${end - 1}/${size}`, 'content-length': body.length });
  response.end(body);
}
