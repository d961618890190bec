// References in a published dataset, which h5log and h5py write in turn while both move, make and rename objects: they lead where a list says.

import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DatasetOptions, File, T } from 'h5log';
import { compact, replay, seal } from 'h5log/tools';
import { expect, test } from 'vitest';
import { count } from '../../counts.ts';
import { pythonSync, withOracle } from '../../oracles.ts';
import { random, repeats, seed } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';

const SUITE = 'references that h5log and h5py write';
const ELEMENTS = 7;
const LAYOUTS: readonly Partial<DatasetOptions<typeof T.reference>>[] = [
  {},
  { maxShape: [null], chunks: [3] },
  { maxShape: [null], chunks: [3], filters: ['shuffle', { deflate: 4 }] },
];

const SEEN = `
import sys, json, h5py
with h5py.File(sys.argv[1]) as f: print(json.dumps([f[r].name if r else '' for r in f['ends'][()]]))
`;

const folder = temporaryDirectory();

/** What a file should have. */
class Model {
  readonly path: string;
  readonly #next: () => number;
  /** Paths of objects; null: deleted. */
  readonly #objects: (string | null)[] = ['/x', '/y', '/z', '/w', '/g'];
  /** The objects that elements refer to; -1: none. */
  readonly #ends: number[];
  /** Elements that h5log has written since it published. */
  readonly #newer = new Set<number>();
  #names = 0;

  constructor(path: string, from: number, layout: Partial<DatasetOptions<typeof T.reference>>) {
    this.path = path;
    this.#next = random(from);
    this.#ends = Array.from({ length: ELEMENTS }, () => this.#pick(6) - 1);
    const file = File.createSync(path, { publish: this.#pick(2) === 0 ? 'close' : 'never' });
    file.createGroup('g');
    for (const name of ['x', 'y', 'z', 'w'])
      file.createDataset(name, { dtype: 'int32', shape: [2] }).write(Int32Array.of(1, 2));
    file.createDataset('ends', { dtype: T.reference, shape: [ELEMENTS], ...layout }).write(this.expected as never);
    this.#addRoom(file);
    file.publishSync();
    file.closeSync();
  }

  /** Something large, in place of which the other program may put what it makes: then the file does not get longer. */
  #addRoom(file: File): void {
    const room = file.requireGroup('room');
    for (let k = this.#pick(5); k > 0; k--)
      room.createGroup(this.#name()).attributes.set('text', 'x'.repeat(this.#pick(2000)));
  }

  get expected(): string[] {
    return this.#ends.map((object) => this.#objects[object] ?? '');
  }

  #pick(n: number): number {
    return Math.floor(this.#next() * n);
  }

  /** An object that is there. */
  #one(): number {
    const there = [...this.#objects.keys()].filter((object) => this.#objects[object]);
    return there[this.#pick(there.length)] as number;
  }

  #pathOf(object: number): string {
    return this.#objects[object] as string;
  }

  #name(): string {
    return `n${this.#names++}`;
  }

  byH5log(): void {
    const publish = this.#pick(3) === 0 ? 'close' : 'never';
    const file = File.openSync(this.path, { mode: 'r+', publish });
    this.#addRoom(file);
    for (let k = this.#pick(8); k > 0; k--) {
      const object = this.#one();
      const path = this.#pathOf(object);
      switch (this.#pick(7)) {
        case 0: {
          const place = this.#pick(ELEMENTS);
          const end = this.#pick(4) === 0 ? -1 : object;
          file.dataset('ends').write([this.#objects[end] ?? ''] as never, { start: [place], count: [1] });
          this.#ends[place] = end;
          this.#newer.add(place);
          break;
        }
        case 1:
          if (path === '/g') break;
          this.#objects[object] = `${this.#pick(2) === 0 ? '' : '/g'}/${this.#name()}`;
          file.move(path, this.#pathOf(object));
          break;
        case 2:
          if (path === '/g' || this.#objects.filter(Boolean).length < 4) break;
          file.delete(path);
          this.#objects[object] = null;
          break;
        case 3:
          file.flushSync();
          break;
        case 4:
          file.publishSync();
          this.#newer.clear();
          break;
        default:
          (file.get(path) as typeof file).attributes.set(`l${this.#pick(6)}`, 'w'.repeat(this.#pick(300)));
      }
    }
    file.closeSync();
    if (publish === 'close') this.#newer.clear();
  }

  byH5py(): void {
    const lines: string[] = this.#pick(2) === 0 ? [] : ["if 'room' in f: del f['room']"];
    // HDF5 1.10.8 may crash when it copies an object that has just got its ninth attribute.
    const changed = new Set<number>();
    for (let k = 1 + this.#pick(10); k > 0; k--) {
      const object = this.#one();
      const path = this.#pathOf(object);
      const name = this.#name();
      switch (this.#pick(8)) {
        case 0:
          this.#objects.push(`/${name}`);
          lines.push(this.#pick(2) === 0 ? `f['${name}'] = 1` : `f.create_group('${name}')`);
          break;
        case 1:
          if (path === '/g' || changed.has(object)) break;
          this.#objects.push(`/${name}`);
          lines.push(`f.copy('${path}', '${name}')`);
          break;
        case 2:
          if (path === '/g') break;
          lines.push(`f.move('${path}', '${name}')`);
          this.#objects[object] = `/${name}`;
          break;
        case 3:
        case 4:
          lines.push(`f['${path}'].attrs['${name}'] = 'v' * ${1 + this.#pick(300)}`);
          changed.add(object);
          break;
        default: {
          const place = this.#pick(ELEMENTS);
          lines.push(`f['ends'][${place}] = f['${path}'].ref`);
          if (!this.#newer.has(place)) this.#ends[place] = object;
        }
      }
    }
    pythonSync(['import sys, h5py', "f = h5py.File(sys.argv[1], 'r+')", ...lines, 'f.close()'].join('\n'), [this.path]);
  }

  /** Whether h5log or h5py has the file next. */
  step(): void {
    if (this.#pick(2) === 0) this.byH5log();
    else this.byH5py();
  }
}

function read(path: string): string[] {
  const file = File.openSync(path);
  try {
    return [...(file.dataset('ends').readSync() as unknown as string[])];
  } finally {
    file.closeSync();
  }
}

function publish(path: string): void {
  const file = File.openSync(path, { mode: 'r+' });
  file.publishSync();
  file.closeSync();
}

withOracle('python', SUITE, () => {
  test('and objects that both change', { timeout: 600_000 }, async () => {
    const programs = repeats(60);
    const next = random(seed(SUITE));
    for (let i = 0; i < programs; i++) {
      const from = Math.floor(next() * 2 ** 31);
      const path = join(folder, 'a.h5');
      const model = new Model(path, from, LAYOUTS[i % LAYOUTS.length] as (typeof LAYOUTS)[0]);
      for (let step = 0; step < 6; step++) {
        model.step();
        expect(read(path), `seed ${from}, step ${step}`).toEqual(model.expected);
      }
      for (const way of [compact, replay, seal, publish]) {
        const copy = join(folder, `${way.name}.h5`);
        if (way === compact || way === replay) await way(path, copy, { force: true });
        else {
          copyFileSync(path, copy);
          await (way as (path: string) => unknown)(copy);
        }
        expect(read(copy), `seed ${from}, ${way.name}`).toEqual(model.expected);
        expect(JSON.parse(pythonSync(SEEN, [copy])), `seed ${from}, ${way.name}, h5py`).toEqual(model.expected);
      }
    }
    count(SUITE, { programs });
  });
});
