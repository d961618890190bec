import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../../scripts/root.ts';

// The bundles of the package, as the setup of the tests has built them. Those for browsers have short names for what is internal, and
// simple loops: both must read the same from every file, with the same errors, and what one has written the other must read.

type H5log = typeof import('h5log');

const load = async <M>(platform: 'node' | 'browser', entry: string): Promise<M> =>
  (await import(join(root, 'dist', platform, `${entry}.js`))) as M;
const [node, page, { memoryStorage }] = await Promise.all([
  load<H5log>('node', 'index'),
  load<H5log>('browser', 'index'),
  load<typeof import('h5log/storage')>('browser', 'storage'),
]);

const fixtures = join(root, 'test', 'fixtures');
/** Files of libhdf5, of h5log 0.1 and of the original, and damaged ones. */
const files = readdirSync(fixtures, { recursive: true, encoding: 'utf8' }).filter(
  (name) => name.endsWith('.h5') && statSync(join(fixtures, name)).size < 2 ** 22,
);
const MOST_OBJECTS = 300;
const MOST_ELEMENTS = 200_000;

/** Everything that a file shows, one line each; errors with their details. */
async function contents(h5log: H5log, bytes: Uint8Array): Promise<string[]> {
  const lines: string[] = [];
  const say = async (name: string, look: () => unknown): Promise<void> => {
    try {
      lines.push(`${name} ${text(await look())}`);
    } catch (error) {
      // Anything else than an error of ours is a fault.
      if (!h5log.isH5LogError(error)) throw error;
      lines.push(`${name} ${error.code} ${error.message} ${text({ ...error, cause: undefined })}`);
    }
  };
  await say('file', async () => {
    const file = await h5log.File.open(bytes.slice());
    const todo: [string, InstanceType<H5log['Group']>][] = [['', file]];
    for (const [path, group] of todo) {
      await say(`${path}/`, () => [...group.keys()]);
      for (const name of lines.length < MOST_OBJECTS ? group.keys() : []) {
        const where = `${path}/${name}`;
        await say(where, async () => {
          const object = group.get(name);
          if (!object) return null;
          for (const attribute of object.attributes.keys())
            await say(`${where} ${attribute}`, () => object.attributes.get(attribute));
          if (object instanceof h5log.Group) {
            if (todo.length < MOST_OBJECTS && path.length < 100) todo.push([where, object]);
            return String(object);
          }
          const { dtype, shape, maxShape, chunks, filters, pipeline, published, size } = object;
          await say(`${where} data`, () => (size <= MOST_ELEMENTS ? object.read() : null));
          await say(`${where} fill`, () => object.fill);
          return [String(object), dtype, shape, maxShape, chunks, filters, pipeline, published];
        });
      }
    }
    const { mode, connector, sequence } = file;
    await file.close();
    return [mode, connector, sequence];
  });
  return lines;
}

/** JSON with what it lacks: kinds of typed arrays, NaN, infinities, negative zero, bigints. */
function text(value: unknown): string {
  return String(
    JSON.stringify(value, (_key, part: unknown) => {
      if (ArrayBuffer.isView(part)) return [part.constructor.name, ...Array.from(part as Float64Array, say)];
      return typeof part === 'bigint' || typeof part === 'number' ? say(part) : part;
    }),
  );
}

const say = (value: number | bigint): string => (Object.is(value, -0) ? '-0' : String(value));

test('the bundle for browsers reads every fixture as Node does', { timeout: 300_000 }, async () => {
  let lines = 0;
  for (const name of files) {
    const bytes = readFileSync(join(fixtures, name));
    const expected = await contents(node, bytes);
    expect(await contents(page, bytes), name).toEqual(expected);
    lines += expected.length;
  }
  expect(files.length).toBeGreaterThan(100);
  expect(lines).toBeGreaterThan(2000);
});

test.each(['log', 'native'] as const)('what it writes (%s), Node reads', async (connector) => {
  const { File, T, select } = page;
  const storage = memoryStorage();
  const file = await File.create(storage, { connector });
  const numbers = file.createDataset('g/numbers', { dtype: 'int16', shape: [0, 40], maxShape: [null, 40], fill: -1 });
  const packed = file.createDataset('packed', {
    dtype: 'float64',
    shape: [30, 20],
    chunks: [7, 6],
    filters: ['shuffle', { deflate: 4 }, 'fletcher32'],
    attributes: { unit: 'K', range: Float32Array.of(1, 2) },
  });
  const record = T.compound({ id: 'int32', name: T.string(), at: T.array('float32', [2]), to: T.reference });
  const records = file.createDataset('records', { dtype: record, shape: [4] });
  const lists = file.createDataset('lists', { dtype: T.vlen('uint8'), shape: [3] });
  for (let step = 0; step < 12; step++) {
    numbers.append(Float64Array.from({ length: 40 }, (_, i) => step * 1000 + i));
    packed.write(Float64Array.of(step, step + 0.5), { start: [step, step], count: [1, 2] });
    if (step % 3 === 0) await file.flush();
  }
  packed.write(
    [7, 8, 9],
    select.points([
      [29, 19],
      [0, 0],
      [15, 3],
    ]),
  );
  const row = (id: number) => ({
    id,
    name: `näme ${id}`,
    at: Float32Array.of(id, -id),
    to: id % 2 ? '/g/numbers' : '',
  });
  records.write([row(0), row(1), row(2), row(3)]);
  lists.write([[], [1], [2, 3]].map((list) => Uint8Array.from(list)));
  numbers.resize([9, 40]);
  await file.close();
  const bytes = new Uint8Array(await storage.size());
  await storage.read(bytes, 0);
  const seen = await contents(node, bytes);
  expect(await contents(page, bytes)).toEqual(seen);
  using read = node.File.openSync(bytes);
  const values = read.dataset('g/numbers').readSync() as Int16Array;
  expect(values).toEqual(Int16Array.from({ length: 9 * 40 }, (_, i) => Math.floor(i / 40) * 1000 + (i % 40)));
  expect(read.dataset('packed').readSync(node.select.points([[29, 19]]))).toEqual(Float64Array.of(7));
  expect(read.dataset('records').readSync()).toEqual([0, 1, 2, 3].map(row));
  expect(read.dataset('lists').readSync()).toEqual([[], [1], [2, 3]].map((list) => Uint8Array.from(list)));
});

test('a selection of another copy of h5log is refused: it would select everything', () => {
  using file = node.File.createSync(memoryStorage());
  const x = file.createDataset('x', { dtype: 'int8', shape: [3] });
  const foreign = page.select.box([1], [1]);
  const refused = /another copy of h5log/;
  expect(() => x.write([1], foreign)).toThrow(refused);
  expect(() => x.readSync(foreign)).toThrow(refused);
  expect(() => node.select.all().and(foreign)).toThrow(refused);
});
