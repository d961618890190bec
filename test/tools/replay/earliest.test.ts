import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { File, T } from 'h5log';
import { replay } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { h5dump, pythonSync, withOracle } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';

const directory = temporaryDirectory();

/** A log with everything that has a version of its own in HDF5: chunks of every index, filters, heaps, references, types. */
function logWith(path: string): void {
  const file = File.createSync(path);
  const write = (name: string, options: object): void => {
    const dataset = file.createDataset(name, { dtype: 'int32', shape: [40, 30], ...options });
    dataset.write(Int32Array.from({ length: 1200 }, (_, i) => i));
  };
  write('contiguous', {});
  write('single', { chunks: [40, 30] });
  write('fixed', { chunks: [7, 11], filters: ['shuffle', { deflate: 4 }] });
  write('implicit', { chunks: [10, 30] });
  write('one', { chunks: [7, 30], maxShape: [null, 30] });
  write('two', { chunks: [7, 11], maxShape: [null, null], filters: ['fletcher32'] });
  write('many', { chunks: [1, 1], maxShape: [null, 30] });
  file.createDataset('empty', { dtype: 'float64', shape: [0], maxShape: [null] });
  file.createDataset('texts', { dtype: T.string(), shape: [2] }).write(['one', 'two']);
  file.createDataset('refers', { dtype: T.reference, shape: [1] }).write(['/fixed']);
  file.createDataset('g/h/enum', { dtype: T.enum('int8', { a: 1, b: 2 }), shape: [2] }).write([1, 2]);
  file.createDatatype('type', T.compound({ x: 'float32', y: 'int16' }));
  file.attributes.set('note', 'text');
  file.attributes.set('large', new Float64Array(10_000).fill(1));
  file.dataset('fixed').makeScale('fixed');
  file.dataset('two').attachScale(0, file.dataset('fixed'));
  for (let i = 0; i < 50; i++) file.createGroup(`many-links/${i}`);
  file.closeSync();
}

