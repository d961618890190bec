import { appendFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { type IncomingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../../../test/temporary.ts';
import { type BrowseOptions, type Browsing, browse } from '../src/server.ts';

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

const site = temporaryDirectory();
for (const name of ['app.js', 'worker.js', 'app.css', 'licenses.txt']) writeFileSync(join(site, name), `of ${name}`);
writeFileSync(join(site, 'index.html'), '<html data-file=""><title>h5log</title>');
writeFileSync(join(site, 'secret.txt'), 'not part of the page');

const folder = temporaryDirectory();
const path = join(folder, 'a "file".h5');
const bytes = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 251));
writeFileSync(path, bytes);
writeFileSync(join(folder, 'beside.h5'), 'beside');

const open: Browsing[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

async function start(options: BrowseOptions = {}): Promise<Browsing> {
  const browsing = await browse(path, { site, ...options });
  open.push(browsing);
  return browsing;
}

/** A request whose path is sent as it is. */
function ask(
  { port }: { port: number },
  to: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path: to, method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      );
    });
    sent.on('error', reject);
    sent.end();
  });
}

const tokenOf = ({ url }: Browsing): string => new URL(url).search;

/** Exchanges the token; gives the folder of the page and the headers of a browser that has the cookie. */
async function enter(browsing: Browsing): Promise<{ folder: string; headers: Record<string, string> }> {
  const { status, headers } = await ask(browsing, `/${tokenOf(browsing)}`);
  expect(status).toBe(303);
  const cookie = String(headers['set-cookie']);
  expect(cookie).toMatch(/^h5log=[0-9a-f]{32}; Path=\/[0-9a-f]{32}\/; HttpOnly; SameSite=Strict$/);
  return { folder: String(headers.location), headers: { cookie: cookie.split(';')[0] as string } };
}

