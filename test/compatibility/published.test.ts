import { cpSync, existsSync, readFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { verify } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { h5pyDescribes } from '../interop/describe.ts';
import { h5dump, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';
import { contentsOf, read } from './contents.ts';
import { expectedOf, folder, names } from './expected.ts';
import type { State } from './model.ts';
import { seenByH5py } from './seen-by-h5py.ts';

// Files that h5log 0.1.0 wrote, published by this version when it is asked to.

const fixtures = names
  .map((name) => ({ name, expected: expectedOf(name), path: join(folder, `${name}.h5`) }))
  .filter(({ expected, path }) => expected.kind === 'log' && !existsSync(`${path}.subfiles`));

const temporary = temporaryDirectory();

function copyOf({ name, path, expected }: (typeof fixtures)[number], as: string): string {
  const to = join(temporary, `${name}-${as}.h5`);
  cpSync(path, to);
  if (expected.openSize !== undefined) truncateSync(to, expected.openSize);
  return to;
}

/** The versions of the commit records in a file. h5log 0.1 looks at byte 7 of each, and refuses the file unless it is 1. */
function recordVersions(path: string): number[] {
  const bytes = readFileSync(path);
  const magic = Buffer.from('H5LCMT\0');
  const versions: number[] = [];
  for (let at = bytes.indexOf(magic); at >= 0; at = bytes.indexOf(magic, at + 1))
    versions.push(bytes[at + 7] as number);
  return versions;
}

const published: { path: string; state: State; ordinary: readonly string[] }[] = [];

describe.each(fixtures)('$name of h5log 0.1', (fixture) => {
  const { expected } = fixture;
  const state = expected.states[(expected as { sequence: number }).sequence] as State;
  const meant = contentsOf(state);

  test('appended to and not told otherwise, it is not published, and 0.1 goes on reading it', () => {
    const path = copyOf(fixture, 'appended');
    expect(new Set(recordVersions(path))).toEqual(new Set([1]));
    const file = File.openSync(path, { mode: 'r+' });
    expect(file.published).toBe(null);
    file.attributes.set('appended', 1);
    file.closeSync();
    const again = File.openSync(path);
    expect([again.published, again.attributes.get('appended')]).toEqual([null, 1]);
    again.closeSync();
    expect(new Set(recordVersions(path))).toEqual(new Set([1]));
  });

  test('published when asked: all of it is there, earlier states too, and 0.1 refuses it', async () => {
    const path = copyOf(fixture, 'published');
    const file = File.openSync(path, { mode: 'r+' });
    const { without, sequence } = file.publishSync();
    expect(without).toEqual([]);
    expect(file.published).toBe(sequence);
    expect(read(file, meant)).toEqual(meant);
    file.closeSync();
    const found = File.openSync(path);
    expect(found.published).toBe(sequence);
    expect(read(found, meant)).toEqual(meant);
    found.closeSync();
    for (const [at, earlier] of Object.entries(expected.states)) {
      const old = File.openSync(path, { asOf: Number(at) });
      const then = contentsOf(earlier as State);
      expect(read(old, then), `as of ${at}`).toEqual(then);
      old.closeSync();
    }
    expect(recordVersions(path)).toContain(2);
    expect(await verify(path)).toMatchObject({ sound: true, problems: [] });
    published.push({ path, state, ordinary: (expected as { ordinary?: readonly string[] }).ordinary ?? [] });
  });
});

withOracle(['python', 'h5dump'], 'what others see of published files of h5log 0.1', () => {
  test('every value, shape and type', () => {
    expect(published.length).toBe(fixtures.length);
    const seen = h5pyDescribes(published.map(({ path }) => path));
    for (const [i, { path, state }] of published.entries()) {
      const meant = seenByH5py(state, () => false, true);
      for (const [where, { kind, dataset }] of Object.entries(meant)) {
        if (kind !== 'dataset' || !dataset) continue;
        const { type, shape, max, values } = seen[i]?.[where]?.dataset ?? {};
        const { type: t, shape: s, max: m, values: v } = dataset;
        expect({ type, shape, max, values }, `${path} ${where}`).toEqual({ type: t, shape: s, max: m, values: v });
      }
      h5dump('-H', path);
    }
  }, 180_000);
});
