import { cpSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type Dataset, File, Group, type TypedArray } from 'h5log';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { handleOf, sessionOf } from '../../src/api/handle.ts';
import { checkLogFile, type SeenFile, seenByH5py } from '../log/format/check-log.ts';
import { h5dump, withOracle } from '../oracles.ts';
import { position, product, range } from '../space/model.ts';
import { temporaryDirectory } from '../temporary.ts';
import { folder, misread, readable, withSubfiles } from './fixtures.ts';

const names = [...readable.filter((name) => !withSubfiles.includes(name)), ...misread];
const figures = { files: 0, datasets: 0, written: 0, tables: 0, entries: 0 };

afterAll(() => {
  const text = Object.entries(figures).map(([name, n]) => `${n} ${name}`);
  process.stdout.write(`appended to files of the original: ${text.join(', ')}\n`);
});

/** What a dataset holds, as bytes of the file. */
interface Model {
  shape: readonly number[];
  bytes: Buffer;
  readonly size: number;
  readonly fill: Buffer;
}

function datasetsOf(group: Group): Dataset[] {
  return [...group.children()].flatMap(([, child]) =>
    child instanceof Group ? datasetsOf(child) : child ? [child] : [],
  );
}

/** Everything that can be read; names of datasets that cannot (in merge mode there is a file of which nothing can). */
function modelOf(file: File, seen: SeenFile): { models: Map<string, Model>; unreadable: string[] } {
  const models = new Map<string, Model>();
  const unreadable: string[] = [];
  for (const dataset of datasetsOf(file)) {
    const anchor = seen.datasets.find(({ path }) => path.replaceAll('/__', '/_') === dataset.path);
    const size = anchor?.size ?? 0;
    try {
      const bytes = Buffer.from(dataset.readSync(undefined, { raw: true }));
      const fill = anchor?.fill ? Buffer.from(anchor.fill, 'hex') : Buffer.alloc(size);
      models.set(dataset.path, { shape: dataset.shape, bytes, size, fill });
    } catch (error) {
      expect(error).toMatchObject({ code: 'FORMAT' });
      unreadable.push(dataset.path);
    }
  }
  return { models, unreadable };
}

/** Elements of a read in another order, ready to be written. */
function picked(values: unknown, order: readonly number[]): TypedArray {
  const list = values as ArrayLike<unknown>;
  if (!ArrayBuffer.isView(values)) return order.map((i) => list[i]) as unknown as TypedArray;
  const make = values.constructor as new (length: number) => TypedArray;
  const out = new make(order.length) as unknown as unknown[];
  order.forEach((from, to) => {
    out[to] = list[from];
  });
  return out as unknown as TypedArray;
}

/** Writes over a part of the dataset what other parts of it hold: half of it as one box, then single elements of it. */
function overwrite(dataset: Dataset, model: Model, round: number): void {
  const { shape, size } = model;
  const total = shape.reduce((a, b) => a * b, 1);
  if (total === 0) return;
  const values = dataset.readSync();
  const old = Buffer.from(model.bytes);
  const write = (start: number[], count: number[], shift: number): void => {
    const points = product(start.map((from, d) => range(from, count[d] as number))).map((at) => position(at, shape));
    const order = points.map((at) => (at + shift) % total);
    dataset.write(picked(values, order), { start, count });
    points.forEach((at, i) => {
      const from = (order[i] as number) * size;
      old.copy(model.bytes, at * size, from, from + size);
    });
    figures.written++;
  };
  const half = shape.map((n, d) => (d === round % Math.max(1, shape.length) ? Math.ceil(n / 2) : n));
  const start = shape.map((n, d) => (round % 2 === 0 ? 0 : n - (half[d] as number)));
  write(start, half, 1 + round);
  for (let k = 0; k < Math.min(3, total); k++) {
    let left = Math.floor((k * total) / 3);
    const at = [...shape].reverse().map((n) => {
      const x = left % n;
      left = (left - x) / n;
      return x;
    });
    write(
      at.reverse(),
      shape.map(() => 1),
      2 + k,
    );
  }
}

/** Makes a dimension longer where that is allowed: what is new is fill. */
function grow(dataset: Dataset, model: Model): void {
  const shape = model.shape.map((n, d) => {
    const most = dataset.maxShape[d];
    return most === null ? n + 2 : Math.min(most as number, n + 1);
  });
  if (shape.every((n, d) => n === model.shape[d])) return;
  dataset.resize(shape);
  const bytes = Buffer.alloc(shape.reduce((a, b) => a * b, 1) * model.size);
  product(shape.map((n) => range(0, n))).forEach((at, i) => {
    const known = at.every((x, d) => x < (model.shape[d] as number));
    const from = position(at, model.shape) * model.size;
    const element = known ? model.bytes.subarray(from, from + model.size) : model.fill;
    element.copy(bytes, i * model.size);
  });
  model.shape = shape;
  model.bytes = bytes;
}

