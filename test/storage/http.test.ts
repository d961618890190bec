import { gzipSync } from 'node:zlib';
import { type CreateOptions, File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { httpStorage } from '../../src/storage/http.ts';
import type { ByteStorage } from '../../src/storage/storage.ts';
import { storageConformance } from './conformance.ts';
import { errorOf, expectBytes, pattern } from './scratch.ts';
import { type Site, startServer } from './server.ts';

const serve = await startServer();
const BLOCK = 65_536;

storageConformance('a URL', (bytes) => httpStorage(serve({ bytes, etag: '"1"' }).url), { readOnly: true });
storageConformance('a URL without ranges', (bytes) => httpStorage(new URL(serve({ bytes, noRanges: true }).url)), {
  readOnly: true,
});
storageConformance('a URL that sends short ranges', (bytes) => httpStorage(serve({ bytes, atMost: 10_000 }).url), {
  readOnly: true,
});

async function readAt(storage: ByteStorage, offset: number, length: number): Promise<Uint8Array> {
  const into = new Uint8Array(length);
  return into.subarray(0, await storage.read(into, offset));
}

describe('requests', () => {
  test('making a storage makes none; the first block and the size come with one', async () => {
    const { site, url } = serve({ bytes: pattern(300_000) });
    const storage = httpStorage(url);
    expect(site.asked).toEqual([]);
    expect(await storage.size()).toBe(300_000);
    expectBytes(await readAt(storage, 10, 1000), pattern(300_000).subarray(10, 1010));
    expect(site.asked).toEqual(['bytes=0-65535']);
  });

  test('many small reads near one another cost one', async () => {
    const { site, url } = serve({ bytes: pattern(300_000) });
    const storage = httpStorage(url);
    await Promise.all([0, 1, 2, 3].map((i) => readAt(storage, BLOCK + i * 100, 50)));
    for (let i = 0; i < 100; i++) await readAt(storage, BLOCK + i * 600, 8);
    expect(site.asked).toEqual(['bytes=0-65535', 'bytes=65536-131071']);
  });

  test('missing neighbours come together, the last one as long as it is', async () => {
    const { site, url } = serve({ bytes: pattern(300_000) });
    const storage = httpStorage(url);
    await readAt(storage, 2 * BLOCK, 1);
    expectBytes(await readAt(storage, 100, 400_000), pattern(300_000).subarray(100));
    expect(site.asked).toEqual(['bytes=0-65535', 'bytes=131072-196607', 'bytes=65536-131071', 'bytes=196608-299999']);
  });

  test('a large read is one request of exactly its bytes and pushes nothing out', async () => {
    const bytes = pattern(6 * 2 ** 20);
    const { site, url } = serve({ bytes });
    const storage = httpStorage(url);
    expectBytes(await readAt(storage, 7, 5 * 2 ** 20), bytes.subarray(7, 7 + 5 * 2 ** 20));
    await readAt(storage, 0, 100);
    expect(site.asked).toEqual(['bytes=0-65535', `bytes=7-${7 + 5 * 2 ** 20 - 1}`]);
  });

  test('at most 64 blocks are kept, those used last', async () => {
    const { site, url } = serve({ bytes: pattern(70 * BLOCK) });
    const storage = httpStorage(url);
    for (let block = 69; block > 0; block--) {
      await readAt(storage, block * BLOCK, 1);
      await readAt(storage, 0, 1);
    }
    expect(site.asked.length).toBe(70);
    await readAt(storage, 0, 1);
    await readAt(storage, 1 * BLOCK, 1);
    expect(site.asked.length).toBe(70);
    await readAt(storage, 69 * BLOCK, 1);
    expect(site.asked.length).toBe(71);
  });

  test('blocks that are asked for one after the other are read ahead', async () => {
    const bytes = pattern(40 * BLOCK);
    const { site, url } = serve({ bytes });
    const storage = httpStorage(url);
    for (let at = 0; at < bytes.length; at += 1000)
      expectBytes(await readAt(storage, at, 8), bytes.subarray(at, at + 8));
    expect(site.asked.length).toBeLessThan(14);
    // Elsewhere nothing is guessed.
    const other = serve({ bytes });
    const jumping = httpStorage(other.url);
    for (const block of [30, 20, 10]) await readAt(jumping, block * BLOCK, 8);
    expect(other.site.asked.slice(1)).toEqual([
      'bytes=1966080-2031615',
      'bytes=1310720-1376255',
      'bytes=655360-720895',
    ]);
  });

  test('no more than six are under way, however many reads there are', async () => {
    const bytes = pattern(40 * BLOCK);
    const { site, url } = serve({ bytes, delay: 5 });
    const storage = httpStorage(url);
    const reads = Array.from({ length: 20 }, (_, i) => readAt(storage, 2 * i * BLOCK, 10));
    (await Promise.all(reads)).forEach((read, i) => {
      expectBytes(read, bytes.subarray(2 * i * BLOCK, 2 * i * BLOCK + 10));
    });
    expect(site.asked).toHaveLength(20);
    expect(site.most).toBe(6);
  });

  test('name the version that they are for, as far as If-Range allows it', async () => {
    const modified = 'Mon, 01 Jan 2024 00:00:00 GMT';
    const pinned = async (options: Partial<Site>): Promise<unknown> => {
      const { site, url } = serve({ bytes: pattern(300_000), ...options });
      const storage = httpStorage(url);
      expectBytes(await readAt(storage, 2 * BLOCK, 10), pattern(300_000).subarray(2 * BLOCK, 2 * BLOCK + 10));
      expect(site.headers[0]).not.toHaveProperty('if-range');
      return site.headers[1]?.['if-range'];
    };
    expect(await pinned({ etag: '"1"', modified })).toBe('"1"');
    expect(await pinned({ modified })).toBe(modified);
    expect(await pinned({ etag: 'W/"1"', modified })).toBe(undefined);
    expect(await pinned({})).toBe(undefined);
  });

  test('go without If-Range to a server that does not understand it', async () => {
    const { site, url } = serve({ bytes: pattern(300_000), etag: '"1"', noConditions: true });
    const storage = httpStorage(url);
    expectBytes(await readAt(storage, BLOCK, 10), pattern(300_000).subarray(BLOCK, BLOCK + 10));
    expectBytes(await readAt(storage, 3 * BLOCK, 10), pattern(300_000).subarray(3 * BLOCK, 3 * BLOCK + 10));
    expect(site.headers.map((headers) => headers['if-range'])).toEqual([undefined, '"1"', undefined, undefined]);
  });

  test('follow redirections', async () => {
    const { url } = serve({ bytes: pattern(300_000), etag: '"1"' });
    const moved = serve({ bytes: new Uint8Array(0), redirect: url });
    const storage = httpStorage(moved.url);
    expectBytes(await readAt(storage, 2 * BLOCK, 10), pattern(300_000).subarray(2 * BLOCK, 2 * BLOCK + 10));
    const { url: other } = serve({ bytes: pattern(300_000), etag: '"2"' });
    moved.site.redirect = other;
    expect(await errorOf(() => readAt(storage, BLOCK, 10))).toMatchObject({ code: 'STORAGE' });
  });

  test('carry the given headers and go through the given fetch', async () => {
    const { site, url } = serve({ bytes: pattern(10) });
    let calls = 0;
    const counting: typeof fetch = (...args) => {
      calls++;
      return fetch(...args);
    };
    await httpStorage(url, { headers: { authorization: 'Bearer x' }, fetch: counting }).size();
    expect(calls).toBe(1);
    expect(site.headers[0]).toMatchObject({ authorization: 'Bearer x', 'accept-encoding': 'identity' });
  });
});

describe('what goes wrong', () => {
  test('404 and 410 give NOT_FOUND', async () => {
    const { url } = serve({ bytes: pattern(1), status: 410 });
    for (const missing of [url, url.replace(/\d+$/, 'nothing')]) {
      expect(await errorOf(() => httpStorage(missing).size())).toMatchObject({ code: 'NOT_FOUND', file: missing });
    }
  });

  test('another status gives STORAGE naming it, and is not asked again', async () => {
    const { site, url } = serve({ bytes: pattern(1), status: 403 });
    const storage = httpStorage(url);
    expect(await errorOf(() => storage.size())).toMatchObject({
      code: 'STORAGE',
      message: expect.stringContaining('403'),
    });
    expect(site.asked.length).toBe(1);
    delete site.status;
    expect(await storage.size()).toBe(1);
  });

  test('a large file from a server without ranges gives STORAGE saying so', async () => {
    const { url } = serve({ bytes: new Uint8Array(64 * 2 ** 20 + 1), noRanges: true });
    const message = expect.stringContaining('does not support range requests');
    expect(await errorOf(() => httpStorage(url).size())).toMatchObject({ code: 'STORAGE', message });
  });

  test.each([
    ['its ETag', { etag: '"1"' }, { etag: '"2"' }],
    ['its date', { modified: 'Mon, 01 Jan 2024 00:00:00 GMT' }, { modified: 'Mon, 01 Jan 2024 00:00:01 GMT' }],
    ['its size, growing', {}, { bytes: pattern(300_001) }],
    ['its size, shrinking', {}, { bytes: pattern(100) }],
    ['its ETag, then sent whole', { etag: '"1"' }, { etag: '"2"', noRanges: true }],
  ])('a file that changes %s gives STORAGE', async (_, before, after) => {
    const { site, url } = serve({ bytes: pattern(300_000), ...before });
    const storage = httpStorage(url);
    await readAt(storage, BLOCK, 10);
    Object.assign(site, after);
    const message = expect.stringContaining('changed on the server');
    expect(await errorOf(() => readAt(storage, 3 * BLOCK, 10))).toMatchObject({ code: 'STORAGE', message });
  });

  test('one broken connection is made good, two are STORAGE with the cause, and later reads try again', async () => {
    const { site, url } = serve({ bytes: pattern(300_000), drop: 1 });
    const storage = httpStorage(url);
    expect(await storage.size()).toBe(300_000);
    site.drop = 1;
    expectBytes(await readAt(storage, BLOCK, 100), pattern(300_000).subarray(BLOCK, BLOCK + 100));
    site.drop = 2;
    const error = await errorOf(() => readAt(storage, 2 * BLOCK, 100));
    expect(error).toMatchObject({ code: 'STORAGE', offset: 2 * BLOCK, cause: expect.any(Error) });
    expectBytes(await readAt(storage, 2 * BLOCK, 100), pattern(300_000).subarray(2 * BLOCK, 2 * BLOCK + 100));
  });

  test('compressed ranges give STORAGE saying so; a compressed file is read whole', async () => {
    const sent = { 'content-encoding': 'gzip' };
    const body = (bytes: Uint8Array): Uint8Array => gzipSync(bytes);
    const ranges = serve({ bytes: pattern(300_000), sent, body });
    const message = expect.stringContaining('Content-Encoding: gzip');
    expect(await errorOf(() => httpStorage(ranges.url).size())).toMatchObject({ code: 'STORAGE', message });
    const whole = serve({ bytes: pattern(300_000), sent, body, noRanges: true });
    const storage = httpStorage(whole.url);
    expect(await storage.size()).toBe(300_000);
    expectBytes(await readAt(storage, 70_000, 10), pattern(300_000).subarray(70_000, 70_010));
    const later = serve({ bytes: pattern(300_000) });
    const begun = httpStorage(later.url);
    await begun.size();
    Object.assign(later.site, { sent, body });
    expect(await errorOf(() => readAt(begun, BLOCK, 10))).toMatchObject({ code: 'STORAGE', message });
  });

  test.each([
    ['too long', (bytes: Uint8Array) => Buffer.concat([bytes, bytes])],
    ['too short', (bytes: Uint8Array) => bytes.subarray(1)],
    ['empty', () => new Uint8Array(0)],
  ])('a body that is %s for its Content-Range gives STORAGE', async (_, body) => {
    const { site, url } = serve({ bytes: pattern(300_000) });
    const storage = httpStorage(url);
    await storage.size();
    site.body = body;
    expect(await errorOf(() => readAt(storage, BLOCK, 10))).toMatchObject({ code: 'STORAGE' });
    expect(await errorOf(() => httpStorage(url).size())).toMatchObject({ code: 'STORAGE' });
  });

  test('a body without an end is not read to its end', async () => {
    const { url } = serve({ bytes: pattern(10), endless: true });
    const message = expect.stringContaining('does not support range requests');
    expect(await errorOf(() => httpStorage(url).size())).toMatchObject({ code: 'STORAGE', message });
    const { site, url: later } = serve({ bytes: pattern(300_000) });
    const storage = httpStorage(later);
    await storage.size();
    site.endless = true;
    expect(await errorOf(() => readAt(storage, BLOCK, 10))).toMatchObject({ code: 'STORAGE' });
  });

  test('416 to the first request gives STORAGE, unless the file is empty', async () => {
    const { url } = serve({ bytes: pattern(10), status: 416 });
    expect(await errorOf(() => httpStorage(url).size())).toMatchObject({ code: 'STORAGE' });
    expect(await httpStorage(serve({ bytes: new Uint8Array(0) }).url).size()).toBe(0);
  });

  test('a redirection to itself gives STORAGE', async () => {
    const { site, url } = serve({ bytes: pattern(10) });
    site.redirect = url;
    expect(await errorOf(() => httpStorage(url).size())).toMatchObject({ code: 'STORAGE' });
  });

  test('connections that are cut every time give STORAGE', async () => {
    const { url } = serve({ bytes: pattern(300_000), drop: 1000 });
    expect(await errorOf(() => httpStorage(url).size())).toMatchObject({ code: 'STORAGE' });
  });

  test('nobody listening gives STORAGE', async () => {
    expect(await errorOf(() => httpStorage('http://127.0.0.1:1/x').size())).toMatchObject({ code: 'STORAGE' });
  });

  test('an answer with the wrong range gives STORAGE, not wrong bytes', async () => {
    const { url } = serve({ bytes: pattern(300_000) });
    let calls = 0;
    const shifting: typeof fetch = (input, init) => {
      const headers = calls++ === 0 ? init?.headers : { range: 'bytes=0-65535' };
      return fetch(input, { ...init, ...(headers ? { headers } : {}) });
    };
    const storage = httpStorage(url, { fetch: shifting });
    expect(await errorOf(() => readAt(storage, BLOCK, 10))).toMatchObject({ code: 'STORAGE' });
  });

  test('close ends what is in flight with CLOSED', async () => {
    const never: typeof fetch = (_, init) =>
      new Promise((_, reject) => init?.signal?.addEventListener('abort', () => reject(new Error('aborted'))));
    const storage = httpStorage('http://127.0.0.1/', { fetch: never });
    const size = errorOf(() => storage.size());
    await storage.close();
    expect(await size).toMatchObject({ code: 'CLOSED' });
  });
});

describe('a log that grows on a server', () => {
  /** A writer in memory, and the site that serves what it has committed. */
  async function growing(options: Partial<Site> = {}) {
    const storage = memoryStorage();
    const file = await File.create(storage);
    const x = file.createDataset('x', { dtype: 'int32', shape: [0], maxShape: [null] });
    const append = async (count: number): Promise<Uint8Array> => {
      const [start = 0] = x.shape;
      x.resize([start + count]);
      x.write(new Int32Array(count).fill(start), { start: [start], count: [count] });
      await file.flush();
      return storage.bytes();
    };
    const { site, url } = serve({ bytes: await append(10), ...options });
    return { site, url, append: async (count: number) => Object.assign(site, { bytes: await append(count) }) };
  }

  test.each([
    ['with an ETag', { etag: '"1"' }, { etag: '"2"' }],
    ['with an ETag that does not tell', { etag: '"1"' }, {}],
    ['without ranges', { noRanges: true }, {}],
  ])('is followed by refresh: %s', async (_, before, after) => {
    const { site, url, append } = await growing(before);
    const reader = await File.open(url);
    const x = reader.dataset('x', 'int32');
    expect([await reader.refresh(), x.shape[0]]).toEqual([false, 10]);
    await append(5);
    Object.assign(site, after);
    expect([await reader.refresh(), x.shape[0]]).toEqual([true, 15]);
    expect([...(await x.read({ start: [9], count: [3] }))]).toEqual([0, 10, 10]);
    await append(500_000);
    expect([await reader.refresh(), x.shape[0]]).toEqual([true, 500_015]);
    expect([...(await x.read({ start: [500_014], count: [1] }))]).toEqual([15]);
    await reader.close();
  });

  test('costs one request when there is nothing new, and nothing is forgotten', async () => {
    const { site, url } = await growing({ etag: '"1"' });
    const reader = await File.open(url);
    await reader.dataset('x').read();
    site.asked.length = 0;
    expect(await reader.refresh()).toBe(false);
    await reader.dataset('x').read();
    expect(site.asked).toEqual(['bytes=0-65535']);
    await reader.close();
  });

  /** Two logs, and two ordinary files, of one size and with one superblock. */
  async function lookalikes(options: CreateOptions): Promise<Uint8Array[]> {
    const made: Uint8Array[] = [];
    for (const k of [1, 2, 3]) {
      const storage = memoryStorage();
      const file = await File.create(storage, options);
      const length = k === 3 ? 60_000 : 50_000;
      for (const name of k === 2 ? ['y', 'x'] : ['x', 'y'])
        file.createDataset(name, { dtype: 'int32', shape: [length] }).write(new Int32Array(length).fill(k * 10));
      await file.close();
      made.push(storage.bytes());
    }
    return made;
  }

  test.each<[string, CreateOptions, boolean]>([
    ['a log', { publish: 'never' }, false],
    ['a log, loaded on demand', { publish: 'never' }, true],
    ['a published log', {}, false],
    ['an ordinary file', { connector: 'native' }, false],
  ])('is not mixed with another file that takes its place: %s', async (_, options, lazy) => {
    const [bytes, ...others] = (await lookalikes(options)) as [Uint8Array, ...Uint8Array[]];
    for (const [i, other] of others.entries()) {
      const { site, url } = serve({ bytes, etag: '"1"' });
      const reader = await File.open(url, { lazy });
      await reader.load('/', { depth: 2 });
      const [x, y] = [reader.dataset('x', 'int32'), reader.dataset('y', 'int32')];
      const at = { start: [40_000], count: [2] };
      await x.read({ start: [0], count: [1] });
      Object.assign(site, { bytes: other, etag: '"2"' });
      const message = expect.stringContaining('changed on the server');
      expect(await errorOf(() => y.read(at))).toMatchObject({ code: 'STORAGE', message });
      // What cannot be opened leaves the reader with the file that it had.
      site.bytes = other.subarray(0, 3000);
      expect(await errorOf(() => reader.refresh())).toHaveProperty('code');
      site.bytes = other;
      expect(await errorOf(() => y.read(at))).toMatchObject({ code: 'STORAGE' });
      // A read that is under way while the reader moves on does not mix the two either.
      const [late, moved] = await Promise.all([errorOf(() => y.read(at)), reader.refresh()]);
      expect(late).toMatchObject({ code: 'STORAGE' });
      expect(moved).toBe(true);
      const value = i === 0 ? 20 : 30;
      expect([...(await y.read(at)), ...(await x.read(at))]).toEqual([value, value, value, value]);
      expect(await reader.refresh()).toBe(false);
      await reader.close();
    }
  });

  test('is read on while it grows with every request', async () => {
    const { site, url, append } = await growing({ etag: '"1"' });
    await append(300_000);
    const reader = await File.open(url);
    const x = reader.dataset('x', 'int32');
    let version = 1;
    Object.defineProperty(site, 'etag', { get: () => `"${++version}"` });
    expect([...(await x.read({ start: [9], count: [2] }))]).toEqual([0, 10]);
    expect((await x.read()).length).toBe(300_010);
    await append(1);
    expect([await reader.refresh(), (await x.read()).length]).toEqual([true, 300_011]);
    await reader.close();
  });

  test('that cannot be reached any more leaves the reader where it was', async () => {
    const { site, url, append } = await growing();
    const reader = await File.open(url);
    site.status = 503;
    expect(await errorOf(() => reader.refresh())).toMatchObject({ code: 'STORAGE' });
    delete site.status;
    expect((await reader.dataset('x').read()).length).toBe(10);
    await append(1);
    expect([await reader.refresh(), reader.dataset('x').shape[0]]).toEqual([true, 11]);
    await reader.close();
  });
});
