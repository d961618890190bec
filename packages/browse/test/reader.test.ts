import { assertValue, isDataset, isGroup, type ProvidedEntity } from '@h5web/app';
import { File, T } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { FIXTURES, fixtureBytes } from '../../../test/hdf5/fixture.ts';
import { pythonSync, withOracle } from '../../../test/oracles.ts';
import { BrowsedFile } from '../src/reader/browsed-file.ts';
import { ReaderSession } from '../src/reader/reader-session.ts';
import { parseSelection } from '../src/reader/selection.ts';

// h5web uses iterator helpers, which browsers have and Node has from version 22 on.
const iterators = Object.getPrototypeOf(Object.getPrototypeOf([].values())) as { forEach?: unknown };
iterators.forEach ??= function forEach(this: Iterable<unknown>, call: (value: unknown, i: number) => void): void {
  let i = 0;
  for (const value of this) call(value, i++);
};

async function opened(bytes: Uint8Array): Promise<BrowsedFile> {
  return BrowsedFile.open({ blob: new Blob([bytes as Uint8Array<ArrayBuffer>]), name: 'test.h5' });
}

/** A log with whatever `fill` puts into it. */
async function logOf(fill: (file: File) => void | Promise<void>): Promise<Uint8Array> {
  const storage = memoryStorage();
  const file = await File.create(storage, { publish: 'never' });
  await fill(file);
  await file.close();
  return storage.bytes();
}

/** Every entity of a file, as h5web would find it. */
async function* everything(file: BrowsedFile, path = '/', depth = 0): AsyncGenerator<ProvidedEntity> {
  const entity = await file.entity(path);
  yield entity;
  if (!isGroup(entity) || depth > 8) return;
  for (const child of (entity as ProvidedEntity & { children: ProvidedEntity[] }).children) {
    if (isGroup(child) && child.link?.class === 'Hard') yield* everything(file, child.path, depth + 1);
    else yield child;
  }
}

