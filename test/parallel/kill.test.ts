import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { File } from 'h5log';
import { expect, test } from 'vitest';
import { count } from '../counts.ts';
import { random, repeats, seed } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { LAYOUTS } from './layouts.ts';
import { startRanks } from './run-ranks.ts';

const program = new URL('./kill-rank.ts', import.meta.url);
const RANKS = 3;

test('kill -9 at any moment leaves every returned flush of all ranks, whole, and nothing of the others', {
  timeout: 600_000,
}, async () => {
  const next = random(seed('ranks that are killed'));
  const runs = repeats(60);
  let flushes = 0;
  for (let run = 0; run < runs; run++) {
    const path = join(temporaryDirectory(), 'a.h5');
    const subfiles = [0, 2, 3][run % 3] as number;
    const child = startRanks(RANKS, program, { path, subfiles, create: LAYOUTS[run % LAYOUTS.length] });
    let said = 0;
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
    lines.on('line', (line) => {
      said = Number(line);
      if (said === 1) setTimeout(() => child.kill('SIGKILL'), next() * 200);
    });
    await Promise.all([once(child, 'exit'), once(lines, 'close')]);
    const file = File.openSync(path);
    const k = file.attributes.get('k') as number;
    // The flush that was under way may have come through.
    expect(k === said || k === said + 1).toBe(true);
    const t = file.dataset('/t');
    expect(t.shape).toEqual([k, RANKS, 16]);
    const seen = t.readSync() as Int32Array;
    expect(seen.every((value, i) => value === 1 + Math.floor(i / (RANKS * 16)))).toBe(true);
    file.closeSync();
    // The next writer goes on.
    const writer = File.openSync(path, { mode: 'r+' });
    writer.dataset('/t').resize([k + 1, RANKS, 16]);
    writer.dataset('/t').write(new Int32Array(RANKS * 16).fill(k + 1), { start: [k, 0, 0] });
    writer.closeSync();
    const again = File.openSync(path);
    const all = again.dataset('/t').readSync() as Int32Array;
    expect(all.every((value, i) => value === 1 + Math.floor(i / (RANKS * 16)))).toBe(true);
    again.closeSync();
    flushes += k;
  }
  count('ranks that are killed', { processes: runs, flushes });
});
