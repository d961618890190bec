import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';
import { runRanks } from './run-ranks.ts';

const program = new URL('./original-rank.ts', import.meta.url);
const fixtures = new URL('../fixtures/original/', import.meta.url).pathname;

interface Expected {
  readonly datasets: Readonly<Record<string, { shape: number[]; maxshape: (number | null)[]; hex: string }>>;
}

/** A copy of a file of the original with its subfiles, and what is in it. */
function copyOf(name: string): { path: string; datasets: Expected['datasets'] } {
  const path = join(temporaryDirectory(), `${name}.h5`);
  for (const end of ['.h5', '.h5.subfiles'])
    cpSync(join(fixtures, `${name}${end}`), path.replace(/\.h5$/, end), { recursive: true });
  const { datasets } = JSON.parse(readFileSync(join(fixtures, `${name}.expected.json`), 'utf8')) as Expected;
  return { path, datasets };
}

function expectDatasets(path: string, datasets: Expected['datasets'], but: readonly string[] = []): void {
  const file = File.openSync(path);
  for (const [name, { shape, maxshape, hex }] of Object.entries(datasets)) {
    const found = file.dataset(name);
    expect({ name, shape: found.shape, maxShape: found.maxShape }).toEqual({ name, shape, maxShape: maxshape });
    if (but.includes(name)) continue;
    const bytes = Buffer.from(found.readSync(undefined, { raw: true })).toString('hex');
    expect({ name, bytes }).toEqual({ name, bytes: hex });
  }
  file.closeSync();
}

describe.each(['subfile2_ndims_2r', 'subfile2_ndims_4r'])('%s, which the original itself cannot read', (name) => {
  test('reads as it was written', () => {
    const { path, datasets } = copyOf(name);
    expectDatasets(path, datasets);
    expect(File.openSync(path).commits()).toEqual([]);
  });

  test.each([[[1, 1]], [[2, 3]], [[5, 1, 2]]])(
    'can be appended to by %j ranks, one after the other',
    async (sessions) => {
      const { path, datasets } = copyOf(name);
      const hex = datasets['/d1']?.hex ?? '';
      const model = [...new Int32Array(new Uint8Array(Buffer.from(hex, 'hex')).buffer)];
      for (const [round, ranks] of sessions.entries()) {
        const seen = await runRanks<number[] | null>(5, program, { path, ranks, round });
        for (let rank = 0; rank < ranks; rank++) model[rank] = 7000 + round * 10 + rank;
        model[9] = 8000 + round * 10 + ranks - 1;
        for (let rank = 0; rank < ranks; rank++) expect({ rank, seen: seen[rank] }).toEqual({ rank, seen: model });
        const file = File.openSync(path);
        expect([...(file.dataset('/d1').readSync() as Int32Array)]).toEqual(model);
        const expected = ranks === 1 ? [round] : [0, ...new Array<number>(ranks - 1).fill(round)];
        expect([...(file.dataset(`/new${round}`).readSync() as Int32Array)]).toEqual(expected);
        file.closeSync();
        expectDatasets(path, datasets, ['/d1']);
      }
      const file = File.openSync(path);
      expect(file.commits().map(({ sequence }) => sequence)).toHaveLength(sessions.length * 2);
      // Every commit can be gone back to.
      for (const { sequence } of file.commits()) {
        const past = File.openSync(path, { asOf: sequence });
        expect(past.dataset('/d1').readSync()).toHaveLength(model.length);
        past.closeSync();
      }
      file.closeSync();
    },
  );
});

test('overlaps between groups whose order is not on record are FORMAT', () => {
  const { path, datasets } = copyOf('subfile2_ndims_2r');
  // In the table of subfile 1, which begins at byte 2440, the entry of /d1 says that its six elements begin at 6.
  const part = `${path}.subfiles/subfile2_ndims_2r.h5.1`;
  const bytes = readFileSync(part);
  expect(bytes.readBigInt64LE(2440 + 44)).toBe(6n);
  bytes.writeBigInt64LE(3n, 2440 + 44);
  writeFileSync(part, bytes);
  const file = File.openSync(path);
  expect(() => file.dataset('/d1').readSync()).toThrow(/\/d1: subfiles \d and \d both hold/);
  try {
    file.dataset('/d1').readSync();
  } catch (error) {
    expect(error).toMatchObject({ code: 'FORMAT' });
  }
  file.closeSync();
  // The other datasets have no such overlaps.
  expectDatasets(path, datasets, ['/d1']);
});
