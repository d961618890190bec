import { join } from 'node:path';
import { File, select } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { sessionOf } from '../../../src/api/handle.ts';
import { Table } from '../../../src/log/format/table-read.ts';
import { pythonSync, withOracle } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';

const folder = temporaryDirectory();

/** Dataset ids of entries, and of the entries they take their selection from, over all tables. */
function references(file: File): [number, number][] {
  const items = sessionOf(file).log?.main.state.tables ?? [];
  return items.flatMap(({ bytes, address }) =>
    bytes ? [...new Table(bytes, address).entries()].map(({ id, holder }): [number, number] => [id, holder]) : [],
  );
}

describe('deleting a dataset', () => {
  test('keeps what others refer to, and leaves no reference to it in the tables', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage);
    const shared = select.blocks(
      [
        [0, 0],
        [4, 2],
      ],
      [
        [2, 3],
        [1, 5],
      ],
    );
    const [first, second] = ['a', 'b'].map((name) => file.createDataset(name, { dtype: 'int16', shape: [6, 8] }));
    first?.write(new Int16Array(shared.size).fill(1), shared);
    second?.write(new Int16Array(shared.size).fill(2), shared);
    file.flushSync();
    expect(references(file)).toEqual([
      [0, 0],
      [1, 0],
    ]);
    const before = second?.readSync();
    const growth = sessionOf(file).log?.main.state.tables.length;
    file.delete('a');
    file.flushSync();
    expect(references(file)).toEqual([[1, 1]]);
    expect(sessionOf(file).log?.main.state.tables.length).toBe(growth);
    file.closeSync();
    const again = File.openSync(storage);
    expect(again.has('a')).toBe(false);
    expect(again.dataset('b').readSync()).toEqual(before);
  });

  test('costs nothing where nobody refers to it', () => {
    const file = File.createSync(memoryStorage(), { table: { share: false } });
    for (let i = 0; i < 50; i++) {
      const dataset = file.createDataset(`d${i}`, { dtype: 'int16', shape: [100] });
      for (let k = 0; k < 100; k += 2) dataset.write([k], { start: [k], count: [1] });
    }
    file.flushSync();
    file.delete('d7');
    expect(file.flushSync().bytes).toBeLessThan(3000);
    file.closeSync();
  });
});

withOracle('python', 'a file that another program changed can be given up', () => {
  test('discard closes without committing and leaves the other program’s change', () => {
    const path = join(folder, 'discard.h5');
    const file = File.createSync(path);
    file.createGroup('ours');
    file.flushSync();
    pythonSync('import h5py, sys\nwith h5py.File(sys.argv[1], "r+") as f: f.create_group("theirs")', [path]);
    file.createGroup('lost');
    expect(() => file.flushSync()).toThrow(expect.objectContaining({ code: 'STORAGE' }));
    file.discard();
    expect(file.closed).toBe(true);
    const again = File.openSync(path, { mode: 'r+' });
    expect([...again.keys()].sort()).toEqual(['ours', 'theirs']);
    again.closeSync();
  });
});
