import { type ErrorCode, H5LogError } from 'h5log';
import type { BlockingStorage, ByteStorage } from 'h5log/storage';
import { beforeAll, describe, expect, test } from 'vitest';
import { withOracle } from '../oracles.ts';
import { storageConformance } from '../storage/conformance.ts';
import { temporaryDirectory } from '../temporary.ts';
import { bundle, type H5log, startLab, type Tab, type TabWorker } from './browser.ts';

/** Appends rows to a log, a flush each, and says after each how many are committed; starts with what is there. */
async function appendRows({ File, opfs, opfsStorage }: H5log, rows: number): Promise<number> {
  const handle = await opfs('rows.h5');
  const isNew = (await handle.getFile()).size === 0;
  const storage = opfsStorage(handle);
  const file = await (isNew ? File.create(storage) : File.open(storage, { mode: 'r+' }));
  const log = isNew
    ? file.createDataset('rows', { dtype: 'int32', shape: [0, 100], maxShape: [null, 100] })
    : file.dataset('rows', 'int32');
  const told = new BroadcastChannel('rows');
  const first = log.shape[0] as number;
  for (let row = first; row < first + rows; row++) {
    log.resize([row + 1, 100]);
    log.write(new Int32Array(100).fill(row), { start: [row, 0], count: [1, 100] });
    if (row % 2 === 0) await file.flush();
    else file.flushSync();
    told.postMessage(row + 1);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await file.close();
  return log.shape[0] as number;
}

/** The number of rows, each of which must hold its number, and of commits. */
async function checkRows(
  { File, opfs, opfsStorage }: H5log,
  mode: 'r' | 'r+',
): Promise<{ rows: number; wrong: number }> {
  const file = await File.open(opfsStorage(await opfs('rows.h5'), mode));
  const values = await file.dataset('rows', 'int32').read();
  const wrong = values.filter((value, i) => value !== Math.floor(i / 100)).length;
  await file.close();
  return { rows: values.length / 100, wrong };
}

/** Starts to append many rows; resolves when so many are committed. */
async function committed(tab: Tab, rows: number): Promise<number> {
  const worker = await tab.startWorker();
  const before = tab.run(
    (_, least) =>
      new Promise<number>((resolve) => {
        const told = new BroadcastChannel('rows');
        told.onmessage = ({ data }) => data >= least && resolve(data);
      }),
    rows,
  );
  worker.run(appendRows, 100_000).catch(() => {});
  return before;
}

withOracle('chromium', 'the origin private file system of Chromium', () => {
  const lab = startLab();
  const worker: { current?: TabWorker; page?: Tab } = {};
  beforeAll(async () => {
    worker.page = await lab.open();
    worker.current = await worker.page.startWorker();
  });

  storageConformance('a file in OPFS, in a worker', (bytes) =>
    remoteStorage(() => worker.current as TabWorker, 'r+', bytes),
  );
  storageConformance(
    'a file in OPFS, only read',
    (bytes) => remoteStorage(() => worker.current as TabWorker, 'r', bytes),
    {
      readOnly: true,
    },
  );

  test('a page writes a log in a worker and reads it without one', async () => {
    const context = await lab.browser.newContext();
    const tab = await lab.open('/page.html', { context });
    expect(await tab.runInWorker(appendRows, 20)).toBe(20);
    expect(await tab.runInWorker(appendRows, 5)).toBe(25);
    expect(await tab.run(checkRows, 'r+')).toEqual({ rows: 25, wrong: 0 });
    expect(await tab.runInWorker(checkRows, 'r')).toEqual({ rows: 25, wrong: 0 });
    expect(await tab.runInWorker(checkRows, 'r+')).toEqual({ rows: 25, wrong: 0 });
    await context.close();
  });

  test('a page cannot write, a second writer cannot open; both are told why', async () => {
    const context = await lab.browser.newContext();
    const tab = await lab.open('/page.html', { context });
    const create = async ({ File, opfs, opfsStorage, isH5LogError }: H5log): Promise<string> => {
      try {
        const file = await File.create(opfsStorage(await opfs('one.h5')));
        file.createDataset('x', { dtype: 'int8', shape: [1] }).write([1]);
        await file.flush();
        Object.assign(globalThis, { file });
        return 'made';
      } catch (error) {
        return isH5LogError(error) ? `${error.code}: ${error.message}` : String(error);
      }
    };
    expect(await tab.run(create)).toBe('UNSUPPORTED: one.h5: only a dedicated worker can write to OPFS');
    const first = await tab.startWorker();
    expect(await first.run(create)).toBe('made');
    expect(await tab.runInWorker(create)).toMatch(/^LOCKED: one\.h5 is open in another tab or worker; .*'r'/);
    await first.terminate();
    await context.close();
  });

  test('a page follows a log that its worker writes', async () => {
    const context = await lab.browser.newContext();
    const tab = await lab.open('/page.html', { context });
    await committed(tab, 1);
    const seen = await tab.run(async ({ File, opfs, opfsStorage }) => {
      const file = await File.open(opfsStorage(await opfs('rows.h5'), 'r'));
      const counts: number[] = [];
      for await (const commit of file.watch({ interval: 5 })) {
        const rows = file.dataset('rows', 'int32');
        const [count = 0] = rows.shape;
        const [last] = await rows.read({ start: [count - 1, 0], count: [1, 1] });
        if (last !== count - 1) throw new Error(`row ${count - 1} is ${last} in commit ${commit.sequence}`);
        if (counts.push(count) === 20) break;
      }
      return counts;
    });
    expect(seen.length).toBe(20);
    expect(seen.at(-1)).toBeGreaterThan(seen[0] as number);
    await context.close();
  });

  test.each([
    ['a profile on disk', async () => (await lab.startProfile(temporaryDirectory())).context],
    ['a private window', () => lab.browser.newContext()],
  ])(
    'without space in %s a flush fails, the last commit stays, and with space the next one commits everything',
    async (_, start) => {
      const context = await start();
      const tab = await lab.open('/page.html', { context });
      const devtools = await context.newCDPSession(tab.page);
      const { origin } = new URL(tab.page.url());
      const worker = await tab.startWorker();
      await worker.run(async ({ File, opfs, opfsStorage }) => {
        const file = await File.create(opfsStorage(await opfs('full.h5')));
        const x = file.createDataset('x', { dtype: 'uint8', shape: [2, 3_000_000] });
        x.write(new Uint8Array(3_000_000).fill(1), { start: [0, 0], count: [1, 3_000_000] });
        await file.flush();
        x.write(new Uint8Array(3_000_000).fill(2), { start: [1, 0], count: [1, 3_000_000] });
        Object.assign(globalThis, { file });
      });
      const flush = async ({ isH5LogError }: H5log): Promise<string> => {
        const { file } = globalThis as unknown as { file: import('h5log').File };
        try {
          return `commit ${(await file.flush()).sequence}`;
        } catch (error) {
          return isH5LogError(error)
            ? `${error.code}: ${error.message}; ${file.pending.requests} pending`
            : String(error);
        }
      };
      const rows = async ({ File, opfs, opfsStorage }: H5log): Promise<number[]> => {
        const file = await File.open(opfsStorage(await opfs('full.h5'), 'r'));
        return [...(await file.dataset('x', 'uint8').read({ start: [0, 2_999_999], count: [2, 1] }))];
      };
      await devtools.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: 4_500_000 });
      expect(await worker.run(flush)).toMatch(/^STORAGE: full\.h5: .* failed: .*; 1 pending$/);
      expect(await tab.run(rows)).toEqual([1, 0]);
      await devtools.send('Storage.overrideQuotaForOrigin', { origin });
      expect(await worker.run(flush)).toBe('commit 2');
      expect(await tab.run(rows)).toEqual([1, 2]);
      await context.close();
    },
  );

  test('the example of a recorder goes on where the last one was', async () => {
    const context = await lab.browser.newContext();
    const example = new URL('../../examples/opfs-worker.js', import.meta.url);
    for (const file of await bundle(example, '/example/opfs-worker.js'))
      lab.serve({ ...file, sent: { 'content-type': 'text/javascript' } });
    const record = (_: H5log, messages: number[][]): Promise<number[]> =>
      new Promise((resolve, reject) => {
        const { Worker } = globalThis as unknown as { Worker: new (path: string, options: object) => Recorder };
        const recorder = new Worker('/example/opfs-worker.js', { type: 'module' });
        const told: number[] = [];
        recorder.onerror = ({ message }) => reject(new Error(message));
        recorder.onmessage = ({ data }) => {
          if (told.push(data.samples) === messages.length) resolve(told);
        };
        for (const message of messages) recorder.postMessage(message);
      });
    const first = await lab.open('/page.html', { context });
    expect(await first.run(record, [[1.5, 2.5], [3.5]])).toEqual([2, 3]);
    const read = async ({ File, opfs, opfsStorage }: H5log): Promise<number[]> => {
      const file = await File.open(opfsStorage(await opfs('samples.h5'), 'r'));
      return [...(await file.dataset('samples', 'float64').read())];
    };
    expect(await first.run(read)).toEqual([1.5, 2.5, 3.5]);
    await first.page.close();
    const second = await lab.open('/page.html', { context });
    expect(await second.run(record, [[4.5]])).toEqual([4]);
    expect(await second.run(read)).toEqual([1.5, 2.5, 3.5, 4.5]);
    await context.close();
  });

  describe('after a crash', () => {
    test('of the tab, everything that was flushed is there, and the next worker goes on', async () => {
      const context = await lab.browser.newContext();
      const tab = await lab.open('/page.html', { context });
      const before = await committed(tab, 30);
      const crashed = tab.page.waitForEvent('crash');
      tab.page.goto('chrome://crash').catch(() => {});
      await crashed;
      const again = await lab.open('/page.html', { context });
      const { rows, wrong } = await again.run(checkRows, 'r');
      expect(wrong).toBe(0);
      expect(rows).toBeGreaterThanOrEqual(before);
      expect(await again.runInWorker(appendRows, 3)).toBe(rows + 3);
      expect(await again.run(checkRows, 'r')).toEqual({ rows: rows + 3, wrong: 0 });
      process.stdout.write(`opfs: ${before} rows committed before the crash of the tab, ${rows} found\n`);
      await context.close();
    });

    test('of the browser, the same', { timeout: 120_000 }, async () => {
      const folder = temporaryDirectory();
      const killed = await lab.startProfile(folder);
      const before = await committed(await lab.open('/page.html', killed), 30);
      await killed.kill();
      const { context } = await lab.startProfile(folder);
      const again = await lab.open('/page.html', { context });
      const { rows, wrong } = await again.run(checkRows, 'r');
      expect(wrong).toBe(0);
      expect(rows).toBeGreaterThanOrEqual(before);
      expect(await again.runInWorker(appendRows, 3)).toBe(rows + 3);
      process.stdout.write(`opfs: ${before} rows committed before the kill of the browser, ${rows} found\n`);
      await context.close();
    });
  });
});