describe('what h5web is given', () => {
  test.each(FIXTURES)('of %s passes its own checks: every type, value and attribute', async (name) => {
    const file = await opened(fixtureBytes(name));
    let [entities, datasets, attributes] = [0, 0, 0];
    for await (const entity of everything(file)) {
      // Some have groups that contain one another.
      if (++entities > 500) break;
      const values = await file.attributes(entity.path);
      expect(Object.keys(values).sort()).toEqual(entity.attributes.map((attribute) => attribute.name).sort());
      for (const attribute of entity.attributes) {
        attributes++;
        if (attribute.shape.class !== 'Null') assertValue(values[attribute.name], attribute as never);
      }
      if (!isDataset(entity)) continue;
      datasets++;
      // In a page this text is what is shown.
      const value = await file.value(entity.path, undefined).catch((error: Error) => error);
      if (value instanceof Error) expect(value.message).toMatch(/filter|external|too many|virtual/);
      else if (entity.shape.class !== 'Null') assertValue(value, entity as never);
      else expect(value).toBeNull();
    }
    expect(entities + datasets + attributes).toBeGreaterThan(2);
    await file.close();
  });

  test('names each type as h5web does', async () => {
    const types = {
      int8: 'int8',
      uint64: 'uint64',
      half: 'float16',
      big: T.bigEndian('float64'),
      text: T.string(),
      fixed: T.string({ length: 5, pad: 'space', charset: 'ascii' }),
      flag: T.bool,
      colour: T.enum('uint8', { red: 0, blue: 7 }),
      complex: T.compound({ r: 'float32', i: 'float32' }),
      record: T.compound({ n: 'int32', where: T.array('float64', [2]) }),
      list: T.vlen('int16'),
      bits: T.bitfield(2),
      blob: T.opaque(3, 'tag'),
      path: T.reference,
    } as const;
    const bytes = await logOf((file) => {
      for (const [name, dtype] of Object.entries(types)) file.createDataset(name, { dtype, shape: [2] });
    });
    const file = await opened(bytes);
    const found: Record<string, unknown> = {};
    for await (const entity of everything(file)) if (isDataset(entity)) found[entity.name] = entity.type;
    const little = 'little-endian';
    expect(found).toEqual({
      int8: { class: 'Integer', signed: true, size: 8, endianness: little },
      uint64: { class: 'Integer', signed: false, size: 64, endianness: little },
      half: { class: 'Float', size: 16, endianness: little },
      big: { class: 'Float', size: 64, endianness: 'big-endian' },
      text: { class: 'String', charSet: 'UTF-8', strPad: 'null-terminated' },
      fixed: { class: 'String', charSet: 'ASCII', strPad: 'space-padded', length: 5 },
      flag: { class: 'Boolean', base: { class: 'Integer', signed: true, size: 8, endianness: little } },
      colour: {
        class: 'Enumeration',
        base: { class: 'Integer', signed: false, size: 8, endianness: little },
        mapping: { 0: 'red', 7: 'blue' },
      },
      complex: {
        class: 'Complex',
        realType: { class: 'Float', size: 32, endianness: little },
        imagType: { class: 'Float', size: 32, endianness: little },
      },
      record: {
        class: 'Compound',
        fields: new Map<string, unknown>([
          ['n', { class: 'Integer', signed: true, size: 32, endianness: little }],
          ['where', { class: 'Array', base: { class: 'Float', size: 64, endianness: little }, dims: [2] }],
        ]),
      },
      list: {
        class: 'Array (variable length)',
        base: { class: 'Integer', signed: true, size: 16, endianness: little },
      },
      bits: { class: 'Bitfield', endianness: little },
      blob: { class: 'Opaque', tag: 'tag' },
      path: { class: 'Reference' },
    });
  });

  test('gives values of each type as h5web takes them', async () => {
    const bytes = await logOf((file) => {
      file.createDataset('complex', { dtype: T.compound({ r: 'float64', i: 'float64' }), shape: [2] }).write([
        { r: 1, i: -2 },
        { r: 3, i: 4 },
      ]);
      file
        .createDataset('record', {
          dtype: T.compound({ n: 'int32', v: T.array('int8', [2]), t: T.string() }),
          shape: [1],
        })
        .write([{ n: 5, v: Int8Array.of(6, 7), t: 'eight' }]);
      file.createDataset('list', { dtype: T.vlen('int16'), shape: [2] }).write([Int16Array.of(1, 2), Int16Array.of()]);
      file.createDataset('wide', { dtype: T.enum('int64', { a: 1n }), shape: [1] }).write([1n]);
      file.createDataset('ref', { dtype: T.reference, shape: [1] }).write(['/record']);
      file.createDataset('one', { dtype: 'int64', shape: [] }).write([9n]);
      file.attributes.set('n', 3n);
    });
    const file = await opened(bytes);
    expect(await file.value('/complex', undefined)).toEqual([
      [1, -2],
      [3, 4],
    ]);
    expect(await file.value('/record', undefined)).toEqual([[5, [6, 7], 'eight']]);
    expect(await file.value('/list', undefined)).toEqual([[1, 2], []]);
    expect(await file.value('/wide', undefined)).toEqual(Float64Array.of(1));
    expect(await file.value('/ref', undefined)).toEqual(['/record']);
    expect(await file.value('/one', undefined)).toBe(9n);
    expect(await file.attributes('/')).toEqual({ n: 3n });
  });
});

