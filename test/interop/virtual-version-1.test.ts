import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import h5wasm, { type Dataset } from 'h5wasm/node';
import { expect, test } from 'vitest';
import { lookup3 } from '../../src/base/checksum.ts';
import { ByteWriter } from '../../src/hdf5/format/byte-writer.ts';
import { Cursor } from '../../src/hdf5/format/cursor.ts';
import { parseSelection } from '../../src/hdf5/messages/selection.ts';
import { File } from '../../src/index.ts';
import { compact } from '../../src/tools.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';

// libhdf5 2.0 can write the mappings of a virtual dataset as version 1, in which names need not be repeated. Neither h5py nor h5wasm can
// ask it to, but the one in h5wasm reads such a block: here one is put in the place of the version 0 that h5py wrote.

const MAKE = `
import h5py, numpy, sys
with h5py.File(sys.argv[1] + '/other.h5', 'w') as other:
    other['long/name/of/a/source/dataset'] = numpy.arange(20, dtype='i4')
with h5py.File(sys.argv[1] + '/virtual.h5', 'w', libver='latest') as file:
    file['here'] = numpy.arange(100, 120, dtype='i4')
    a = h5py.VirtualSource('other.h5', 'long/name/of/a/source/dataset', (20,))
    b = h5py.VirtualSource(file['here'])
    layout = h5py.VirtualLayout((6, 10), 'i4')
    for row, source in enumerate([a[:10], a[10:], b[:10], b[10:], a[5:15], b[5:15]]): layout[row] = source
    file.create_virtual_dataset('v', layout)
`;

/** What names a mapping has: its own, those of an earlier mapping, or that of the file itself. */
const FLAGS = { file: 1, dataset: 2, itself: 4 } as const;

/** The block of a version 0 as version 1, with the names left out that `shared` says. */
function asVersion1(block: Uint8Array, shared: number): Uint8Array {
  const cursor = new Cursor(block, 0, 1);
  const length = cursor.u64();
  const out = new ByteWriter(block.length).u8(1).u64(length);
  const files: string[] = [];
  const datasets: string[] = [];
  for (let i = 0; i < length; i++) {
    files.push(cursor.cstring());
    datasets.push(cursor.cstring());
    const { at } = cursor;
    parseSelection(cursor);
    parseSelection(cursor);
    const [file, dataset] = [files[i] as string, datasets[i] as string];
    const known = { file: files.indexOf(file), dataset: datasets.indexOf(dataset) };
    const isItself = file === '.' && (shared & FLAGS.itself) !== 0;
    const hasFile = !isItself && known.file < i && (shared & FLAGS.file) !== 0;
    const hasDataset = known.dataset < i && (shared & FLAGS.dataset) !== 0;
    out.u8((isItself ? FLAGS.itself : 0) | (hasFile ? FLAGS.file : 0) | (hasDataset ? FLAGS.dataset : 0));
    if (hasFile) out.u64(known.file);
    else if (!isItself) out.text(file).u8(0);
    if (hasDataset) out.u64(known.dataset);
    else out.text(dataset).u8(0);
    out.put(block.subarray(at, cursor.at));
  }
  return out.u32(lookup3(out.done())).done();
}

/** The file with another object in the place of the only one in its global heap. */
function withHeapObject(file: Uint8Array, change: (object: Uint8Array) => Uint8Array): Uint8Array {
  const out = Buffer.from(file);
  const heap = out.indexOf('GCOL');
  const end = heap + Number(out.readBigUInt64LE(heap + 8));
  const object = heap + 16;
  const changed = change(out.subarray(object + 16, object + 16 + Number(out.readBigUInt64LE(object + 8))));
  out.fill(0, object + 16, end);
  out.set(changed, object + 16);
  out.writeBigUInt64LE(BigInt(changed.length), object + 8);
  const free = object + 16 + Math.ceil(changed.length / 8) * 8;
  out.writeBigUInt64LE(BigInt(end - free), free + 8);
  return out;
}

withOracle('python', 'mappings of virtual datasets as libhdf5 2.0 writes them', () => {
  test.each([
    ['with every name', 0],
    ['without the name of the file itself', FLAGS.itself],
    ['with files of earlier mappings', FLAGS.file],
    ['with datasets of earlier mappings', FLAGS.dataset],
    ['with no name twice', FLAGS.itself | FLAGS.file | FLAGS.dataset],
  ])('%s', async (_what, shared) => {
    const folder = temporaryDirectory();
    pythonSync(MAKE, [folder]);
    const path = join(folder, 'virtual.h5');
    const changed = join(folder, 'changed.h5');
    writeFileSync(
      changed,
      withHeapObject(readFileSync(path), (block) => asVersion1(block, shared)),
    );
    using before = File.openSync(path);
    const expected = (before.dataset('v').readSync() as Int32Array).slice();
    await h5wasm.ready;
    const theirs = new h5wasm.File(changed, 'r');
    expect([...((theirs.get('v') as Dataset).value as Int32Array)]).toEqual([...expected]);
    theirs.close();
    using file = File.openSync(changed);
    expect(file.dataset('v').readSync()).toEqual(expected);
    const copy = join(folder, 'copy.h5');
    await compact(changed, copy);
    using compacted = File.openSync(copy);
    expect(compacted.dataset('v').readSync()).toEqual(expected);
    expect([...expected].filter((_, i) => i % 10 === 0)).toEqual([0, 10, 100, 110, 5, 105]);
  });
});