/** The worker of examples/opfs-worker.js. */
interface Recorder {
  onerror: (event: { message: string }) => void;
  onmessage: (event: { data: { samples: number } }) => void;
  postMessage(numbers: readonly number[]): void;
}

interface Call {
  readonly id: number;
  readonly half: 'async' | 'blocking';
  readonly op: keyof BlockingStorage;
  /** In base64. */
  readonly bytes?: readonly string[];
  readonly number?: number | string;
}

interface Answer {
  readonly value?: number;
  readonly bytes?: string;
  readonly code?: ErrorCode;
  readonly message?: string;
}

/** Calls a storage that is in the worker. */
async function call({ isH5LogError }: H5log, { id, half, op, bytes = [], number }: Call): Promise<Answer> {
  const storage = (globalThis as unknown as { storages: Required<ByteStorage>[] }).storages[
    id
  ] as Required<ByteStorage>;
  const calls = half === 'blocking' ? storage.blocking : storage;
  const parts = bytes.map((part) => Uint8Array.from(atob(part), (character) => character.charCodeAt(0)));
  const at = Number(number);
  try {
    if (op === 'read') {
      const into = parts[0] as Uint8Array;
      const value = await calls.read(into, at);
      return { value, bytes: btoa(Array.from(into, (byte) => String.fromCharCode(byte)).join('')) };
    }
    if (op === 'write') await calls.write(parts, at);
    else if (op === 'truncate') await calls.truncate(at);
    else return { value: (await calls[op]()) as number };
    return {};
  } catch (error) {
    if (!isH5LogError(error)) throw error;
    return { code: error.code, message: error.message };
  }
}

