import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { memoryStorage } from 'h5log/storage';
import { verify } from 'h5log/tools';
import { expect, test } from 'vitest';
import { pythonSync, withOracle } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';

/** A file without checksums of its own, so that damage is noticed by what it says; prints where chunks lie. */
const MAKE = `
import sys, json, h5py, numpy as np
with h5py.File(sys.argv[1], 'w', libver='earliest') as f:
    c = f.create_dataset('chunks', data=np.arange(40, dtype='i4'), chunks=(10,), maxshape=(80,))
    f['plain'] = np.arange(16, dtype='i4')
    f.create_dataset('text', data=['one', 'three'], dtype=h5py.string_dtype())
    layout = h5py.VirtualLayout(shape=(4,), dtype='i4')
    layout[:] = h5py.VirtualSource('.', 'plain', shape=(16,))[:4]
    f.create_virtual_dataset('virtual', layout)
    print(json.dumps([[c.id.get_chunk_info(i).byte_offset for i in range(4)], f['plain'].id.get_offset(), f['text'].id.get_offset()]))
`;

withOracle('python', 'an ordinary file', () => {
  const path = join(temporaryDirectory(), 'ordinary.h5');
  const [chunks, plain, text] = JSON.parse(pythonSync(MAKE, [path])) as [number[], number, number];
  const intact = readFileSync(path);
  const chunk = (i: number): number => chunks[i] as number;
  const u64 = (value: number): Buffer => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(value));
    return bytes;
  };
  /** Where an address of 8 bytes is stored; it must be stored once. */
  const placeOf = (address: number): number => {
    const at = intact.indexOf(u64(address));
    expect(at).toBeGreaterThan(0);
    expect(intact.indexOf(u64(address), at + 1)).toBe(-1);
    return at;
  };
  const damaged = async (at: number, bytes: Uint8Array): Promise<unknown> => {
    const copy = Buffer.from(intact);
    copy.set(bytes, at);
    const { sound, problems } = await verify(memoryStorage(copy));
    expect(sound).toBe(false);
    return problems;
  };
  /** Before the address of a chunk is its key: size, mask, offset in each dimension, and 0. */
  const keyOf = (i: number): number => placeOf(chunk(i)) - 24;

  test('is sound as it is', async () => {
    expect(await verify(memoryStorage(intact))).toMatchObject({ sound: true, problems: [] });
  });

  test('is sound with fill values that many elements share', async () => {
    const shared = join(temporaryDirectory(), 'fill.h5');
    const make = `
import sys, h5py
with h5py.File(sys.argv[1], 'w') as f:
    f.create_dataset('filled', (200_000,), dtype=h5py.string_dtype(), fillvalue='nothing at all', chunks=(100_000,), compression='gzip')
    f.create_dataset('endless', (10**12,), dtype=h5py.string_dtype(), fillvalue='nothing', chunks=(10,))
    f.create_dataset('never', (50_000,), dtype=h5py.string_dtype(), fillvalue='nothing')`;
    pythonSync(make, [shared]);
    expect(await verify(shared)).toMatchObject({ sound: true, problems: [] });
  });

  test('two chunks in the same bytes are found', async () => {
    expect(await damaged(placeOf(chunk(2)), u64(chunk(1) + 8))).toEqual([
      {
        object: '/chunks',
        offset: chunk(1) + 8,
        what: 'chunk at (20) of /chunks overlaps chunk at (10) of /chunks in the file',
      },
    ]);
  });

  test('a chunk in the bytes of another dataset is found', async () => {
    expect(await damaged(placeOf(chunk(3)), u64(plain + 4))).toEqual([
      {
        object: '/chunks',
        offset: plain + 4,
        what: 'chunk at (30) of /chunks overlaps the data of /plain in the file',
      },
    ]);
  });

  test('a chunk beyond the end of the file is found', async () => {
    expect(await damaged(placeOf(chunk(0)), u64(intact.length - 8))).toEqual([
      {
        object: '/chunks',
        offset: intact.length - 8,
        what: 'chunk at (0) of /chunks: its 40 bytes reach beyond the end of the file',
      },
    ]);
  });

  test('a chunk of another size is found', async () => {
    expect(await damaged(keyOf(1), Uint8Array.of(36, 0, 0, 0))).toEqual([
      { object: '/chunks', offset: chunk(1), what: 'chunk at (10) of /chunks: it has 36 bytes instead of 40' },
    ]);
  });

  test('a chunk that the shape has no room for, and one that is there twice', async () => {
    expect(await damaged(keyOf(3) + 8, u64(80))).toEqual([
      { object: '/chunks', offset: chunk(3), what: 'chunk at (80) of /chunks: it lies outside the maximum shape (80)' },
    ]);
    expect(await damaged(keyOf(3) + 8, u64(20))).toEqual([
      { object: '/chunks', offset: chunk(3), what: 'chunk at (20) of /chunks: it is in the index twice' },
    ]);
    expect(await damaged(keyOf(3) + 8, u64(33))).toEqual([
      {
        object: '/chunks',
        offset: expect.any(Number),
        what: expect.stringContaining('a chunk that is not on the grid'),
      },
    ]);
  });

  test('data beyond the end of the file is found', async () => {
    expect(await damaged(placeOf(plain), u64(intact.length))).toEqual([
      {
        object: '/plain',
        offset: intact.length,
        what: expect.stringContaining('data of 64 bytes reaches beyond the end of the file'),
      },
    ]);
  });

  test('an element that names nothing in the heap is found', async () => {
    // Length, address of the collection, index.
    expect(await damaged(text + 12, Uint8Array.of(77))).toEqual([
      { object: '/text', offset: expect.any(Number), what: expect.stringMatching(/heap object/) },
    ]);
  });

  test('mappings of a virtual dataset that do not match their checksum are found', async () => {
    const at = intact.indexOf('plain\0', intact.indexOf('GCOL'));
    expect(await damaged(at, Buffer.from('plaim'))).toEqual([
      { object: '/virtual', offset: expect.any(Number), what: expect.stringContaining('checksum of its mappings') },
    ]);
  });
});