describe('a selection', () => {
  test('reads an index, a range or all of each dimension', async () => {
    const bytes = await logOf((file) => {
      const data = Int32Array.from({ length: 60 }, (_, i) => i);
      file.createDataset('x', { dtype: 'int32', shape: [3, 4, 5] }).write(data);
    });
    const file = await opened(bytes);
    expect(await file.value('/x', '1,:,2')).toEqual(Int32Array.of(22, 27, 32, 37));
    expect(await file.value('/x', '2,1:3,0:2')).toEqual(Int32Array.of(45, 46, 50, 51));
    expect(await file.value('/x', '2,3,4')).toBe(59);
    expect((await file.value('/x', undefined)) as Int32Array).toHaveLength(60);
  });

  test('that is none, or outside, is refused', () => {
    for (const text of ['', '1', 'a,:', '1,:,:', '3,:', '0:4,:', '2:1,:', ',', '-1,:'])
      expect(() => parseSelection(text, [3, 4]), text).toThrow();
  });
});

describe('a long read', () => {
  const shape = [64, 300, 300];
  const bytes = logOf((file) => {
    const plane = new Float64Array(300 * 300);
    const dataset = file.createDataset('x', { dtype: 'float64', shape });
    for (let z = 0; z < 64; z++) dataset.write(plane.fill(z), { start: [z, 0, 0], count: [1, 300, 300] });
  });

  test('reports progress and gives the same as one read', async () => {
    const file = await opened(await bytes);
    const parts: number[] = [];
    const value = (await file.value('/x', ':,10:290,:', { onProgress: (part) => parts.push(part) })) as Float64Array;
    expect(parts.length).toBeGreaterThan(5);
    expect(parts.at(-1)).toBe(1);
    expect(parts).toEqual([...parts].sort((a, b) => a - b));
    const whole = (await file.value('/x', ':,10:290,:')) as Float64Array;
    expect(Buffer.compare(Buffer.from(value.buffer), Buffer.from(whole.buffer))).toBe(0);
    expect(value[280 * 300 * 63]).toBe(63);
  });

  test('ends when nobody wants it any more', async () => {
    const file = await opened(await bytes);
    const controller = new AbortController();
    const parts: number[] = [];
    const onProgress = (part: number): void => {
      parts.push(part);
      controller.abort();
    };
    await expect(file.value('/x', undefined, { signal: controller.signal, onProgress })).rejects.toThrow('abort');
    expect(parts).toHaveLength(1);
  });

  test('of more than a page can hold is refused, with the numbers', async () => {
    const file = await opened(
      await logOf((log) => void log.createDataset('x', { dtype: 'float64', shape: [2 ** 20, 2 ** 10] })),
    );
    await expect(file.value('/x', undefined)).rejects.toThrow('1073741824 elements, 8589934592 bytes, are too many');
    expect(await file.value('/x', '5,:')).toHaveLength(1024);
  });
});

