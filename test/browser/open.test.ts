import { readdirSync, readFileSync } from 'node:fs';
import { File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { fixtureBytes } from '../hdf5/fixture.ts';
import { withOracle } from '../oracles.ts';
import { bundle, type H5log, startLab } from './browser.ts';

/** A log whose dataset `x` holds these numbers. */
async function logOf(...numbers: number[]): Promise<Uint8Array> {
  const storage = memoryStorage();
  const file = await File.create(storage);
  file.createDataset('x', { dtype: 'int32', shape: [numbers.length] }).write(numbers);
  await file.close();
  return storage.bytes();
}

/** Opens a name and reads `x`; the code and the message if that fails. */
async function readX({ File, isH5LogError }: H5log, name: string): Promise<string> {
  try {
    const file = await File.open(name);
    const values = await file.dataset('x', 'int32').read();
    await file.close();
    return values.join();
  } catch (error) {
    return isH5LogError(error) ? `${error.code}: ${error.message}` : `not an H5LogError: ${error}`;
  }
}

withOracle('chromium', 'opening files in Chromium', () => {
  const lab = startLab();

  describe('by name', () => {
    test('a page resolves names against itself', async () => {
      const { url } = lab.serve({ path: '/log.h5', bytes: await logOf(1) });
      lab.serve({ path: '/run/log.h5', bytes: await logOf(2) });
      lab.serve({ path: '/run/day/log.h5', bytes: await logOf(3) });
      const { run } = await lab.open('/run/page.html');
      expect(await run(readX, 'log.h5')).toBe('2');
      expect(await run(readX, '/log.h5')).toBe('1');
      expect(await run(readX, '../log.h5')).toBe('1');
      expect(await run(readX, 'day/log.h5')).toBe('3');
      expect(await run(readX, url)).toBe('1');
      expect(await run(readX, url.replace('http:', ''))).toBe('1');
    });

    test('a page with a base resolves names against that', async () => {
      lab.serve({ path: '/based/log.h5', bytes: await logOf(4) });
      const { run } = await lab.open('/unbased.html', { head: '<base href="/based/">' });
      expect(await run(readX, 'log.h5')).toBe('4');
    });

    test('a worker resolves names against its script', async () => {
      lab.serve({ path: '/workers/log.h5', bytes: await logOf(5) });
      lab.serve({ path: '/top.h5', bytes: await logOf(6) });
      const { runInWorker } = await lab.open('/run/page.html');
      expect(await runInWorker(readX, 'log.h5')).toBe('5');
      expect(await runInWorker(readX, '/top.h5')).toBe('6');
    });

    test('a log that grows on the server is followed by refresh, whatever the browser has cached', async () => {
      const { site, url } = lab.serve({ bytes: await logOf(1, 2), sent: { 'cache-control': 'max-age=1000' } });
      const { run } = await lab.open();
      const shape = async ({ File }: H5log, from: string): Promise<readonly number[]> => {
        const kept = globalThis as { reader?: import('h5log').File };
        if (kept.reader) await kept.reader.refresh();
        kept.reader ??= await File.open(from);
        return kept.reader.dataset('x').shape;
      };
      expect(await run(shape, url)).toEqual([2]);
      site.bytes = await logOf(1, 2, 3);
      expect(await run(shape, url)).toEqual([3]);
    });

    test('a name that is not there gives NOT_FOUND with the whole URL', async () => {
      const { page, run } = await lab.open('/run/page.html');
      expect(await run(readX, 'missing.h5')).toBe(`NOT_FOUND: ${new URL('missing.h5', page.url())}: status 404`);
    });

    test('a name cannot be written, created or opened with a blocking call; the error says what can be done', async () => {
      lab.serve({ path: '/run/log.h5', bytes: await logOf(2) });
      const { run } = await lab.open('/run/page.html');
      const codes = await run(async ({ File, isH5LogError }) => {
        const attempts = [
          () => File.open('log.h5', { mode: 'r+' }),
          () => File.create('new.h5'),
          () => File.openSync('log.h5'),
          () => File.createSync('new.h5'),
        ];
        const told: string[] = [];
        for (const attempt of attempts) {
          try {
            await attempt();
            told.push('no error');
          } catch (error) {
            told.push(isH5LogError(error) ? `${error.code}: ${error.message}` : String(error));
          }
        }
        return told;
      });
      expect(codes[0]).toMatch(/^READ_ONLY: http:.*\/run\/log\.h5 cannot be written/);
      expect(codes[1]).toMatch(/^UNSUPPORTED: .*storage/);
      expect(codes[2]).toMatch(/^UNSUPPORTED: http:.*asynchronous/);
      expect(codes[3]).toMatch(/^UNSUPPORTED: .*storage/);
    });
  });

  describe('from another origin', () => {
    const allow = { 'access-control-allow-origin': '*' };
    const expose = 'Content-Range, Content-Length, ETag, Accept-Ranges';

    test('a server that allows it and exposes its headers is read by ranges', async () => {
      const sent = { ...allow, 'access-control-expose-headers': expose };
      const { site, url } = lab.serveElsewhere({ bytes: await logOf(7, 8), sent, etag: '"1"' });
      const { run } = await lab.open();
      expect(await run(readX, url)).toBe('7,8');
      expect(site.asked[0]).toBe('bytes=0-65535');
    });

    test('one that hides Content-Range gives an error that names CORS and the header to send', async () => {
      const { url } = lab.serveElsewhere({ bytes: await logOf(7), sent: allow });
      const { run, runInWorker } = await lab.open();
      const told = await run(readX, url);
      expect(told).toMatch(/^STORAGE: .*CORS/);
      expect(told).toContain(`Access-Control-Expose-Headers: ${expose}`);
      expect(told).toContain(url);
      expect(await runInWorker(readX, url)).toBe(told);
    });

    test('one that does not allow the page gives an error that names CORS and the header to send', async () => {
      const { url } = lab.serveElsewhere({ bytes: await logOf(7) });
      const { run, runInWorker } = await lab.open();
      const told = await run(readX, url);
      expect(told).toMatch(/^STORAGE: .*Failed to fetch.*CORS.*Access-Control-Allow-Origin/);
      expect(await runInWorker(readX, url)).toBe(told);
    });

    test('a failure of the own origin does not mention CORS', async () => {
      const { url } = lab.serve({ bytes: await logOf(7), drop: 2 });
      const { run } = await lab.open();
      const told = await run(readX, url);
      expect(told).toMatch(/^STORAGE: /);
      expect(told).not.toContain('CORS');
    });
  });

  test('a page without a bundler imports the built modules by an import map', async () => {
    const folder = new URL('../../dist/browser/', import.meta.url);
    for (const name of readdirSync(folder).filter((name) => name.endsWith('.js'))) {
      const sent = { 'content-type': 'text/javascript' };
      lab.serve({ path: `/built/${name}`, bytes: readFileSync(new URL(name, folder)), sent });
    }
    lab.serve({ path: '/run/log.h5', bytes: await logOf(2) });
    const imports = { h5log: '/built/index.js', 'h5log/storage': '/built/storage.js' };
    const head = `<script type="importmap">${JSON.stringify({ imports })}</script>`;
    const { page } = await lab.open('/run/built.html', { head });
    // As text: vitest rewrites imports in functions.
    const found = await page.evaluate(`(async () => {
      const { File } = await import('h5log');
      const { blobStorage } = await import('h5log/storage');
      const named = await File.open('log.h5');
      const loaded = await File.open(blobStorage(await (await fetch('log.h5')).blob()));
      return Promise.all([named, loaded].map(async (file) => [...await file.dataset('x').read()]));
    })()`);
    expect(found).toEqual([[2], [2]]);
    // The code that writes is not loaded before somebody writes, and then once.
    const chunks = `performance.getEntriesByType('resource').filter(({ name }) => name.includes('/built/writing-')).length`;
    expect(await page.evaluate(chunks)).toBe(0);
    const written = await page.evaluate(`(async () => {
      const { File } = await import('h5log');
      const { memoryStorage } = await import('h5log/storage');
      const files = await Promise.all([memoryStorage(), memoryStorage()].map((storage) => File.create(storage)));
      for (const file of files) {
        file.createDataset('y', { dtype: 'int16', shape: [2] }).write([3, 4]);
        await file.close();
      }
      const file = File.createSync(memoryStorage());
      file.createDataset('y', { dtype: 'int16', shape: [2] }).write([5, 6]);
      file.flushSync();
      return [...await file.dataset('y').read()];
    })()`);
    expect(written).toEqual([5, 6]);
    expect(await page.evaluate(chunks)).toBe(1);
  });

  describe('an ordinary file', () => {
    /** Of libhdf5: groups, chunks with filters, attributes in heaps. */
    const bytes = fixtureBytes('chunk-indexes');

    async function readLazily({ File, isH5LogError }: H5log, from: string | null): Promise<unknown> {
      const source = from ?? new Blob([await (await fetch('/ordinary.h5')).arrayBuffer()]);
      const file = await File.open(source, { lazy: true });
      const names = [...file.keys()];
      const told: string[] = [];
      try {
        file.get('fixed');
      } catch (error) {
        told.push(isH5LogError(error, 'UNSUPPORTED') ? error.message : String(error));
      }
      await file.load('fixed');
      const values = await file.dataset('fixed').read(undefined, { as: 'float64' });
      const { requests } = file.storageStatistics();
      await file.close();
      return { names: names.length, told, values: [...values], requests };
    }

    test('is read from a URL and a Blob with lazy, in a page and in a worker', async () => {
      const { url } = lab.serve({ path: '/ordinary.h5', bytes, etag: '"1"' });
      const here = await File.open(memoryStorage(bytes));
      const expected = {
        names: [...here.keys()].length,
        told: ["/fixed is not loaded: await file.load('/fixed') first"],
        values: [...(await here.dataset('fixed').read(undefined, { as: 'float64' }))],
      };
      await here.close();
      const { run, runInWorker } = await lab.open();
      for (const source of ['ordinary.h5', url, null]) {
        expect(await run(readLazily, source)).toMatchObject(expected);
        expect(await runInWorker(readLazily, source === 'ordinary.h5' ? '/ordinary.h5' : source)).toMatchObject(
          expected,
        );
      }
    });
  });

  test('the example with a canvas shows a slice that a worker reads', async () => {
    const text = { 'content-type': 'text/javascript' };
    const example = (name: string): URL => new URL(`../../examples/${name}`, import.meta.url);
    for (const name of ['canvas.js', 'slice-worker.js'])
      for (const file of await bundle(example(name), `/show/${name}`)) lab.serve({ ...file, sent: text });
    const storage = memoryStorage();
    const file = await File.create(storage);
    const rows = file.createDataset('T', { dtype: 'float64', shape: [1000, 1000] });
    rows.write(Float64Array.from({ length: 1e6 }, (_, i) => i % 1000));
    await file.close();
    lab.serve({ path: '/show/climate.h5', bytes: storage.bytes() });
    const html =
      '<!doctype html><canvas data-url="climate.h5" data-dataset="T"></canvas><script type="module" src="canvas.js"></script>';
    const { url } = lab.serve({ path: '/show/', bytes: Buffer.from(html), sent: { 'content-type': 'text/html' } });
    const page = await (await lab.browser.newContext()).newPage();
    await page.goto(url);
    await page.waitForFunction('document.title !== ""');
    expect(await page.title()).toMatch(/^96 x 64: \d+ requests, \d+ bytes$/);
    const pixels = await page.evaluate(`(() => {
      const { data } = document.querySelector('canvas').getContext('2d').getImageData(0, 0, 96, 64);
      return [data[0], data[4 * 95], data[4 * 96 * 63 + 4 * 95]];
    })()`);
    expect(pixels).toEqual([0, 255, 255]);
  });

  test('bytes and Blobs are opened as they are, bytes with blocking calls as well', async () => {
    const { url } = lab.serve({ bytes: await logOf(9, 10) });
    const { run, runInWorker } = await lab.open();
    async function readAll({ File }: H5log, from: string): Promise<string[]> {
      const buffer = await (await fetch(from)).arrayBuffer();
      const sources = [buffer, new Uint8Array(buffer), new Blob([buffer])];
      const found: string[] = [];
      for (const source of sources) {
        const file = await File.open(source);
        found.push((await file.dataset('x').read()).toString());
        await file.close();
      }
      const blocking = File.openSync(buffer);
      found.push(blocking.dataset('x').readSync().toString());
      blocking.closeSync();
      return found;
    }
    const expected = ['9,10', '9,10', '9,10', '9,10'];
    expect(await run(readAll, url)).toEqual(expected);
    expect(await runInWorker(readAll, url)).toEqual(expected);
  });
});
