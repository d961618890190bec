import { readdirSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { File } from '../../src/api/file.ts';
import { T } from '../../src/dtype/construct.ts';
import { memoryStorage } from '../../src/storage/memory.ts';
import { random, repeats, seed } from '../seed.ts';
import { mutate, type Target, target } from './mutations.ts';
import { Cases, PATIENCE } from './outcome.ts';
import { samples } from './samples.ts';

const FIXTURES = new URL('../fixtures/', import.meta.url);

/** Files of the original, whose headers carry no checksums; those in subfiles have no data of their own. */
function original(): Target[] {
  const folder = new URL('original/', FIXTURES);
  return readdirSync(folder)
    .filter((name) => name.endsWith('.h5') && !name.startsWith('subfile'))
    .map((name) => target(`original/${name}`, new Uint8Array(readFileSync(new URL(name, folder)))));
}

/** Files of libhdf5 in its oldest format: version 1 headers, symbol tables, version 1 B-trees; no checksums either. */
function earliest(): Target[] {
  const stored = ['earliest', 'old-group', 'chunk-trees', 'heaps', 'headers', 'short-addresses'].map((name) =>
    target(`hdf5/${name}`, new Uint8Array(gunzipSync(readFileSync(new URL(`hdf5/${name}.h5.gz`, FIXTURES))))),
  );
  const small = samples()
    .filter(({ name }) => ['earliest', 'references', 'raw-references', 'superblock-1', 'user-block'].includes(name))
    .map(({ name, bytes }) => target(`hostile/${name}`, bytes));
  return [...stored, ...small];
}

/** A log of ours with data: plain, filtered, strings, compounds, growing, and tables that were merged and compressed. */
function ours(): Target {
  const storage = memoryStorage();
  const file = File.createSync(storage, { publish: 'never', table: { compress: true } });
  const plain = file.createDataset('plain', { dtype: 'int32', shape: [6, 8] });
  const filtered = file.createDataset('filtered', {
    dtype: 'float64',
    shape: [0, 8],
    maxShape: [null, 8],
    filters: ['shuffle', { deflate: 6 }, 'fletcher32'],
  });
  for (let i = 0; i < 4; i++) {
    filtered.resize([i + 1, 8]);
    filtered.write(
      Float64Array.from({ length: 8 }, (_, k) => i * k),
      { start: [i, 0], count: [1, 8] },
    );
    plain.writeMany(Int32Array.of(i, 1, 2, 3), [i, 0, i, 2, i, 4, i + 1, 5], [1, 1]);
    file.flushSync();
  }
  file.closeSync();
  return target('ours, with data', storage.bytes());
}

/** A log of ours whose elements point elsewhere: into heaps, nested, filtered, and to objects. */
function pointing(): Target {
  const storage = memoryStorage();
  const file = File.createSync(storage, { publish: 'never' });
  const record = T.compound({ s: T.string(), to: T.reference, list: T.vlen(T.vlen('int16')) });
  const texts = file.createDataset('texts', { dtype: T.string(), shape: [6] });
  const records = file.createDataset('records', { dtype: record, shape: [4], filters: [{ deflate: 6 }] });
  for (let i = 0; i < 4; i++) {
    texts.write([`text ${i}`, 'x'.repeat(20 * i)], { start: [i], count: [2] });
    const list = [Int16Array.of(1, 2), new Int16Array(0)];
    records.write([{ s: `${i}`, to: i % 2 ? '/texts' : '', list }], { start: [i], count: [1] });
    file.flushSync();
  }
  file.closeSync();
  return target('ours, pointing', storage.bytes());
}

test(
  'logs and old files with fields at their limits, flipped bits and bytes copied about: all data is read',
  PATIENCE,
  async () => {
    const cases = new Cases();
    // Loads what is loaded once, so that no case has to answer for it.
    for (const { name, bytes } of [...original(), ...earliest()])
      for (const use of ['later', 'tools'] as const) await new Cases().runLater(name, 'unchanged', bytes, use);
    const next = random(seed('mutated logs'));
    const pick = <V>(list: readonly V[]): V => list[Math.floor(next() * list.length)] as V;
    const [theirs, old] = [original(), earliest()];
    const kinds = [theirs, theirs, theirs, theirs, old, [ours()], [pointing()]];
    for (let i = 0; i < repeats(100_000); i++) {
      const file = pick(pick(kinds));
      const { bytes, what } = mutate(file, next);
      const use = next();
      if (use < 0.8) cases.run(file.name, what, bytes, 'data');
      else if (use < 0.87) cases.run(file.name, what, bytes, 'append');
      else await cases.runLater(file.name, what, bytes, use < 0.95 ? 'later' : 'tools');
    }
    expect(cases.report('mutated logs')).toEqual([]);
  },
);