describe('the server of h5log browse', () => {
  test('listens on 127.0.0.1 only, at a free port, with a token of 128 bits', async () => {
    const browsing = await start();
    expect(browsing.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=[0-9a-f]{32}$/);
    const other = await start();
    expect(other.port).not.toBe(browsing.port);
    expect(tokenOf(other)).not.toBe(tokenOf(browsing));
    await expect(
      new Promise((resolve, reject) =>
        connect(browsing.port, '127.0.0.2').once('connect', resolve).once('error', reject),
      ),
    ).rejects.toThrow('ECONNREFUSED');
  });

  test('shows the page and the file to whoever has the cookie', async () => {
    const browsing = await start();
    const { folder, headers } = await enter(browsing);
    const page = await ask(browsing, folder, headers);
    expect(page.status).toBe(200);
    expect(page.body.toString()).toBe('<html data-file="file" data-name="a &#34;file&#34;.h5"><title>h5log</title>');
    expect((await ask(browsing, `${folder}app.js`, headers)).headers['content-type']).toMatch('text/javascript');
    expect((await ask(browsing, `${folder}file`, headers)).body).toEqual(bytes);
  });

  test('sends strict headers with every answer', async () => {
    const browsing = await start();
    const { folder, headers } = await enter(browsing);
    for (const answer of [
      await ask(browsing, folder, headers),
      await ask(browsing, `${folder}file`, { ...headers, range: 'bytes=0-9' }),
      await ask(browsing, '/', {}),
      await ask(browsing, folder, headers, 'POST'),
    ]) {
      const { headers: sent } = answer;
      expect(sent['x-content-type-options']).toBe('nosniff');
      expect(sent['referrer-policy']).toBe('no-referrer');
      expect(sent['cache-control']).toBe('no-store');
      expect(sent['cross-origin-resource-policy']).toBe('same-origin');
      expect(sent['content-security-policy']).toContain("default-src 'none'; script-src 'self';");
      expect(sent['content-security-policy']).not.toContain('unsafe');
      expect(Object.keys(sent).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
  });

  describe('refuses', () => {
    test('requests without a cookie, or with a wrong one', async () => {
      const browsing = await start();
      const { folder } = await enter(browsing);
      for (const cookie of ['', `h5log=${'0'.repeat(32)}`, 'h5log=', 'other=1'])
        for (const to of [folder, `${folder}file`, `${folder}app.js`, '/', '/file'])
          expect((await ask(browsing, to, cookie ? { cookie } : {})).status, `${to} ${cookie}`).toBe(403);
    });

    test('a wrong token, and the right one when it has been used', async () => {
      const browsing = await start();
      for (const search of [
        `?token=${'0'.repeat(32)}`,
        '?token=',
        '?',
        `${tokenOf(browsing)}0`,
        `${tokenOf(browsing)}&x=1`,
      ])
        expect((await ask(browsing, `/${search}`)).status, search).toBe(403);
      await enter(browsing);
      const again = await ask(browsing, `/${tokenOf(browsing)}`);
      expect(again.status).toBe(403);
      expect(again.body.toString()).toContain('start h5log browse again');
      expect(again.headers['set-cookie']).toBeUndefined();
    });

    test('a foreign Host, as after DNS rebinding, even with the token', async () => {
      const browsing = await start();
      const { port } = browsing;
      const hosts = [
        `evil.example:${port}`,
        `localhost:${port}`,
        '127.0.0.1',
        `127.0.0.1:${port + 1}`,
        `127.0.0.1:${port}.evil.example`,
      ];
      for (const host of hosts) expect((await ask(browsing, `/${tokenOf(browsing)}`, { host })).status, host).toBe(403);
      const { folder, headers } = await enter(browsing);
      for (const host of hosts) expect((await ask(browsing, folder, { ...headers, host })).status, host).toBe(403);
    });

    test('a foreign Origin, and what another site started', async () => {
      const browsing = await start();
      const { folder, headers } = await enter(browsing);
      for (const origin of [
        'http://evil.example',
        'null',
        `http://127.0.0.1:${browsing.port + 1}`,
        `https://127.0.0.1:${browsing.port}`,
      ])
        expect((await ask(browsing, `${folder}file`, { ...headers, origin })).status, origin).toBe(403);
      for (const from of ['cross-site', 'same-site', 'something-new'])
        expect((await ask(browsing, `${folder}file`, { ...headers, 'sec-fetch-site': from })).status, from).toBe(403);
      const own = { ...headers, origin: `http://127.0.0.1:${browsing.port}`, 'sec-fetch-site': 'same-origin' };
      expect((await ask(browsing, `${folder}file`, own)).status).toBe(200);
    });

    test('other methods', async () => {
      const browsing = await start();
      const { folder, headers } = await enter(browsing);
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE']) {
        const answer = await ask(browsing, `${folder}file`, headers, method);
        expect(answer.status, method).toBe(405);
        expect(answer.headers.allow).toBe('GET, HEAD');
      }
    });

    test('every path but the few that it knows', async () => {
      const browsing = await start();
      const { folder, headers } = await enter(browsing);
      const paths = [
        `${folder}../file`,
        `${folder}..%2ffile`,
        `${folder}%2e%2e/secret.txt`,
        `${folder}secret.txt`,
        `${folder}./file`,
        `${folder}file?x`,
        `${folder}/file`,
        `${folder}..\\secret.txt`,
        `${folder}external?name=beside.h5`,
        `${folder}%00`,
        '/../../etc/passwd',
        '/etc/passwd',
        'http://127.0.0.1/file',
        '/',
        '*',
      ];
      for (const to of paths) expect([403, 404], to).toContain((await ask(browsing, to, headers)).status);
    });

    test('odd ranges', async () => {
      const browsing = await start();
      const { folder, headers } = await enter(browsing);
      const odd = [
        'bytes=1000-',
        'bytes=1000-2000',
        'bytes=5-4',
        'bytes=-0',
        'bytes=-',
        'bytes=',
        'bytes=0-1,3-4',
        'bytes=0-1, 1-2',
        'bytes=a-b',
        'bytes=-1-2',
        'bytes=0x0-0x9',
        'bytes=1e1-20',
        'items=0-1',
        `bytes=${'9'.repeat(30)}-`,
        'bytes=0-9;',
      ];
      for (const range of odd) {
        const answer = await ask(browsing, `${folder}file`, { ...headers, range });
        expect(answer.status, range).toBe(416);
        expect(answer.headers['content-range']).toBe('bytes */1000');
      }
    });
  });

  test('sends ranges, and for HEAD the headers alone', async () => {
    const browsing = await start();
    const { folder, headers } = await enter(browsing);
    const cases: [string, number, number][] = [
      ['bytes=0-0', 0, 1],
      ['bytes=10-19', 10, 20],
      ['bytes=990-', 990, 1000],
      ['bytes=990-5000', 990, 1000],
      ['bytes=-10', 990, 1000],
      ['bytes=-5000', 0, 1000],
    ];
    for (const [range, start, end] of cases) {
      const { status, headers: sent, body } = await ask(browsing, `${folder}file`, { ...headers, range });
      expect(status).toBe(206);
      expect(sent['content-range']).toBe(`bytes ${start}-${end - 1}/1000`);
      expect(body).toEqual(bytes.subarray(start, end));
    }
    const head = await ask(browsing, `${folder}file`, headers, 'HEAD');
    expect([head.status, head.headers['content-length'], head.body.length]).toEqual([200, '1000', 0]);
  });

  test('answers If-Range by the version of the file, which changes when it grows', async () => {
    const growing = join(folder, 'growing.h5');
    writeFileSync(growing, bytes);
    const browsing = await browse(growing, { site });
    open.push(browsing);
    const { folder: at, headers } = await enter(browsing);
    const { etag = '' } = (await ask(browsing, `${at}file`, headers, 'HEAD')).headers;
    const part = { ...headers, range: 'bytes=0-9', 'if-range': etag };
    expect((await ask(browsing, `${at}file`, part)).status).toBe(206);
    appendFileSync(growing, 'more');
    const whole = await ask(browsing, `${at}file`, part);
    expect([whole.status, whole.body.length]).toEqual([200, 1004]);
    expect(whole.headers.etag).not.toBe(etag);
  });

  test('serves files beside it only with allowExternal, and only from its folder', async () => {
    const outside = temporaryDirectory();
    writeFileSync(join(outside, 'outside.h5'), 'outside');
    mkdirSync(join(folder, 'below'), { recursive: true });
    writeFileSync(join(folder, 'below', 'deep.h5'), 'deep');
    symlinkSync(join(outside, 'outside.h5'), join(folder, 'leads-out.h5'));
    const browsing = await start({ allowExternal: true });
    const { folder: at, headers } = await enter(browsing);
    const other = (name: string): Promise<Answer> =>
      ask(browsing, `${at}external?name=${encodeURIComponent(name)}`, headers);
    expect((await other('beside.h5')).body.toString()).toBe('beside');
    expect((await other('below/deep.h5')).body.toString()).toBe('deep');
    expect((await ask(browsing, `${at}external?name=beside.h5`)).status).toBe(403);
    for (const name of [
      '',
      '..',
      '.',
      'below',
      '/etc/passwd',
      '../x',
      join(outside, 'outside.h5'),
      'leads-out.h5',
      'missing.h5',
      'a\0b',
    ])
      expect((await other(name)).status, name).toBe(404);
  });

  test('says what is wrong with a file, and leaves nothing open', async () => {
    await expect(browse(join(folder, 'missing.h5'), { site })).rejects.toThrow('ENOENT');
    await expect(browse(folder, { site })).rejects.toThrow('is not a file');
    await expect(browse(path, { site: folder })).rejects.toThrow('npm run browse:build');
    const { port } = await start();
    await expect(browse(path, { site, port })).rejects.toThrow('EADDRINUSE');
  });

  test('accepts the addresses of the machine when it listens on all of them', async () => {
    const browsing = await start({ host: '0.0.0.0' });
    expect((await ask(browsing, '/', { host: `127.0.0.1:${browsing.port}` })).body.toString()).toContain(
      'h5log browse',
    );
    expect((await ask(browsing, '/', { host: `0.0.0.0:${browsing.port}` })).body.toString()).toBe('Wrong Host.\n');
  });
});
