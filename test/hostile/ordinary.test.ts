import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { File } from '../../src/api/file.ts';
import { count } from '../counts.ts';
import { random, repeats, seed } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { reseal, type Sealed, sealedParts } from './checksums.ts';
import { mutate, type Target, target } from './mutations.ts';
import { Cases, PATIENCE } from './outcome.ts';

/** Files of libhdf5 of a few KiB, one for each way to store something (see make-ordinary.py), and what they lead to. */
const bundle = Object.entries(
  JSON.parse(
    gunzipSync(readFileSync(new URL('../fixtures/hostile/ordinary.json.gz', import.meta.url))).toString(),
  ) as Record<string, string>,
).map(([name, text]) => ({ name, bytes: new Uint8Array(Buffer.from(text, 'base64')) }));

interface Ordinary extends Target {
  readonly sealed: readonly Sealed[];
}

const files: Ordinary[] = bundle
  .filter(({ name }) => name.endsWith('.h5'))
  .map(({ name, bytes }) => ({ ...target(name, bytes), sealed: sealedParts(bytes) }));

/** A mapping whose sources have numbers stands for up to a million of them, whatever the size of the file. */
const MAPPED = 32 * 2 ** 20;

/** Data in other files is read by a path only. */
const isOutside = (name: string): boolean => name.startsWith('outside');

test('ordinary files of every kind, damaged: everything is read, or refused in one way', PATIENCE, async () => {
  const folder = temporaryDirectory();
  for (const { name, bytes } of bundle) writeFileSync(join(folder, name), bytes);
  const open = (bytes: Uint8Array): File => {
    const path = join(folder, 'damaged.h5');
    writeFileSync(path, bytes);
    return File.openSync(path);
  };
  // Undamaged everything is read. This also loads what is loaded once, so that no case has to answer for it.
  const intact = new Cases();
  for (const { name, bytes } of files) {
    const ending = intact.run(name, 'intact', bytes, 'data', isOutside(name) ? open : undefined);
    // A virtual dataset that shows itself cannot be read, though nothing is damaged.
    intact.expect(ending, name === 'circle.h5' ? 'FORMAT' : 'opened', name);
    for (const use of ['later', 'tools'] as const) await new Cases().runLater(name, 'intact', bytes, use);
  }
  expect(intact.problems).toEqual([]);

  const [plain, mapped] = [new Cases(), new Cases(MAPPED)];
  const next = random(seed('damaged ordinary files'));
  const most = repeats(60_000);
  const began = performance.now();
  for (let i = 0; i < most; i++) {
    const file = files[Math.floor(next() * files.length)] as Ordinary;
    const { bytes, what } = mutate(file, next);
    // With right checksums a reader gets further.
    const isSealed = file.sealed.length > 0 && next() < 0.7;
    const damaged = isSealed ? reseal(bytes, file.sealed) : bytes;
    const said = isSealed ? `${what}; checksums right` : what;
    const use = next();
    const cases = file.name.includes('virtual') ? mapped : plain;
    if (isOutside(file.name)) cases.run(file.name, said, damaged, 'data', open);
    else if (use < 0.9) cases.run(file.name, said, damaged, 'data');
    else if (use < 0.96) cases.run(file.name, said, damaged, 'append');
    else await cases.runLater(file.name, said, damaged, use < 0.98 ? 'later' : 'tools');
  }
  const seconds = (performance.now() - began) / 1000;
  process.stdout.write(
    `damaged ordinary files: ${most} in ${seconds.toFixed(1)} s, ${Math.round(most / seconds)} a second\n`,
  );
  count('damaged ordinary files', { files: most });
  expect(plain.report('ordinary files of every kind')).toEqual([]);
  expect(mapped.report('virtual datasets')).toEqual([]);
});
