// Published datasets that h5log and h5py write, copy, link, move and delete in turn: h5py puts new objects where deleted ones had been.

import { copyFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type DatasetOptions, File } from 'h5log';
import { compact, replay, seal } from 'h5log/tools';
import { expect, test } from 'vitest';
import { count } from '../../counts.ts';
import { pythonSync, withOracle } from '../../oracles.ts';
import { random, repeats, seed } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';

const SUITE = 'objects that h5py puts where others had been';
const SIZE = 6;
const LAYOUTS: readonly Partial<DatasetOptions<'int32'>>[] = [
  {},
  { chunks: [3], maxShape: [null] },
  { chunks: [2], filters: [{ deflate: 1 }] },
];

const SEEN = `
import sys, json, h5py
with h5py.File(sys.argv[1]) as f: print(json.dumps([f[n][()].tolist() for n in sys.argv[2:]]))
`;

const folder = temporaryDirectory();

/** What a file should have. */
class Model {
  readonly path: string;
  readonly #next: () => number;
  /** The values of each dataset; hard links share them. */
  readonly #values = new Map<string, number[]>();
  /** Of what h5py has copied: when the original is gone, a copy may take its place, with all that was ever written to it. */
  readonly #copied = new Set<number[]>();
  #names = 0;
  /** How often h5py copied something, and the file did not get longer. */
  inPlace = 0;

  constructor(path: string, from: number) {
    this.path = path;
    this.#next = random(from);
    const file = File.createSync(path, { publish: 'close' });
    this.#addRoom(file);
    for (let i = 0; i < 5; i++) this.#create(file);
    this.#addRoom(file);
    file.closeSync();
  }

  get expected(): [string, number[]][] {
    return [...this.#values];
  }

  #pick(n: number): number {
    return Math.floor(this.#next() * n);
  }

  #one(): string {
    return [...this.#values.keys()][this.#pick(this.#values.size)] as string;
  }

  /** Names of one length: h5py often finds room for a link where another one was. */
  #name(): string {
    return `${this.#pick(3) === 0 ? 'g/' : ''}n${String(this.#names++).padStart(3, '0')}`;
  }

  /** Something large that the next program may delete. */
  #addRoom(file: File): void {
    const room = file.requireGroup('room');
    for (let i = 0; i < 4; i++)
      room.createGroup(`r${this.#names++}`).attributes.set('text', 'x'.repeat(this.#pick(3000)));
    room.createDataset(`d${this.#names++}`, { dtype: 'int32', shape: [2000] }).write(new Int32Array(2000).fill(3));
    file.requireGroup('g');
  }

  #create(file: File): void {
    const name = this.#name();
    const values = Array.from({ length: SIZE }, () => this.#pick(1000));
    const layout = LAYOUTS[this.#pick(LAYOUTS.length)] as (typeof LAYOUTS)[0];
    file.createDataset(name, { dtype: 'int32', shape: [SIZE], ...layout }).write(Int32Array.from(values));
    this.#values.set(name, values);
  }

  #set(name: string): { at: number; value: number } {
    const at = this.#pick(SIZE);
    const value = this.#pick(1000);
    (this.#values.get(name) as number[])[at] = value;
    return { at, value };
  }

  #rename(from: string, to: string): void {
    this.#values.set(to, this.#values.get(from) as number[]);
    this.#values.delete(from);
  }

  #isCopied(name: string): boolean {
    return this.#copied.has(this.#values.get(name) as number[]);
  }