describe('a session', () => {
  test('shows earlier commits beside the newest', async () => {
    const bytes = await logOf(async (file) => {
      const x = file.createDataset('x', { dtype: 'int32', shape: [1] });
      for (let i = 1; i <= 7; i++) {
        x.write([i]);
        await file.flush();
      }
    });
    const session = new ReaderSession();
    const summary = await session.open({ blob: new Blob([bytes as Uint8Array<ArrayBuffer>]), name: 'a.h5' });
    expect(summary).toMatchObject({ name: 'a.h5', connector: 'log', sequence: 7 });
    expect(summary.commits.map(({ sequence }) => sequence)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    for (const asOf of [3, 1, 6, 2, 5, 4, 3, undefined])
      expect(await session.value('/x', undefined, asOf)).toEqual(Int32Array.of(asOf ?? 7));
    await expect(session.value('/x', undefined, 99)).rejects.toThrow();
    await session.close();
  });

  test('tells bytes, flushes and datasets of a log, and which of them other programs see', async () => {
    const bytes = await logOf(async (file) => {
      const x = file.createDataset('x', { dtype: 'int32', shape: [10] });
      x.write(new Int32Array(10));
      await file.flush();
      x.write(new Int32Array(10));
    });
    const session = new ReaderSession();
    await session.open({ blob: new Blob([bytes as Uint8Array<ArrayBuffer>]), name: 'a.h5' });
    const facts = await session.logFacts();
    expect(facts).toMatchObject({ size: bytes.length, live: 40, dead: 40, ranks: 1 });
    expect(facts.live + facts.dead + facts.structure).toBe(bytes.length);
    expect(facts.flushes.map(({ sequence, ranks }) => [sequence, ranks])).toEqual([
      [0, 0],
      [1, 1],
      [2, 1],
    ]);
    const { published } = (await session.state(undefined)).file.dataset('x') as {
      published?: { sequence: number } | null;
    };
    const [x] = facts.datasets;
    expect(x).toMatchObject({
      path: '/x',
      shape: [10],
      dtype: 'int32',
      blocks: 2,
      bytes: 80,
      dead: 40,
      isLogged: true,
    });
    expect(x?.seen).toMatch(published ? /^all \(/ : /^nothing: it was never published/);
    expect((await session.logFacts(1)).datasets[0]).toMatchObject({ blocks: 1, dead: 0 });
    const checked = await session.verify();
    expect(checked).toMatchObject({ sound: true, checksums: true, commits: 3, problems: [] });
    await session.close();
  });

  test('finds all paths', async () => {
    const bytes = await logOf((file) => {
      file.createDataset('a/b/x', { dtype: 'int32', shape: [] });
      file.createSoftLink('a/b/up', '/a');
      file.createGroup('c');
    });
    const session = new ReaderSession();
    await session.open({ blob: new Blob([bytes as Uint8Array<ArrayBuffer>]), name: 'a.h5' });
    expect(await session.paths('/')).toEqual(['/a', '/c', '/a/b', '/a/b/x', '/a/b/up']);
    await session.close();
  });
});

describe('an export', () => {
  const bytes = logOf((file) => {
    file.createDataset('x', { dtype: T.bigEndian('int16'), shape: [2, 3] }).write([1, 2, 3, 4, 5, 6]);
    file.createDataset('n', { dtype: 'int64', shape: [2] }).write([1n, 2n ** 60n]);
    file
      .createDataset('t', { dtype: T.compound({ 'a,b': 'int32', c: T.string() }), shape: [1] })
      .write([{ 'a,b': 1, c: 'x "y"' }]);
  });

  async function exported(path: string, selection: string | undefined, format: 'csv' | 'json' | 'npy'): Promise<Blob> {
    const session = new ReaderSession();
    await session.open({ blob: new Blob([(await bytes) as Uint8Array<ArrayBuffer>]), name: 'a.h5' });
    return session.exported(path, selection, format);
  }

  test('as csv and json', async () => {
    expect(await (await exported('/x', undefined, 'csv')).text()).toBe('1,2,3\n4,5,6\n');
    expect(await (await exported('/x', ':,1', 'csv')).text()).toBe('2\n5\n');
    expect(await (await exported('/t', undefined, 'csv')).text()).toBe('"a,b",c\n1,"x ""y"""\n');
    expect(await (await exported('/x', undefined, 'json')).text()).toBe('[[1,2,3],[4,5,6]]');
    expect(await (await exported('/n', undefined, 'json')).text()).toBe('[1,"1152921504606846976"]');
    await expect(exported('/t', undefined, 'npy')).rejects.toThrow('npy holds numbers');
  });

  withOracle('python', 'numpy reads what is exported as npy', () => {
    test('with shape, type and byte order', async () => {
      const npy = Buffer.from(await (await exported('/x', '0:2,1:3', 'npy')).arrayBuffer());
      const script =
        'import sys,io,base64,numpy as np\na=np.load(io.BytesIO(base64.b64decode(sys.stdin.read())))\nprint(a.dtype.str,a.shape,a.tolist())';
      expect(pythonSync(script, [], npy.toString('base64')).trim()).toBe('>i2 (2, 2) [[2, 3], [5, 6]]');
    });
  });
});