/** A storage in a worker as one of this process. Its blocking half returns promises, which the conformance suite awaits. */
async function remoteStorage(worker: () => TabWorker, mode: 'r' | 'r+', bytes: Uint8Array): Promise<ByteStorage> {
  const { id, writes, blocks } = await worker().run(
    async ({ opfs, opfsStorage }, { bytes, mode }) => {
      const kept = globalThis as unknown as { storages?: ByteStorage[] };
      kept.storages ??= [];
      const { storages } = kept;
      const handle = await opfs(`storage-${storages.length}.bin`);
      const filled = opfsStorage(handle);
      await filled.truncate?.(0);
      await filled.write?.([Uint8Array.from(atob(bytes), (character) => character.charCodeAt(0))], 0);
      if (mode === 'r') await filled.close();
      const storage = mode === 'r' ? opfsStorage(handle, 'r') : filled;
      return { id: storages.push(storage) - 1, writes: 'write' in storage, blocks: storage.blocking !== undefined };
    },
    { bytes: base64(bytes), mode },
  );
  const half = (half: Call['half']) => {
    const ask = async (op: Call['op'], number?: number, parts?: readonly Uint8Array[]): Promise<Answer> => {
      // JSON has no NaN.
      const told = { id, half, op, number: String(number), ...(parts && { bytes: parts.map(base64) }) };
      const answer = await worker().run(call, told);
      if (answer.code) throw new H5LogError(answer.code, answer.message ?? '');
      return answer;
    };
    return {
      size: async () => (await ask('size')).value as number,
      read: async (into: Uint8Array, offset: number) => {
        const { value, bytes = '' } = await ask('read', offset, [into]);
        into.set(Buffer.from(bytes, 'base64'));
        return value as number;
      },
      close: async () => void (await ask('close')),
      ...(writes && {
        write: async (parts: readonly Uint8Array[], offset: number) => void (await ask('write', offset, parts)),
        truncate: async (size: number) => void (await ask('truncate', size)),
        sync: async () => void (await ask('sync')),
      }),
    };
  };
  const blocking = half('blocking') as unknown as BlockingStorage;
  return { name: `storage-${id}.bin`, ...half('async'), ...(blocks && { blocking }) };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}