function expectModel(file: File, models: ReadonlyMap<string, Model>, what: string): void {
  for (const [path, { shape, bytes }] of models) {
    const dataset = file.dataset(path);
    expect(dataset.shape, `${what}: ${path}`).toEqual(shape);
    expect(Buffer.from(dataset.readSync(undefined, { raw: true })).equals(bytes), `${what}: ${path}`).toBe(true);
    figures.datasets++;
  }
}

withOracle(['h5dump', 'python'], 'appending to a file of the original', () => {
  const work = temporaryDirectory();
  const seen = new Map<string, SeenFile>();
  const places = names.map((name) => join(work, basename(name)));

  beforeAll(() => {
    names.forEach((name, i) => {
      cpSync(join(folder, name), places[i] as string);
    });
    seenByH5py(places).forEach((file, i) => {
      seen.set(names[i] as string, file);
    });
  });

  /** Copies of files that we appended to, and the fixtures they were. */
  const states: { path: string; name: string }[] = [];
  const keep = (path: string, name: string): void => {
    const copy = `${path}.${states.length}`;
    cpSync(path, copy);
    states.push({ path: copy, name });
  };

  test.each(names)(
    '%s: new objects, data over old data, larger shapes; twice in a row, then with merged tables',
    (name) => {
      const path = places[names.indexOf(name)] as string;
      let file = File.openSync(path, { mode: 'r+' });
      const { models, unreadable } = modelOf(file, seen.get(name) as SeenFile);
      const attributes = attributesOf(file, unreadable);
      for (let round = 0; round < 2; round++) {
        if (round > 0) file = File.openSync(path, { mode: 'r+' });
        for (const [dataset, model] of [...models]) {
          const target = file.dataset(dataset);
          overwrite(target, model, round);
          grow(target, model);
          file.flushSync();
          overwrite(target, model, round + 1);
          target.attributes.set(`added ${round}`, round);
          attributes[`${dataset} added ${round}`] = round;
        }
        const made = file.createDataset(`appended/_${round}/new`, {
          dtype: 'int32',
          shape: [2, 3],
          maxShape: [null, 3],
        });
        made.write(Int32Array.of(1, 2, 3, 4, 5, 6 + round));
        const bytes = Buffer.from(Int32Array.of(1, 2, 3, 4, 5, 6 + round).buffer);
        models.set(made.path, { shape: [2, 3], bytes, size: 4, fill: Buffer.alloc(4) });
        file.attributes.set(`root ${round}`, 'text');
        attributes[`/ root ${round}`] = 'text';
        expectModel(file, models, `${name}, round ${round}, before the flush`);
        file.flushSync();
        expectModel(file, models, `${name}, round ${round}`);
        file.closeSync();
        keep(path, name);
        const reader = File.openSync(path);
        expectModel(reader, models, `${name}, round ${round}, read again`);
        expect(attributesOf(reader, unreadable)).toEqual(attributes);
        for (const dataset of unreadable)
          expect(() => reader.dataset(dataset).readSync()).toThrow(expect.objectContaining({ code: 'FORMAT' }));
        reader.closeSync();
      }
      file = File.openSync(path, { mode: 'r+' });
      const last = file.dataset('appended/_1/new', 'int32');
      for (let i = 0; i < 20; i++) {
        last.write([i], { start: [0, 0], count: [1, 1] });
        file.flushSync();
      }
      models.get('/appended/_1/new')?.bytes.writeInt32LE(19, 0);
      file.closeSync();
      keep(path, name);
      const reader = File.openSync(path);
      expectModel(reader, models, `${name}, merged`);
      reader.closeSync();
      expect(statSync(path).size).toBeGreaterThan(statSync(join(folder, name)).size);
      figures.files++;
    },
  );

  test('every fixture took part', () => {
    expect(figures.files).toBe(names.length);
    expect(names.length).toBe(61);
  });

  describe('and deleting a dataset', () => {
    const sharing = names.filter((name) => /share_1r|recm_|mix_2r|types_|under_/.test(name));

    test.each(sharing)('%s: others that refer to it keep their contents, and no reference to it is left', (name) => {
      const path = join(work, `delete-${basename(name)}`);
      cpSync(join(folder, name), path);
      const file = File.openSync(path, { mode: 'r+' });
      const { models } = modelOf(file, seen.get(name) as SeenFile);
      // The first dataset holds the selections that others refer to.
      const first = datasetsOf(file).find((dataset) => idOf(dataset) === 0) as Dataset;
      file.delete(first.path);
      models.delete(first.path);
      file.flushSync();
      expectModel(file, models, name);
      file.closeSync();
      keep(path, name);
      const reader = File.openSync(path);
      expectModel(reader, models, `${name}, read again`);
      reader.closeSync();
    });

    test('leaves none of the references that were there', () => {
      const then = sharing.flatMap((name) => {
        const file = seen.get(name) as SeenFile;
        const isFirst = ({ attributes }: SeenFile['datasets'][number]): boolean =>
          attributes.some((attribute) => attribute.name === '_ID' && attribute.value?.[0] === 0);
        const datasets = file.datasets.filter((dataset) => !isFirst(dataset));
        return referencesToGone(readFileSync(join(folder, name)), { ...file, datasets });
      });
      expect(then.length).toBeGreaterThan(10);
      const deleted = states.filter(({ path }) => basename(path).startsWith('delete-')).map(({ path }) => path);
      expect(deleted).toHaveLength(sharing.length);
      const now = seenByH5py(deleted).flatMap((file, i) => referencesToGone(readFileSync(deleted[i] as string), file));
      expect(now).toEqual([]);
    });
  });

  test('h5dump and h5py list every state, the 14 rules hold for what we wrote, and what the original wrote is untouched', () => {
    const paths = states.map(({ path }) => path);
    // One process for many: its exit code is not 0 if one of them is not accepted.
    for (let i = 0; i < paths.length; i += 50) h5dump(...paths.slice(i, i + 50));
    seenByH5py(paths).forEach((now, i) => {
      const { path, name } = states[i] as { path: string; name: string };
      const image = readFileSync(path);
      const original = readFileSync(join(folder, name));
      const checked = inFile(basename(path), () => checkLogFile(image, now, original.length));
      // Only the superblock and what comes behind the original's end are ours.
      for (const dataset of (seen.get(name) as SeenFile).datasets) {
        if (!dataset.path.startsWith('/_LOG/') || dataset.offset === null) continue;
        const [from, end] = [dataset.offset, dataset.offset + (dataset.shape[0] as number)];
        expect(image.subarray(from, end).equals(original.subarray(from, end)), `${name}: ${dataset.path}`).toBe(true);
      }
      figures.entries += checked.entries.length;
      figures.tables += checked.counts[2] as number;
    });
    expect(states.length).toBeGreaterThan(3 * 61);
  });
});

