import { closeSync, fsyncSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { describe, expect, test } from 'vitest';
import { seal } from '../../../src/tools.ts';
import { oracle, pythonSync } from '../../oracles.ts';
import { full } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';

const folder = temporaryDirectory();
const MIB = 2 ** 20;

/** A file of tiles of 64 x 64 float64 (32 KiB) in a square, each filled with its number; some written twice. */
async function makeTiles(path: string, side: number): Promise<void> {
  const file = await File.create(path, { publish: 'never' });
  const field = file.createDataset('field', { dtype: 'float64', shape: [side * 64, side * 64] });
  const tile = new Float64Array(64 * 64);
  for (let r = 0; r < side; r++) {
    for (let c = 0; c < side; c++) field.write(tile.fill(r * side + c), { start: [r * 64, c * 64], count: [64, 64] });
    if (r % 16 === 15) await file.flush();
  }
  field.write(tile.fill(-1), { start: [64, 64], count: [64, 64] });
  await file.close();
  // At rest: the seal shall not have to write what the log left to the system.
  const handle = openSync(path, 'r+');
  fsyncSync(handle);
  closeSync(handle);
}

describe('a large file of tiles', () => {
  const side = full ? 181 : 64;

  test('is sealed in well under a second, and nothing is moved', { timeout: 300_000 }, async () => {
    const path = join(folder, 'tiles.h5');
    await makeTiles(path, side);
    const before = statSync(path).size;
    const memory = process.memoryUsage().rss;
    const begun = performance.now();
    const result = await seal(path);
    const seconds = (performance.now() - begun) / 1000;
    const grown = (process.memoryUsage().rss - memory) / MIB;
    const added = statSync(path).size - before;
    expect(result).toMatchObject({ moved: 0, datasets: [{ way: 'chunked', pieces: side * side }] });
    // An address for every chunk, and the structure.
    expect(added).toBeLessThan(side * side * 9 + 8192);
    expect(grown).toBeLessThan(128);
    expect(seconds).toBeLessThan(1);
    console.log(
      `seal: ${Math.round(before / MIB)} MiB in ${side * side} tiles, ${seconds.toFixed(3)} s, ${added} bytes added, memory + ${grown.toFixed(0)} MiB`,
    );
    if (oracle('python') === undefined) return;
    const script = `
import h5py, sys
with h5py.File(sys.argv[1], 'r') as f:
    d, side = f['field'], int(sys.argv[2])
    assert d.chunks == (64, 64)
    for r in range(0, side, 7):
        row = d[r * 64 + r % 64]
        for c in range(side):
            assert (row[c * 64:(c + 1) * 64] == (-1 if (r, c) == (1, 1) else r * side + c)).all(), (r, c)
    assert (d[64:128, 64:128] == -1).all()
print('fine')`;
    expect(pythonSync(script, [path, String(side)])).toBe('fine\n');
  });

  test('is copied in bounded memory where it has to be', { timeout: 300_000 }, async () => {
    const path = join(folder, 'rows.h5');
    const file = await File.create(path, { publish: 'never' });
    const elements = (full ? 512 : 96) * (MIB / 8);
    const rows = file.createDataset('rows', { dtype: 'float64', shape: [elements / 1024, 1024] });
    // Halves of rows, in an order that is no grid: more pieces than a virtual dataset may have. They are lent, so that the flush does not
    // join them.
    for (let r = 0; r < elements / 1024; r++) {
      const cut = 1 + ((r * 37) % 1022);
      const row = new Float64Array(1024).fill(r);
      rows.write(row.slice(cut), { start: [r, cut], count: [1, 1024 - cut] }, { copy: false });
      rows.write(row.slice(0, cut), { start: [r, 0], count: [1, cut] }, { copy: false });
      if (r % 8192 === 8191) await file.flush();
    }
    await file.close();
    const memory = process.memoryUsage().rss;
    const begun = performance.now();
    let most = 0;
    const progress = (): void => {
      most = Math.max(most, process.memoryUsage().rss);
    };
    const { datasets, moved } = await seal(path, { progress });
    const seconds = (performance.now() - begun) / 1000;
    const grown = (most - memory) / MIB;
    expect(datasets).toMatchObject([{ way: 'copied' }]);
    expect(moved).toBe(elements * 8);
    expect(grown).toBeLessThan(full ? 256 : 128);
    console.log(
      `seal: ${Math.round(moved / MIB)} MiB copied in ${seconds.toFixed(2)} s, memory + ${grown.toFixed(0)} MiB`,
    );
  });
});