  byH5log(): void {
    const file = File.openSync(this.path, { mode: 'r+' });
    this.#addRoom(file);
    for (let k = 1 + this.#pick(6); k > 0; k--) {
      const name = this.#one();
      const other = this.#name();
      switch (this.#pick(9)) {
        case 0:
          this.#create(file);
          break;
        case 1:
          if (this.#values.size < 4 || this.#isCopied(name)) break;
          file.delete(name);
          this.#values.delete(name);
          break;
        case 2:
          file.move(name, other);
          this.#rename(name, other);
          break;
        case 3:
          file.createHardLink(other, name);
          this.#values.set(other, this.#values.get(name) as number[]);
          break;
        case 4:
          this.#addRoom(file);
          break;
        case 5:
          file.dataset(name).attributes.set(`a${this.#pick(3)}`, this.#pick(9));
          break;
        default: {
          const { at, value } = this.#set(name);
          file.dataset(name, 'int32').write(Int32Array.of(value), { start: [at], count: [1] });
        }
      }
    }
    file.closeSync();
  }

  byH5py(): void {
    const lines: string[] = ["if 'room' in f: del f['room']"];
    const { size } = statSync(this.path);
    let copies = 0;
    for (let k = 1 + this.#pick(4); k > 0; k--) {
      const name = this.#one();
      const other = this.#name();
      switch (this.#pick(8)) {
        case 0:
        case 1:
          copies++;
          this.#copied.add(this.#values.get(name) as number[]);
          lines.push(`f.copy('${name}', '${other}')`);
          this.#values.set(other, [...(this.#values.get(name) as number[])]);
          break;
        case 2:
          if (this.#values.size < 4 || this.#isCopied(name)) break;
          lines.push(`del f['${name}']`);
          this.#values.delete(name);
          break;
        case 3:
          lines.push(`f.move('${name}', '${other}')`);
          this.#rename(name, other);
          break;
        case 5: {
          if (this.#isCopied(name)) break;
          // Another dataset of the same name: not one of the log.
          const values = Array.from({ length: SIZE }, () => this.#pick(1000));
          lines.push(`del f['${name}']`, `f.create_dataset('${name}', data=${JSON.stringify(values)}, dtype='i4')`);
          this.#values.set(name, values);
          break;
        }
        case 4:
          lines.push(`f['${other}'] = f['${name}']`);
          this.#values.set(other, this.#values.get(name) as number[]);
          break;
        default: {
          const { at, value } = this.#set(name);
          lines.push(`f['${name}'][${at}] = ${value}`);
        }
      }
    }
    pythonSync(['import sys, h5py', "f = h5py.File(sys.argv[1], 'r+')", ...lines, 'f.close()'].join('\n'), [this.path]);
    if (copies > 0 && statSync(this.path).size === size) this.inPlace++;
  }

  /** Whether h5log or h5py has the file next. */
  step(): void {
    if (this.#pick(2) === 0) this.byH5log();
    else this.byH5py();
  }
}

function read(path: string, names: readonly string[]): [string, number[]][] {
  const file = File.openSync(path);
  try {
    return names.map((name) => [name, [...(file.dataset(name, 'int32').readSync() as Int32Array)]]);
  } finally {
    file.closeSync();
  }
}

withOracle('python', SUITE, () => {
  test('are told from those that h5log made', { timeout: 600_000 }, async () => {
    const programs = repeats(100);
    const next = random(seed(SUITE));
    let inPlace = 0;
    for (let i = 0; i < programs; i++) {
      const from = Math.floor(next() * 2 ** 31);
      const path = join(folder, 'a.h5');
      const model = new Model(path, from);
      const check = (file: string, when: string): void => {
        const { expected } = model;
        const names = expected.map(([name]) => name);
        expect(read(file, names), `seed ${from}, ${when}`).toEqual(expected);
        const seen = JSON.parse(pythonSync(SEEN, [file, ...names])) as number[][];
        expect(seen, `seed ${from}, ${when}, h5py`).toEqual(expected.map(([, values]) => values));
      };
      for (let step = 0; step < 8; step++) {
        model.step();
        check(path, `step ${step}`);
      }
      inPlace += model.inPlace;
      for (const way of [compact, replay, seal]) {
        const copy = join(folder, `${way.name}.h5`);
        if (way === seal) {
          copyFileSync(path, copy);
          await seal(copy);
        } else await way(path, copy, { force: true });
        check(copy, way.name);
      }
    }
    count(SUITE, { programs, inPlace });
    expect(inPlace).toBeGreaterThan(programs / 4);
  });
});