function inFile<T>(name: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw new Error(`${name}: ${(error as Error).message}`);
  }
}

function idOf(dataset: Dataset): number | undefined {
  return sessionOf(dataset).logDataset(handleOf(dataset).node, dataset.path)?.id;
}

/** Values of all attributes by object and name. */
function attributesOf(file: File, unreadable: readonly string[]): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  const note = (object: Group | Dataset): void => {
    for (const [name, value] of object.attributes) out[`${object.path} ${name}`] = value;
  };
  const visit = (group: Group): void => {
    note(group);
    for (const [, child] of group.children()) {
      if (child instanceof Group) visit(child);
      else if (child && !unreadable.includes(child.path)) note(child);
    }
  };
  visit(file);
  return out;
}

/** Entries, in all tables and sections, of datasets that are there, which refer to an entry of one that is not: [table, offset]. */
function referencesToGone(image: Uint8Array, seen: SeenFile): [string, number][] {
  const view = new DataView(image.buffer, image.byteOffset, image.byteLength);
  const alive = new Set(
    seen.datasets.flatMap(({ attributes }) => attributes.filter(({ name }) => name === '_ID').map((a) => a.value?.[0])),
  );
  const found: [string, number][] = [];
  for (const { path, offset, shape } of seen.datasets) {
    if (!path.startsWith('/_LOG/_md_') || offset === null) continue;
    const sections = Number(view.getBigInt64(offset, true));
    for (let at = offset + 8 * (sections + 1); at < offset + (shape[0] as number); at += view.getInt32(at, true)) {
      const flags = view.getInt32(at + 8, true);
      if ((flags & 0x10) === 0 || !alive.has(view.getInt32(at + 4, true))) continue;
      const target = at + Number(view.getBigInt64(at + (flags & 0x20 ? 36 : 28), true));
      if (!alive.has(view.getInt32(target + 4, true))) found.push([path, at - offset]);
    }
  }
  return found;
}