/** Walks a file byte by byte and gives the versions of everything that it meets (HDF5 file format specification). */
class Checker {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly versions = new Map<string, Set<number>>();
  readonly #seen = new Set<number>();

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const version = this.#u8(8);
    this.#note('superblock', version);
    expect(this.#text(1, 3)).toBe('HDF');
    expect(version).toBe(2);
    expect([this.#u8(9), this.#u8(10), this.#u8(11)]).toEqual([8, 8, 0]);
    expect(this.#u64(28)).toBe(bytes.length);
    this.#header(this.#u64(36));
  }

  #note(what: string, version: number): void {
    this.versions.set(what, (this.versions.get(what) ?? new Set()).add(version));
  }

  #u8 = (at: number): number => this.#view.getUint8(at);
  #u16 = (at: number): number => this.#view.getUint16(at, true);
  #u64 = (at: number): number => Number(this.#view.getBigUint64(at, true));
  #text = (at: number, length: number): string => String.fromCharCode(...this.#bytes.subarray(at, at + length));

  #header(at: number): void {
    if (this.#seen.has(at)) return;
    this.#seen.add(at);
    expect(this.#text(at, 4)).toBe('OHDR');
    this.#note('object header', this.#u8(at + 4));
    const flags = this.#u8(at + 5);
    let from = at + 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0);
    const width = 1 << (flags & 3);
    let size = 0;
    for (let i = width - 1; i >= 0; i--) size = size * 256 + this.#u8(from + i);
    from += width;
    this.#messages(from, from + size, flags);
  }

  #messages(from: number, to: number, flags: number): void {
    for (let at = from; at + 4 <= to; ) {
      const type = this.#u8(at);
      const size = this.#u16(at + 1);
      const body = at + 4 + (flags & 4 ? 2 : 0);
      this.#message(type, this.#u8(at + 3), body, size, flags);
      at = body + size;
    }
  }

  #message(type: number, messageFlags: number, at: number, size: number, flags: number): void {
    const version = this.#u8(at);
    if (type === 0x10) {
      const block = this.#u64(at);
      expect(this.#text(block, 4)).toBe('OCHK');
      this.#messages(block + 4, block + this.#u64(at + 8) - 4, flags);
    } else if (type === 0x06) {
      this.#note('link', version);
      const linkFlags = this.#u8(at + 1);
      // A hard link ends with an address.
      if ((linkFlags & 8) === 0 || this.#u8(at + 2) === 0) this.#header(this.#u64(at + size - 8));
    } else if (type === 0x03) this.#note('datatype', messageFlags & 2 ? 1 : version >> 4);
    else if (type === 0x08) this.#layout(at, version);
    else {
      const names: Record<number, string> = { 1: 'dataspace', 5: 'fill value', 11: 'filters', 12: 'attribute' };
      const name = names[type];
      if (name) this.#note(name, version);
    }
  }

  #layout(at: number, version: number): void {
    this.#note('layout', version);
    if (this.#u8(at + 1) !== 2) return;
    const tree = this.#u64(at + 3);
    // Nothing was written.
    if (this.#bytes.subarray(at + 3, at + 11).every((byte) => byte === 255)) return;
    expect(this.#text(tree, 4)).toBe('TREE');
    this.#note('chunk B-tree, type', this.#u8(tree + 4));
    expect(this.#u16(tree + 6)).toBeGreaterThan(0);
  }
}

describe('replay with libver earliest', () => {
  test('writes nothing that HDF5 1.8 does not know', async () => {
    const path = join(directory, 'log.h5');
    logWith(path);
    for (const threads of [1, 2]) {
      const output = join(directory, `earliest-${threads}.h5`);
      await replay(path, output, { libver: 'earliest', threads });
      const { versions } = new Checker(readFileSync(output));
      expect(Object.fromEntries([...versions].map(([what, found]) => [what, [...found].sort()]))).toEqual({
        superblock: [2],
        'object header': [2],
        link: [1],
        dataspace: [2],
        datatype: [1, 3],
        'fill value': [3],
        layout: [3],
        filters: [2],
        attribute: [3],
        'chunk B-tree, type': [1],
      });
      const file = await File.open(output);
      expect(await file.dataset('two').read()).toEqual(Int32Array.from({ length: 1200 }, (_, i) => i));
      expect(file.dataset('refers').readSync()).toEqual(['/fixed']);
      await file.close();
    }
    // The checker would notice.
    const latest = join(directory, 'latest.h5');
    await replay(path, latest);
    expect(readFileSync(latest)[8]).toBe(3);
    await expect(replay(path, join(directory, 'x.h5'), { libver: 'old' as never })).rejects.toThrow(/libver must be/);
  });

  withOracle(['h5dump', 'python'], 'and h5dump and h5py', () => {
    test('read all of it', async () => {
      const path = join(directory, 'log-2.h5');
      logWith(path);
      const output = join(directory, 'for-others.h5');
      await replay(path, output, { libver: 'earliest' });
      expect(h5dump('-p', '-H', output)).toContain('CHUNKED ( 7, 11 )');
      expect(h5dump('-d', '/many', output)).toContain('1199');
      pythonSync(
        `
import h5py, sys, numpy as np
f = h5py.File(sys.argv[1], 'r')
for name in ('contiguous', 'single', 'fixed', 'implicit', 'one', 'two', 'many'):
    assert (f[name][...].ravel() == np.arange(1200)).all(), name
assert f[f['refers'][0]].name == '/fixed' and [t.decode() for t in f['texts'][...]] == ['one', 'two']
assert f['two'].dims[0][0].name == '/fixed' and f.attrs['large'].sum() == 10000 and len(f['many-links']) == 50
`,
        [output],
      );
      // libhdf5 changes it as one of its own.
      pythonSync(
        `
import h5py, sys
f = h5py.File(sys.argv[1], 'r+')
f['one'].resize((60, 30)); f['one'][59, 29] = 7; f['new'] = [1, 2, 3]
f.close()
f = h5py.File(sys.argv[1], 'r')
assert f['one'][59, 29] == 7 and f['one'][39, 29] == 1199 and f['new'][2] == 3
`,
        [output],
      );
    });
  });
});
