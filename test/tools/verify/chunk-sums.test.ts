import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { seal, verify } from 'h5log/tools';
import { expect, test } from 'vitest';
import { h5log, slow } from '../../cli/command.ts';
import { count } from '../../counts.ts';
import { pythonSync, withOracle } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';

/** Datasets with checksums behind every kind of chunk index, and where their chunks are. */
const MAKE = `
import h5py, json, numpy as np, os, sys
chunks = []
def note(file, dataset):
    for i in range(dataset.id.get_num_chunks()):
        info = dataset.id.get_chunk_info(i)
        chunks.append(dict(file=file, dataset=dataset.name, at=list(info.chunk_offset), offset=info.byte_offset, size=info.size, mask=info.filter_mask))
for libver in ['earliest', 'latest']:
    name = libver + '.h5'
    with h5py.File(os.path.join(sys.argv[1], name), 'w', libver=libver) as f:
        data = np.arange(500.).reshape(20, 25)
        some = [
            f.create_dataset('plain', data=data, chunks=(7, 10), fletcher32=True),
            f.create_dataset('packed', data=data, chunks=(7, 10), fletcher32=True, compression='gzip', shuffle=True),
            f.create_dataset('g/grows', data=data, chunks=(7, 10), maxshape=(None, 25), fletcher32=True),
            f.create_dataset('g/both', data=data, chunks=(7, 10), maxshape=(None, None), fletcher32=True),
            f.create_dataset('one', data=data, chunks=(20, 25), fletcher32=True),
            f.create_dataset('deflated', data=data, chunks=(7, 10), compression='gzip', shuffle=True),
        ]
        # The checksum first: what deflate makes of it is stored.
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((10,)); plist.set_fletcher32(); plist.set_deflate(6)
        inner = h5py.Dataset(h5py.h5d.create(f.id, b'inner', h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple((30,)), plist))
        inner[...] = np.arange(30.)
        some.append(inner)
        # A chunk that was stored without filters has no checksum.
        raw = f.create_dataset('raw', (20,), dtype='i4', chunks=(10,), fletcher32=True)
        raw.id.write_direct_chunk((0,), np.arange(10, dtype='i4').tobytes(), filter_mask=1)
        raw[10:] = 5
        some.append(raw)
        f.create_dataset('without', data=data, chunks=(7, 10), compression='lzf')
        f.create_dataset('nothing', (20,), dtype='i4', chunks=(10,), fletcher32=True)
        f.flush()
        for dataset in some: note(name, dataset)
print(json.dumps(chunks))
`;

interface Chunk {
  readonly file: string;
  readonly dataset: string;
  readonly at: readonly number[];
  readonly offset: number;
  readonly size: number;
  readonly mask: number;
}

withOracle('python', 'checksums of the chunks of an ordinary file', () => {
  const folder = temporaryDirectory();
  const chunks = JSON.parse(pythonSync(MAKE, [folder])) as Chunk[];

  test.each(['earliest.h5', 'latest.h5'])(
    '%s: every chunk is compared, and a damaged one is named',
    slow,
    async (name) => {
      const bytes = readFileSync(join(folder, name));
      const own = chunks.filter(({ file }) => file === name);
      const summed = own.filter(({ mask }) => mask === 0);
      expect(own.length - summed.length).toBe(1);
      const sound = await verify(memoryStorage(bytes));
      expect(sound).toMatchObject({ sound: true, checksums: false, problems: [], chunkSums: summed.length });
      for (const { dataset, at, offset, size } of summed) {
        const copy = Buffer.from(bytes);
        const middle = offset + Math.floor(size / 2);
        copy[middle] = (copy[middle] as number) ^ 0x10;
        const result = await verify(memoryStorage(copy));
        const where = `chunk at (${at.join(', ')}) of ${dataset}`;
        expect(result).toMatchObject({ sound: false, chunkSums: summed.length });
        expect(result.problems.filter(({ what }) => what.startsWith(`${where}: `))).toHaveLength(1);
        expect(result.problems).toEqual([
          { object: dataset, offset, what: expect.stringMatching(/checksum|inflate|deflate|zlib|data/i) },
        ]);
      }
      count('verify: chunks', { 'damaged chunks found': summed.length });
    },
  );

  test('the command says what was compared, and what was not', slow, async () => {
    const path = join(folder, 'latest.h5');
    const compared = chunks.filter(({ file, mask }) => file === 'latest.h5' && mask === 0).length;
    const right = await h5log('verify', path);
    expect(right.stdout).toMatch(
      /latest\.h5: sound \(.*\)\n {2}no log: the structure and the checksums of \d+ chunks were checked\n$/,
    );
    expect(right.stdout).toContain(`of ${compared} chunks`);
    expect(right.code).toBe(0);
    const { offset, dataset, at } = chunks.find(({ file }) => file === 'latest.h5') as Chunk;
    const damaged = join(folder, 'damaged.h5');
    const bytes = readFileSync(path);
    bytes[offset + 9] = (bytes[offset + 9] as number) ^ 1;
    writeFileSync(damaged, bytes);
    const wrong = await h5log('verify', damaged);
    expect(wrong.stdout).toContain(`at byte ${offset}: chunk at (${at.join(', ')}) of ${dataset}: `);
    expect(wrong.code).toBe(1);
    const plain = join(folder, 'plain.h5');
    pythonSync("import h5py, sys\nwith h5py.File(sys.argv[1], 'w') as f: f['x'] = [1, 2]", [plain]);
    const without = await h5log('verify', plain);
    expect(without.stdout).toMatch(
      /plain\.h5: sound .*\n {2}no log, and no checksums of chunks to compare: only the structure was checked\n$/,
    );
  });

  test('chunks at the edge that are stored without filters have none', async () => {
    const sample = new URL('../../fixtures/hdf5/unfiltered-edges.h5.gz', import.meta.url);
    expect(await verify(memoryStorage(gunzipSync(readFileSync(sample))))).toMatchObject({ sound: true, problems: [] });
  });
});

test('a sealed file is an ordinary one: the checksums of its chunks are compared', async () => {
  const path = join(temporaryDirectory(), 'sealed.h5');
  const file = File.createSync(path);
  file
    .createDataset('t', { dtype: 'float64', shape: [40], chunks: [10], filters: ['fletcher32'] })
    .write(new Float64Array(40).fill(1.5));
  file.closeSync();
  await seal(path);
  expect(await verify(path)).toMatchObject({ sound: true, chunkSums: 4 });
  const stop = new AbortController();
  const reason = new Error('enough');
  const seen: number[] = [];
  const stopped = verify(path, {
    signal: stop.signal,
    progress: ({ bytes }) => {
      seen.push(bytes);
      stop.abort(reason);
    },
  });
  await expect(stopped).rejects.toBe(reason);
  expect(seen).toHaveLength(1);
});
