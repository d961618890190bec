// Chunks with references are written when their objects have addresses, too late for filters that compress. libhdf5 must be able to write
// them all the same.

import { join } from 'node:path';
import { type DatasetOptions, File, T } from 'h5log';
import { describe, expect, test } from 'vitest';
import { pythonSync, withOracle } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';

const folder = temporaryDirectory();
const OBJECTS = ['/x', '/y', '/z', '/a rather long name'] as const;

const SEEN = `
import sys, json, h5py
with h5py.File(sys.argv[1]) as f: print(json.dumps([f[r].name if r else '' for r in f['ends'][()]]))
`;

const byH5log = (path: string): unknown => {
  const file = File.openSync(path);
  try {
    return [...(file.dataset('ends').readSync() as Iterable<unknown>)];
  } finally {
    file.closeSync();
  }
};

const byH5py = (path: string): unknown => JSON.parse(pythonSync(SEEN, [path]));

type Options = Partial<DatasetOptions<typeof T.reference>>;

withOracle('python', 'filtered chunks with references', () => {
  describe.each(['log', 'native'] as const)('%s', (connector) => {
    // Two references with deflate and a checksum often have the length that they have without filters, and always with shuffle alone.
    test.each<[string, Options]>([
      ['shuffle', { chunks: [4], filters: ['shuffle'] }],
      ['deflate and a checksum', { chunks: [2], filters: [{ deflate: 1 }, 'fletcher32'] }],
      ['all of them', { chunks: [3], filters: ['shuffle', { deflate: 6 }, 'fletcher32'] }],
    ])('%s: what h5py writes into them is read', (name, options) => {
      const path = join(folder, `${connector}-${name}.h5`);
      const file = File.createSync(path, { connector, ...(connector === 'log' && { publish: 'close' }) });
      for (const each of OBJECTS) file.createDataset(each, { dtype: 'int8', shape: [1] });
      const expected = Array.from({ length: 13 }, (_, i): string => (i % 5 === 4 ? '' : (OBJECTS[i % 4] as string)));
      const ends = file.createDataset('ends', { dtype: T.reference, shape: [13], maxShape: [null], ...options });
      ends.write(expected);
      file.closeSync();
      for (let round = 0; round < 4; round++) {
        // Objects that move have their references written anew.
        const again = File.openSync(path, { mode: 'r+' });
        again.dataset('/x').attributes.set('round', round);
        if (connector === 'log') again.dataset('ends').write([expected[0] as string], { start: [0], count: [1] });
        again.closeSync();
        expect(byH5log(path)).toEqual(expected);
        expect(byH5py(path)).toEqual(expected);
        const lines: string[] = [];
        for (let i = round; i < 13; i += 3) {
          expected[i] = OBJECTS[(i + round) % 4] as string;
          lines.push(`f['ends'][${i}] = f['${expected[i]}'].ref`);
        }
        pythonSync(`import sys, h5py\nf = h5py.File(sys.argv[1], 'r+')\n${lines.join('\n')}\nf.close()`, [path]);
        expect(byH5py(path)).toEqual(expected);
        expect(byH5log(path)).toEqual(expected);
      }
    });
  });
});
