import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { seal as sealFile } from '../tools/seal/seal.ts';
import { TILE, Tiles } from './tiles.ts';
import { Best, secondsSince, steps, type Workload } from './workload.ts';

/** Steps of a repetition: write, seal to a copy, seal in place. */
const STEPS = 3;

/** Seals a log file whose blocks are whole chunks. */
export const seal: Workload = {
  name: 'seal',
  summary: '1 GiB in tiles that are whole chunks: sealed in place, and to another file',
  async *run({ folder, scale, repeat, onProgress }) {
    const tiles = new Tiles(scale);
    const [path, copy] = [join(folder, 'seal.h5'), join(folder, 'seal-copy.h5')];
    const done = steps(repeat * STEPS, onProgress);
    const best = new Best();
    let moved = 0;
    for (let round = 0; round < repeat; round++) {
      // A sealed file cannot be sealed again: each repetition needs a new log.
      rmSync(path, { force: true });
      rmSync(copy, { force: true });
      tiles.write(path, { chunks: TILE });
      await done();
      let begun = performance.now();
      await sealFile(path, { to: copy });
      best.add('copy', secondsSince(begun));
      await tiles.check(copy);
      await done();
      begun = performance.now();
      const sealed = await sealFile(path);
      best.add('tiles', secondsSince(begun));
      moved = sealed.moved;
      await tiles.check(path);
      await done();
    }
    const what = `${tiles.count.toLocaleString('en')} MiB in whole chunks of 512x256 float64, sealed in place`;
    yield { id: 'seal/tiles', what, value: best.of('tiles'), unit: 's' };
    yield { id: 'seal/moved', what: '  data that was moved for it', value: moved, unit: 'bytes' };
    yield { id: 'seal/copy', what: '  sealed to another file', value: best.of('copy'), unit: 's' };
  },
};
