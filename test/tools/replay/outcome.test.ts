import { linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { File } from 'h5log';
import { type ReplayProgress, replay } from 'h5log/tools';
import { expect, test } from 'vitest';
import { startServer } from '../../storage/server.ts';
import { temporaryDirectory } from '../../temporary.ts';

const MIB = 2 ** 20;

/** A folder with a log file of two datasets of 4 MiB. */
function logFile(): { folder: string; input: string; output: string; bytes: Buffer } {
  const folder = temporaryDirectory();
  const input = join(folder, 'log.h5');
  const file = File.createSync(input);
  for (const name of ['a/x', 'y'])
    file.createDataset(name, { dtype: 'float64', shape: [1024, 512] }).write(new Float64Array(1024 * 512).fill(1));
  file.closeSync();
  return { folder, input, output: join(folder, 'out.h5'), bytes: readFileSync(input) };
}

test('the result says what was done, progress says how far it is, and the input stays as it is', async () => {
  const { folder, input, output, bytes } = logFile();
  const steps: ReplayProgress[] = [];
  const result = await replay(pathToFileURL(input), pathToFileURL(output), {
    memory: MIB,
    progress: (done) => steps.push(done),
  });
  expect(result).toEqual({
    groups: 2,
    datasets: 2,
    copied: 0,
    attributes: 0,
    elements: 2 * 1024 * 512,
    dataBytes: 8 * MIB,
    bytes: readFileSync(output).length,
    seconds: expect.any(Number),
  });
  expect(steps.length).toBeGreaterThanOrEqual(32);
  expect(steps.map(({ bytes: done }) => done)).toEqual(
    [...steps.keys()].map((i) => (i + 1) * ((8 * MIB) / steps.length)),
  );
  expect(steps.every(({ bytes: done, total }) => done <= total)).toBe(true);
  expect(new Set(steps.map(({ dataset }) => dataset))).toEqual(new Set(['/a/x', '/y']));
  expect(steps.at(-1)).toMatchObject({ bytes: 8 * MIB, total: 8 * MIB });
  expect(readFileSync(input).equals(bytes)).toBe(true);
  expect(readdirSync(folder).sort()).toEqual(['log.h5', 'out.h5']);
});

test('a file that exists is replaced only by force, and only by one that is complete', async () => {
  const { folder, input, output } = logFile();
  writeFileSync(output, 'precious');
  await expect(replay(input, output)).rejects.toMatchObject({ code: 'EXISTS' });
  const failing = replay(input, output, {
    force: true,
    progress: () => {
      throw new Error('enough');
    },
  });
  await expect(failing).rejects.toThrow('enough');
  expect(readFileSync(output, 'utf8')).toBe('precious');
  await replay(input, output, { force: true });
  expect(File.openSync(output).dataset('a/x').shape).toEqual([1024, 512]);
  expect(readdirSync(folder).sort()).toEqual(['log.h5', 'out.h5']);
});

test('an abort leaves nothing behind', async () => {
  const { folder, input, output } = logFile();
  const early = AbortSignal.abort(new Error('never mind'));
  await expect(replay(input, output, { signal: early })).rejects.toThrow('never mind');
  for (const after of [1, 7]) {
    const control = new AbortController();
    let steps = 0;
    const work = replay(input, output, {
      memory: MIB,
      signal: control.signal,
      progress: () => {
        if (++steps === after) control.abort(new Error('stop'));
      },
    });
    await expect(work).rejects.toThrow('stop');
    expect(steps).toBe(after);
  }
  expect(readdirSync(folder)).toEqual(['log.h5']);
});

test('the input cannot be the output, however it is spelt', async () => {
  const { folder, input, bytes } = logFile();
  mkdirSync(join(folder, 'sub'));
  symlinkSync(input, join(folder, 'soft.h5'));
  for (const same of [input, join(folder, 'sub', '..', 'log.h5'), join(folder, 'soft.h5'), pathToFileURL(input)])
    await expect(replay(input, same, { force: true }), String(same)).rejects.toMatchObject({ code: 'OPTION' });
  // Another name of the same bytes is replaced; the input keeps its own.
  linkSync(input, join(folder, 'hard.h5'));
  await replay(input, join(folder, 'hard.h5'), { force: true });
  expect(readFileSync(input).equals(bytes)).toBe(true);
  expect(readFileSync(join(folder, 'hard.h5')).equals(bytes)).toBe(false);
});

test('what cannot be done is refused before anything is written', async () => {
  const { folder, input, output } = logFile();
  await expect(replay(join(folder, 'none.h5'), output)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await expect(replay(input, join(folder, 'no', 'out.h5'))).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await expect(replay(input, folder, { force: true })).rejects.toMatchObject({ code: expect.any(String) });
  for (const wrong of [{ memory: 10 }, { memory: Number.NaN }, { memory: '1' }, { force: 1 }, { progress: 3 }, null])
    await expect(replay(input, output, wrong as never), JSON.stringify(wrong)).rejects.toMatchObject({
      code: 'OPTION',
    });
  const file = File.createSync(join(folder, 'chunks.h5'));
  file.createDataset('vast', { dtype: 'float64', shape: [1e6, 1e6], chunks: [1e5, 1e5] });
  file.closeSync();
  await expect(replay(join(folder, 'chunks.h5'), output)).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    object: '/vast',
  });
  expect(readdirSync(folder).sort()).toEqual(['chunks.h5', 'log.h5']);
});

test('damage in the data is reported with its dataset, and nothing is left', async () => {
  const folder = temporaryDirectory();
  const input = join(folder, 'log.h5');
  const file = File.createSync(input, { publish: 'never' });
  const text = new Float64Array(4096).map((_, i) => i);
  file
    .createDataset('z', { dtype: 'float64', shape: [64, 64], chunks: [60, 64], filters: [{ deflate: 6 }] })
    .write(text);
  file.closeSync();
  const sound = readFileSync(input);
  // The first chunk is whole and its stream could be taken over as it is; the second is one of the edge and is made anew.
  const first = sound.indexOf(Buffer.from([0x78, 0x9c]));
  const second = sound.indexOf(Buffer.from([0x78, 0x9c]), first + 2);
  expect(first).toBeGreaterThan(0);
  expect(second).toBeGreaterThan(first);
  for (const at of [first, second]) {
    const bytes = Buffer.from(sound).fill(0xff, at + 20, at + 60);
    writeFileSync(input, bytes);
    const work = replay(input, join(folder, 'out.h5'));
    await expect(work).rejects.toMatchObject({ code: 'FORMAT', object: '/z', file: input });
  }
  expect(readdirSync(folder)).toEqual(['log.h5']);
});

test('a file on the web is read in ranges', async () => {
  const { folder, bytes, output } = logFile();
  const serve = await startServer();
  const { url } = serve({ bytes });
  await replay(url, output, { memory: 2 * MIB });
  const copy = File.openSync(output);
  expect([...copy.keys()]).toEqual(['a', 'y']);
  copy.closeSync();
  await replay(join(folder, 'log.h5'), join(folder, 'local.h5'), { memory: 2 * MIB });
  expect(readFileSync(output).equals(readFileSync(join(folder, 'local.h5')))).toBe(true);
});
