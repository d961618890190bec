import { join } from 'node:path';
import { type Dataset, File, type Group } from 'h5log';
import { type ByteStorage, memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { count } from '../counts.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { random, repeats, seed } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';

/** Without its blocking half, as a server or a Blob. */
function withoutBlocking(storage: ByteStorage): ByteStorage {
  return {
    name: storage.name,
    size: () => storage.size(),
    read: (into, offset) => storage.read(into, offset),
    close: () => storage.close(),
  };
}

/** Everything that a user can see of a file. */
async function contents(group: Group): Promise<unknown> {
  const attributes = [...group.attributes].map(([name, value]) => [name, String(value)]);
  const children: [string, unknown][] = [];
  for (const [name, child] of group.children()) {
    if (child?.kind === 'group') children.push([name, await contents(child)]);
    else if (child)
      children.push([name, { shape: child.shape, of: [...child.attributes], data: String(await child.read()) }]);
  }
  return { attributes, children };
}

const SHAPE = [8, 5] as const;

/** A writer that does random things to its file, a session after the other. */
class Writer {
  readonly #storage: ByteStorage;
  readonly #next: () => number;
  file: File;

  constructor(storage: ByteStorage, next: () => number) {
    this.#storage = storage;
    this.#next = next;
    this.file = File.createSync(storage);
  }

  #pick(n: number): number {
    return Math.floor(this.#next() * n);
  }

  step(): void {
    const { file } = this;
    const path = `${this.#pick(2) === 0 ? '' : `g${this.#pick(3)}/`}d${this.#pick(5)}`;
    const dataset = file.get(path) as Dataset | undefined;
    switch (this.#pick(9)) {
      case 0:
        if (dataset) file.delete(path);
        break;
      case 1:
        if (dataset) dataset.resize([1 + this.#pick(12), SHAPE[1]]);
        break;
      case 2:
        (dataset ?? file).attributes.set(`a${this.#pick(3)}`, `text ${this.#pick(1000)}`);
        break;
      case 3:
        file.closeSync();
        this.file = File.openSync(this.#storage, { mode: 'r+' });
        break;
      default:
        this.#write(path, dataset);
    }
  }

  #write(path: string, known: Dataset | undefined): void {
    const filters = this.#pick(2) === 0 ? [{ deflate: 1 }] : [];
    const make = (): Dataset =>
      this.file.createDataset(path, { dtype: 'int32', shape: SHAPE, maxShape: [null, SHAPE[1]], fill: -9, filters });
    const dataset = known ?? make();
    const rows = dataset.shape[0] as number;
    const start = [this.#pick(rows), this.#pick(SHAPE[1])];
    const size = 1 + this.#pick(SHAPE[1] - (start[1] as number));
    const values = Int32Array.from({ length: size }, () => this.#pick(1e6));
    dataset.write(values, { start, count: [1, size] });
  }
}

describe('a reader that follows a file', () => {
  test('sees after each refresh what one sees that opens the file then', async () => {
    const name = 'refresh model';
    const programs = repeats(80);
    let refreshes = 0;
    for (let program = 0; program < programs; program++) {
      const next = random(seed(name) + program);
      const storage = memoryStorage();
      const writer = new Writer(storage, next);
      const readers = [await File.open(storage), await File.open(withoutBlocking(storage))];
      for (let round = 0; round < 25; round++) {
        for (let steps = Math.floor(next() * 5); steps >= 0; steps--) writer.step();
        writer.file.flushSync();
        if (next() < 0.3) continue;
        const fresh = await File.open(storage);
        const expected = await contents(fresh);
        for (const reader of readers) {
          // Not everything is looked at in every state.
          if (next() < 0.2) await reader.refresh();
          await reader.refresh();
          if (next() < 0.3) continue;
          refreshes++;
          expect(reader.sequence).toBe(fresh.sequence);
          expect(await contents(reader), `program ${program}, round ${round}`).toEqual(expected);
        }
        await fresh.close();
      }
      for (const reader of readers) await reader.close();
      writer.file.closeSync();
    }
    count(name, { programs, refreshes });
  });

  test('goes on with a file that was made anew in the same storage', async () => {
    const storage = memoryStorage();
    const make = (value: number): void => {
      const file = File.createSync(storage);
      for (let i = 0; i < value; i++) file.createGroup(`g${i}`);
      file.createDataset('x', { dtype: 'int32', shape: [4] }).write(new Int32Array(4).fill(value));
      file.closeSync();
    };
    make(1);
    const reader = File.openSync(storage);
    const dataset = reader.dataset('x', 'int32');
    expect([...dataset.readSync()]).toEqual([1, 1, 1, 1]);
    make(2);
    expect(reader.refreshSync()).toBe(true);
    expect([...dataset.readSync()]).toEqual([2, 2, 2, 2]);
    reader.closeSync();
  });
});

withOracle('python', 'a reader that follows a file which h5py changes between our commits', () => {
  test('sees the change after the next commit', () => {
    const path = join(temporaryDirectory(), 'followed.h5');
    const file = File.createSync(path);
    file.createDataset('x', { dtype: 'int32', shape: [4] }).write(Int32Array.of(1, 2, 3, 4));
    file.createGroup('g').attributes.set('n', 1);
    file.closeSync();
    const reader = File.openSync(path);
    expect(reader.group('g').attributes.get('n')).toBe(1);
    expect([...reader.dataset('x', 'int32').readSync()]).toEqual([1, 2, 3, 4]);
    pythonSync(
      `import h5py, sys\nwith h5py.File(sys.argv[1], 'r+') as f: f['g'].create_group('h'); f['g'].attrs['m'] = 5`,
      [path],
    );
    const again = File.openSync(path, { mode: 'r+' });
    again.dataset('x', 'int32').write(Int32Array.of(9), { start: [0], count: [1] });
    again.closeSync();
    expect(reader.refreshSync()).toBe(true);
    expect(reader.group('g').attributes.get('m')).toBe(5n);
    expect(reader.has('g/h')).toBe(true);
    expect([...reader.dataset('x', 'int32').readSync()]).toEqual([9, 2, 3, 4]);
    reader.closeSync();
  });
});
