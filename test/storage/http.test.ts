import { File } from 'h5log';
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
    for (let block = 1; block < 70; block++) {
      await readAt(storage, block * BLOCK, 1);
      await readAt(storage, 0, 1);
    }
    expect(site.asked.length).toBe(70);
    await readAt(storage, 0, 1);
    await readAt(storage, 69 * BLOCK, 1);
    expect(site.asked.length).toBe(70);
    await readAt(storage, 1 * BLOCK, 1);
    expect(site.asked.length).toBe(71);
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
