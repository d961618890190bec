// What libhdf5 may do to a published file: h5py opens it for writing, changes it, and h5log goes on.

import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CreateOptions, type DatasetOptions, File, H5LogError, T } from 'h5log';
import { expect, test } from 'vitest';
import { count } from '../../counts.ts';
import { pythonSync, withOracle } from '../../oracles.ts';
import { full, random, seed } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { addToList, type Change, type Expected, expectSeen, put, resized, valuesOf } from '../model.ts';

const folder = temporaryDirectory();
type Publish = NonNullable<CreateOptions['publish']>;

/** What h5py does in one session: changes of shapes and values, and new datasets, in this order. */
type Edit = Change | { readonly create: string; readonly data: readonly number[] };

const EDIT = `
import json, sys, h5py, numpy as np
with h5py.File(sys.argv[1], 'r+') as f:
    for c in json.load(sys.stdin):
        if 'create' in c: f.create_dataset(c['create'], data=np.array(c['data'], 'i4'))
        elif 'shape' in c: f[c['path']].resize(c['shape'])
        else: f[c['path']][tuple(slice(a, a + n) for a, n in zip(c['start'], c['count']))] = np.reshape(c['data'], c['count'])
`;

/** A log beside a model of what is in it; h5py looks at every state in the end. */
class Run {
  readonly path: string;
  readonly #model = new Map<string, Expected>();
  readonly #list: string;
  readonly #next: () => number;
  /** Elements that h5log has newer values of than those that h5py sees. */
  readonly #newer = new Map<string, Set<number>>();
  /** How many states h5py is to look at. */
  states = 0;
  #file: File;

  constructor(name: string, publish: Publish) {
    this.path = join(folder, `${name}.h5`);
    this.#list = join(folder, `${name}.list`);
    this.#next = random(seed(name));
    this.#file = File.createSync(this.path, { publish });
  }

