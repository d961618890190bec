import { statSync } from 'node:fs';
import { File, T } from 'h5log';
import { compact } from 'h5log/tools';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../../temporary.ts';

const BLOCKS = 70_000;

/** What a person sees at a dataset with another program; null: no note. */
async function noteOf(path: string, dataset: string): Promise<unknown> {
  const file = await File.open(path, { connector: 'native' });
  const { attributes } = file.dataset(dataset);
  const note = attributes.has('_note') ? attributes.get('_note') : null;
  await file.close();
  return note;
}

test('a file that costs too much to be published by itself does not grow because it was opened', async () => {
  const path = `${temporaryDirectory()}/large.h5`;
  const file = await File.create(path);
  // Every other element, so that no two blocks become one.
  const starts = Float64Array.from({ length: BLOCKS }, (_, i) => 2 * ((i * 7919) % BLOCKS));
  const large = file.createDataset('large', { dtype: 'int32', shape: [2 * BLOCKS] });
  large.writeMany(Int32Array.from(starts), starts, new Float64Array(BLOCKS).fill(1));
  for (const name of ['a', 'b']) file.createDataset(name, { dtype: 'int32', shape: [1] }).write([1]);
  await file.close();
  expect(await noteOf(path, 'large')).toMatch(/none of it is shown here/);
  expect(await noteOf(path, 'b')).toMatch(/none of it is shown here/);

  const { size } = statSync(path);
  const untouched = await File.open(path, { mode: 'r+' });
  await untouched.close();
  expect(statSync(path).size).toBe(size);

  const again = await File.open(path, { mode: 'r+' });
  again.dataset('a').write([2]);
  await again.flush();
  const { sequence } = again;
  await again.close();
  // The dataset that changed gets its note again; the others have theirs.
  expect(statSync(path).size - size).toBeLessThan(16_384);
  const reader = await File.open(path);
  expect(reader.published).toBeNull();
  expect(reader.sequence).toBeLessThanOrEqual(sequence + 1);
  expect(await reader.dataset('a').read()).toEqual(Int32Array.of(2));
  expect(await reader.dataset('large').read({ start: [0], count: [4] })).toEqual(Int32Array.of(0, 0, 2, 0));
  await reader.close();
  expect(await noteOf(path, 'a')).toMatch(/none of it is shown here/);

  // It is published when somebody asks for it.
  const published = await File.open(path, { mode: 'r+' });
  await published.publish();
  expect(published.published).toBe(published.sequence);
  await published.close();
  expect(await noteOf(path, 'large')).toBeNull();
});

test.each(['close', 'flush', { interval: 10 }] as const)(
  'a close ends although a dataset cannot be published (%j)',
  async (publish) => {
    const path = `${temporaryDirectory()}/without.h5`;
    const file = await File.create(path, { publish });
    file.createDataset('to', { dtype: T.vlen(T.reference), shape: [2] }).write([['/to'], []]);
    const other = file.createDataset('other', { dtype: 'int8', shape: [1] });
    const closed = file.close();
    // Belongs to the next commit, which others are to see as well.
    other.write([1]);
    await closed;
    expect(file.sequence).toBeLessThanOrEqual(2);
    const reader = await File.open(path);
    expect(reader.dataset('to').published).toBeNull();
    expect(reader.dataset('other').published?.sequence).toBe(file.sequence);
    expect(await reader.dataset('to').read()).toEqual([['/to'], []]);
    expect(await reader.dataset('other').read()).toEqual(Int8Array.of(1));
    await reader.close();
  },
);

test('what a killed session left unpublished is published by the next one, if it is little', async () => {
  const path = `${temporaryDirectory()}/small.h5`;
  const file = await File.create(path, { publish: 'never' });
  file.createDataset('a', { dtype: 'int32', shape: [1] }).write([1]);
  await file.close();
  const again = await File.open(path, { mode: 'r+', publish: 'auto' });
  await again.close();
  const other = await File.open(path, { connector: 'native' });
  expect(await other.dataset('a').read()).toEqual(Int32Array.of(1));
  await other.close();
});

test('a new file is published whatever the number of its datasets; one that was not is left alone if they are many', async () => {
  const path = `${temporaryDirectory()}/many.h5`;
  for (const publish of ['auto', 'never'] as const) {
    const file = await File.create(path, { publish });
    for (let i = 0; i < 17_000; i++) file.createDataset(`d${i}`, { dtype: 'int8', shape: [1] });
    file.dataset('d16999').write([7]);
    await file.close();
    const again = await File.open(path, { mode: 'r+', publish: 'auto' });
    expect(again.published).toBe(publish === 'auto' ? again.sequence : null);
    again.dataset('d0').write([8]);
    await again.close();
    const reader = await File.open(path);
    expect(reader.published).toBe(publish === 'auto' ? reader.sequence : null);
    await reader.close();
  }
}, 60_000);

test.each(['close', 'flush', { interval: 0 }, { interval: 20 }] as const)(
  'what cannot be published is tried once, and said each time: publish %j',
  { timeout: 20_000 },
  async (publish) => {
    const path = `${temporaryDirectory()}/refused.h5`;
    const file = await File.create(path, { publish });
    // HDF5 has room for chunks of less than 4 GiB.
    const refused = file.createDataset('refused', {
      dtype: 'float64',
      shape: [4],
      maxShape: [null],
      chunks: [2 ** 29],
    });
    refused.write([1], { start: [1], count: [1] });
    file.createDataset('other', { dtype: 'int32', shape: [1] }).write([1]);
    await file.flush();
    const reason = expect.stringContaining('4294967296 bytes');
    expect((await file.publish()).without).toEqual([{ path: '/refused', reason }]);
    const { sequence } = file;
    expect(file.publishSync().without).toEqual([{ path: '/refused', reason }]);
    await file.flush();
    file.flushSync();
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(file.sequence).toBe(sequence);
    refused.write([2], { start: [2], count: [1] });
    expect((await file.publish()).without).toEqual([{ path: '/refused', reason }]);
    await file.close();
    const again = await File.open(path, { mode: 'r+' });
    expect([again.sequence, again.published]).toEqual([sequence + 1, sequence + 1]);
    expect([again.dataset('other').published?.way, again.dataset('refused').published]).toEqual(['contiguous', null]);
    again.dataset('refused').resize([5]);
    await again.close();
    const reader = await File.open(path);
    expect(reader.sequence).toBe(sequence + 2);
    expect(await reader.dataset('refused').read()).toEqual(Float64Array.of(0, 1, 2, 0, 0));
    await reader.close();
    await compact(path, `${path}.compacted`);
    const compacted = await File.open(`${path}.compacted`);
    expect(await compacted.dataset('refused').read()).toEqual(Float64Array.of(0, 1, 2, 0, 0));
    await compacted.close();
  },
);
