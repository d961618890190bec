import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll } from 'vitest';

/** What a server does with a file; change it between requests. */
export interface Site {
  bytes: Uint8Array;
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
  status?: number;
  /** The ranges that were asked for. */
  readonly asked: string[];
  readonly headers: Record<string, unknown>[];
}

/** A real server on 127.0.0.1; each site gets a URL. */
export async function startServer(): Promise<
  (site: Partial<Site> & { bytes: Uint8Array }) => { site: Site; url: string }
> {
  const sites = new Map<string, Site>();
  const server = createServer((request, response) => {
    const site = sites.get(request.url ?? '');
    if (!site) response.writeHead(404).end('no such file');
    else answer(site, request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return (options) => {
    const site: Site = { asked: [], headers: [], ...options };
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
  const { length } = site.bytes;
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
  let body = site.bytes;
  if (!site.noRanges && first !== undefined) {
    const start = Number(first);
    const end = Math.min(Number(last) + 1, length, start + (site.atMost ?? Infinity));
    if (start >= length) return void response.writeHead(416, { 'content-range': `bytes */${length}` }).end();
    body = site.bytes.subarray(start, end);
    response.writeHead(206, { 'content-range': `bytes ${start}-${end - 1}/${length}`, 'content-length': body.length });
  } else response.writeHead(200, { 'content-length': length });
  if (site.drop) {
    site.drop--;
    response.write(body.subarray(0, body.length >> 1), () => response.destroy());
  } else response.end(body);
}