  #values(size: readonly number[]): number[] {
    return Array.from({ length: size.reduce((a, b) => a * b, 1) }, () => Math.floor(this.#next() * 1e6));
  }

  /** A dataset of int32, written as a whole. */
  create(path: string, options: Omit<DatasetOptions<'int32'>, 'dtype'>): void {
    const { shape = [], maxShape = shape, fill = 0 } = options;
    this.#file.createDataset(path, { dtype: 'int32', ...options });
    const size = shape.reduce((a, b) => a * b, 1);
    const values = Array.from({ length: size }, () => fill as number);
    this.#model.set(path, { shape: [...shape], maxShape, values, fill: fill as number, attributes: new Map() });
    this.write(
      path,
      shape.map(() => 0),
      shape,
    );
  }

  write(path: string, start: readonly number[], count: readonly number[]): void {
    const data = this.#values(count);
    this.#file.dataset(path, 'int32').write(Int32Array.from(data), { start, count });
    put(this.#of(path), start, count, data);
  }

  /** A session that shows others nothing of what it writes. */
  unseen(path: string, start: readonly number[], count: readonly number[]): void {
    this.open('never');
    this.write(path, start, count);
    this.close(false);
    const marks = { ...this.#of(path), values: this.#of(path).values.map(() => 0) };
    put(
      marks,
      start,
      count,
      this.#values(count).map(() => 1),
    );
    this.#newer.set(path, new Set(marks.values.flatMap((mark, i) => (mark === 1 ? [i] : []))));
  }

  append(path: string, rows: number): void {
    const model = this.#of(path);
    const [first = 0, ...rest] = model.shape;
    const data = this.#values([rows, ...rest]);
    this.#file.dataset(path, 'int32').append(Int32Array.from(data));
    resized(model, [first + rows, ...rest]);
    put(model, [first, ...rest.map(() => 0)], [rows, ...rest], data);
  }

  resize(path: string, shape: readonly number[]): void {
    this.#file.dataset(path).resize(shape);
    resized(this.#of(path), shape);
  }

  #of(path: string): Expected {
    const found = this.#model.get(path);
    if (!found) throw new Error(`the model has no ${path}`);
    return found;
  }

  flush(): void {
    this.#file.flushSync();
    this.#check();
    if (this.#file.published === this.#file.sequence) this.#show();
  }

  publish(): void {
    expect(this.#file.publishSync().without).toEqual([]);
    this.#check();
    this.#show();
  }

  /** `shown`: everybody is to see everything now. */
  close(shown = true): void {
    this.#file.closeSync();
    if (shown) this.#show();
  }

  open(publish?: Publish): void {
    this.#file = File.openSync(this.path, { mode: 'r+', ...(publish === undefined ? {} : { publish }) });
    this.#check();
  }

  /** Lets h5py change the file, which is closed. A box without data gets random values. */
  h5py(...edits: (Edit | { path: string; start: readonly number[]; count: readonly number[] })[]): void {
    const whole = edits.map(
      (edit): Edit =>
        ('start' in edit && !('data' in edit) ? { ...edit, data: this.#values(edit.count) } : edit) as Edit,
    );
    pythonSync(EDIT, [this.path], JSON.stringify(whole));
    for (const edit of whole) {
      if ('create' in edit) {
        const shape = [edit.data.length];
        this.#model.set(edit.create, {
          shape,
          maxShape: shape,
          values: [...edit.data],
          fill: 0,
          attributes: new Map(),
        });
      } else if ('shape' in edit) resized(this.#of(edit.path), edit.shape);
      else {
        const model = this.#of(edit.path);
        const newer = [...(this.#newer.get(edit.path) ?? [])].map((i) => [i, model.values[i] as number] as const);
        put(model, edit.start, edit.count, edit.data);
        for (const [i, value] of newer) model.values[i] = value;
      }
    }
    this.#newer.clear();
    this.#checkReader();
  }

  #check(): void {
    for (const [path, { shape, values }] of this.#model) {
      const dataset = this.#file.dataset(path);
      expect([...dataset.shape], `${path}, shape`).toEqual(shape);
      expect(valuesOf(dataset), path).toEqual(values);
    }
  }

  #checkReader(): void {
    const writer = this.#file;
    this.#file = File.openSync(this.path);
    this.#check();
    this.#file.closeSync();
    this.#file = writer;
  }

  #show(): void {
    const file = `${this.path}.${this.states++}`;
    copyFileSync(this.path, file);
    addToList(this.#list, file, this.#model);
  }

  /** An earlier commit may show what h5py changed, or be refused; nothing else is thrown. */
  #checkEarlier(): void {
    const newest = File.openSync(this.path);
    const commits = newest.commits();
    newest.closeSync();
    for (const { sequence } of commits) {
      try {
        const file = File.openSync(this.path, { asOf: sequence });
        for (const path of this.#model.keys()) if (file.has(path)) valuesOf(file.dataset(path));
        file.closeSync();
      } catch (error) {
        if (!(error instanceof H5LogError)) throw error;
        expect(['FORMAT', 'NOT_FOUND']).toContain(error.code);
      }
    }
  }

  async end(): Promise<number> {
    this.#checkReader();
    this.#checkEarlier();
    await expectSeen(this.#list);
    return this.states;
  }
}

/** What the file looks like, and what h5py does to it, in two turns. */
interface Case {
  readonly name: string;
  make(run: Run): void;
  /** Before h5py's turn: what is not published yet. */
  readonly newer: readonly [path: string, start: readonly number[], count: readonly number[]];
  edit(run: Run): void;
  /** After h5py's turn. */
  goOn(run: Run): void;
}

const GROWING = { shape: [40, 12], maxShape: [null, 12] } as const;

const cases: readonly Case[] = [
  {
    name: 'rewrite filtered chunks',
    make: (run) => run.create('/d', { ...GROWING, chunks: [8, 12], filters: ['shuffle', { deflate: 6 }] }),
    newer: ['/d', [9, 3], [3, 4]],
    edit: (run) =>
      run.h5py(
        { path: '/d', start: [0, 0], count: [24, 12] },
        // Shorter when deflated, so that libhdf5 moves the chunk, and frees the bytes of the log that it was in.
        { path: '/d', start: [24, 0], count: [8, 12], data: Array.from({ length: 96 }, () => 5) },
        { create: `/more${run.states}`, data: Array.from({ length: 400 }, (_, i) => i) },
      ),
    goOn: (run) => {
      run.append('/d', 3);
      run.write('/d', [4, 0], [6, 12]);
    },
  },
  {
    name: 'shrink and create another dataset',
    make: (run) => run.create('/d', { ...GROWING, chunks: [10, 12] }),
    newer: ['/d', [11, 0], [9, 12]],
    edit: (run) =>
      run.h5py(
        { path: '/d', shape: [15, 12] },
        // libhdf5 puts it where the chunks were: over blocks of the log.
        { create: `/more${run.states}`, data: Array.from({ length: 240 }, (_, i) => 1000 - i) },
      ),
    goOn: (run) => {
      // What was cut off is fill.
      run.resize('/d', [30, 12]);
      run.append('/d', 10);
      run.write('/d', [12, 2], [2, 7]);
    },
  },
  {
    name: 'write into an edge chunk',
    make: (run) => run.create('/d', { shape: [23, 9], maxShape: [null, null], chunks: [10, 4], fill: 7 }),
    newer: ['/d', [21, 8], [1, 1]],
    edit: (run) =>
      run.h5py({ path: '/d', start: [20, 8], count: [3, 1] }, { path: '/d', start: [15, 3], count: [8, 6] }),
    goOn: (run) => {
      run.append('/d', 2);
      run.resize('/d', [27, 11]);
      run.write('/d', [25, 7], [2, 4]);
    },
  },
  {
    name: 'grow and append',
    make: (run) => run.create('/d', { ...GROWING, chunks: [6, 12] }),
    newer: ['/d', [33, 0], [7, 12]],
    edit: (run) => run.h5py({ path: '/d', shape: [77, 12] }, { path: '/d', start: [40, 0], count: [30, 12] }),
    goOn: (run) => {
      run.append('/d', 5);
      run.write('/d', [38, 0], [4, 12]);
    },
  },
  {
    name: 'write into shared bytes',
    make: (run) => {
      run.create('/d', { ...GROWING, chunks: [10, 12] });
      run.create('/whole', { shape: [300, 7] });
    },
    newer: ['/whole', [40, 0], [15, 7]],
    edit: (run) =>
      run.h5py(
        { path: '/d', start: [1, 1], count: [15, 5] },
        { path: '/whole', start: [50, 0], count: [1, 7] },
        { path: '/whole', start: [250, 3], count: [50, 2] },
      ),
    goOn: (run) => {
      run.append('/d', 4);
      run.write('/whole', [51, 1], [7, 5]);
    },
  },
];

const WAYS: readonly Publish[] = full ? ['close', 'flush', { interval: 0 }, 'auto'] : ['close', 'flush'];
const name = 'libhdf5 on published files';

withOracle('python', 'what libhdf5 does to a published file', () => {
  for (const each of cases) {
    const file = (what: string): string => `${each.name} ${what}`.replace(/\W+/g, '-');

    test.each(WAYS)(`${each.name}, publish %j`, { timeout: 60_000 }, async (publish) => {
      const run = new Run(file(JSON.stringify(publish)), publish);
      each.make(run);
      run.flush();
      run.close();
      for (let turn = 0; turn < 2; turn++) {
        each.edit(run);
        run.open();
        each.goOn(run);
        run.flush();
        run.publish();
        each.goOn(run);
        run.close();
      }
      count(name, { cases: 1, 'states compared with h5py': await run.end() });
    });

    test(`${each.name}, where h5log has newer values: those count`, { timeout: 60_000 }, async () => {
      const run = new Run(file('newer'), 'close');
      each.make(run);
      run.close();
      run.unseen(...each.newer);
      each.edit(run);
      run.open('close');
      each.goOn(run);
      run.close();
      each.edit(run);
      run.open();
      run.close();
      count(name, { cases: 1, 'states compared with h5py': await run.end() });
    });
  }

  test('shrink, where h5log has newer values that it cuts off: they do not come back, step by step', async () => {
    const run = new Run('steps', 'close');
    run.create('/d', { ...GROWING, chunks: [10, 12] });
    run.close();
    run.unseen('/d', [11, 0], [29, 12]);
    run.h5py({ path: '/d', shape: [15, 12] });
    run.open('never');
    run.resize('/d', [17, 12]);
    run.flush();
    run.close(false);
    run.open('never');
    run.resize('/d', [25, 12]);
    run.append('/d', 2);
    run.flush();
    run.publish();
    run.close();
    await run.end();
  });

  test('grow, and h5log shrinks and grows it: what h5py wrote there is gone', async () => {
    const run = new Run('grown', 'close');
    run.create('/d', { ...GROWING, chunks: [10, 12] });
    run.close();
    run.h5py({ path: '/d', shape: [77, 12] }, { path: '/d', start: [35, 0], count: [42, 12] });
    run.open('never');
    run.resize('/d', [60, 12]);
    run.resize('/d', [70, 12]);
    run.flush();
    run.close(false);
    run.open('close');
    run.close();
    await run.end();
  });

  test('grow, where h5log has shrunk and grown it again: refused', () => {
    const path = join(folder, 'again.h5');
    const file = File.createSync(path, { publish: 'close' });
    file.createDataset('a', { dtype: 'int32', shape: [0], maxShape: [null] }).append(Int32Array.of(1, 2, 3, 4));
    file.closeSync();
    const unseen = File.openSync(path, { mode: 'r+', publish: 'never' });
    unseen.dataset('a').resize([2]);
    unseen.dataset('a').resize([4]);
    unseen.closeSync();
    pythonSync(EDIT, [path], JSON.stringify([{ path: 'a', shape: [5] }]));
    const found = File.openSync(path);
    expect(() => found.dataset('a').readSync()).toThrow(expect.objectContaining({ code: 'FORMAT' }));
    found.closeSync();
  });

  test('write texts and sequences: both sides read them, also those that h5log writes beside them', () => {
    const path = join(folder, 'texts.h5');
    const file = File.createSync(path, { publish: 'close' });
    const [texts, lists] = [
      file.createDataset('texts', { dtype: T.string(), shape: [4], maxShape: [null], chunks: [3] }),
      file.createDataset('lists', { dtype: T.vlen('int32'), shape: [3] }),
    ];
    texts.write(['one', 'two', '', 'four']);
    lists.write([Int32Array.of(1), Int32Array.of(), Int32Array.of(2, 3)]);
    file.closeSync();
    pythonSync(
      `import h5py, sys, numpy as np
with h5py.File(sys.argv[1], 'r+') as f:
    f['texts'][1] = 'zwei'
    f['texts'].resize((6,))
    f['texts'][5] = 'sechs ' * 2000
    f['lists'][1] = np.array([7, 8, 9], 'i4')`,
      [path],
    );
    const read = (mode: 'r' | 'r+'): unknown => {
      const found = File.openSync(path, { mode });
      const values = [found.dataset('texts').readSync(), found.dataset('lists').readSync()];
      found.closeSync();
      return values;
    };
    const sequences = [Int32Array.of(1), Int32Array.of(7, 8, 9), Int32Array.of(2, 3)];
    expect(read('r')).toEqual([['one', 'zwei', '', 'four', '', 'sechs '.repeat(2000)], sequences]);
    for (const publish of ['never', 'close'] as const) {
      const more = File.openSync(path, { mode: 'r+', publish });
      more.dataset('texts').write(['ONE'] as never, { start: [0], count: [1] });
      more.closeSync();
      expect(read('r')).toEqual([['ONE', 'zwei', '', 'four', '', 'sechs '.repeat(2000)], sequences]);
    }
    const seen = pythonSync(
      `import h5py, json, sys
with h5py.File(sys.argv[1]) as f:
    print(json.dumps([[v.decode() for v in f['texts'][:]], [v.tolist() for v in f['lists'][:]]]))`,
      [path],
    );
    expect(JSON.parse(seen)).toEqual([
      ['ONE', 'zwei', '', 'four', '', 'sechs '.repeat(2000)],
      [[1], [7, 8, 9], [2, 3]],
    ]);
  });

  test('grow, where h5log has grown it too: refused, and nothing else is', () => {
    const path = join(folder, 'both.h5');
    const file = File.createSync(path, { publish: 'close' });
    for (const path of ['a', 'b'])
      file.createDataset(path, { dtype: 'int32', shape: [0], maxShape: [null] }).append(Int32Array.of(1, 2));
    file.closeSync();
    const unseen = File.openSync(path, { mode: 'r+', publish: 'never' });
    unseen.dataset('a', 'int32').append(Int32Array.of(3));
    unseen.closeSync();
    pythonSync(EDIT, [path], JSON.stringify([{ path: 'a', shape: [5] }]));
    const found = File.openSync(path);
    expect(() => found.dataset('a').readSync()).toThrow(expect.objectContaining({ code: 'FORMAT' }));
    expect([...found.dataset('b', 'int32').readSync()]).toEqual([1, 2]);
    found.closeSync();
  });
});
