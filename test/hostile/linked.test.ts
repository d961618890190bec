import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { File } from '../../src/api/file.ts';
import { handleOf } from '../../src/api/handle.ts';
import { lookup3 } from '../../src/base/checksum.ts';
import { isH5LogError } from '../../src/base/errors.ts';
import { virtual } from '../../src/hdf5/layouts/new-dataset.ts';
import { simpleSpace } from '../../src/hdf5/messages/dataspace.ts';
import { memoryStorage } from '../../src/storage/memory.ts';
import { count } from '../counts.ts';
import { keepInput } from '../failures.ts';
import { random, repeats, seed } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { reseal, type Sealed, sealedParts } from './checksums.ts';
import { Walk } from './walk.ts';
import { watchCase } from './watchdog.ts';

const folder = temporaryDirectory();
/** Names of other files that a damaged name may become: there, a circle, something that never ends, nothing. */
const NAMES = ['source.h5', 'file.h5', '/dev/zer', '.', '%b', '../../../', 'missing.h', '\u0000'];

/** A file with virtual datasets of every form of mapping, and with external links. */
function sample(): Uint8Array {
  const source = File.createSync(join(folder, 'source.h5'));
  source
    .createDataset('data', { dtype: 'int16', shape: [6, 4], maxShape: [null, 4] })
    .write(Int16Array.from({ length: 24 }, (_, i) => i));
  source.createExternalLink('back', 'file.h5', '/link');
  source.closeSync();
  const storage = memoryStorage();
  const file = File.createSync(storage);
  file.createExternalLink('link', 'source.h5', '/data');
  file.createExternalLink('group', 'source.h5', '/');
  file.createSoftLink('soft', '/group/back');
  const { structure } = handleOf(file).session;
  const add = (name: string, shape: number[], mappings: Parameters<typeof virtual>[0]): void => {
    structure.createDataset(structure.root, name, {
      dtype: 'int32',
      space: simpleSpace(shape),
      layout: virtual(mappings),
    });
  };
  const whole = { start: [0, 0], count: [6, 4] };
  add('whole', [6, 4], [{ file: 'source.h5', dataset: '/data', source: whole, target: whole }]);
  const rows = { start: [0, 0], count: [1, 4], repeated: { times: [3, 1], stride: [2, 4] } };
  add('rows', [3, 4], [{ file: 'source.h5', dataset: 'data', source: rows, target: { start: [0, 0], count: [3, 4] } }]);
  add('line', [24], [{ file: '.', dataset: 'whole', source: whole, target: { start: [0], count: [24] } }]);
  file.closeSync();
  return storage.bytes();
}

/** The lists of mappings, each with its checksum: a version, a count, and names that are known. */
function mappingLists(bytes: Uint8Array): Sealed[] {
  const found: Sealed[] = [];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let from = 0; from + 9 < bytes.length; from++) {
    if (view.getUint8(from) !== 0 || view.getBigUint64(from + 1, true) !== 1n) continue;
    for (let sumAt = from + 9; sumAt + 4 <= Math.min(bytes.length, from + 400); sumAt++)
      if (view.getUint32(sumAt, true) === lookup3(bytes, from, sumAt))
        found.push({ kind: 'mappings', from, to: sumAt + 4, sumAt });
  }
  return found;
}

test('damaged mappings and names of other files end in one of our errors, soon', { timeout: 300_000 }, () => {
  const bytes = sample();
  const path = join(folder, 'file.h5');
  const lists = mappingLists(bytes);
  expect(lists).toHaveLength(3);
  const sealed = [...sealedParts(bytes), ...lists];
  const next = random(seed('mutated links and mappings'));
  const pick = <V>(list: readonly V[]): V => list[Math.floor(next() * list.length)] as V;
  const problems: string[] = [];
  const counts = { files: 0, errors: 0, reads: 0 };
  for (let i = 0; i < repeats(5_000); i++) {
    const changed = bytes.slice();
    const view = new DataView(changed.buffer);
    const { from, to } = next() < 0.8 ? pick(lists) : pick(sealed);
    for (let n = 1 + Math.floor(next() ** 2 * 4); n > 0; n--) {
      const at = from + Math.floor(next() * (to - from));
      const kind = next();
      if (kind < 0.4) changed[at] = Math.floor(next() * 256);
      else if (kind < 0.6) changed[at] = pick([0, 1, 2, 3, 4, 8, 0xff]);
      else if (kind < 0.8 && at + 8 <= changed.length)
        view.setBigUint64(at, pick([0n, 1n, 2n, 3n, 7n, 2n ** 32n, 2n ** 52n, 2n ** 64n - 1n]), true);
      else changed.set(new TextEncoder().encode(pick(NAMES)).subarray(0, changed.length - at), at);
    }
    reseal(changed, sealed);
    writeFileSync(path, changed);
    watchCase(`case ${i}`, changed);
    const begin = process.cpuUsage();
    const errors: unknown[] = [];
    try {
      const file = File.openSync(path);
      const walk = new Walk().of(file).data();
      errors.push(...walk.errors);
      counts.reads += walk.asked.reads;
      file.closeSync();
    } catch (error) {
      errors.push(error);
    }
    const { user, system } = process.cpuUsage(begin);
    const raw = errors.find((error) => !isH5LogError(error));
    if (raw || user + system > 3e6) {
      problems.push(`case ${i}: ${raw instanceof Error ? raw.stack : `${(user + system) / 1000} ms`}`);
      keepInput(`linked ${i}.h5`, changed);
    }
    counts.files++;
    counts.errors += errors.length;
  }
  count('hostile, mutated links and mappings', counts);
  expect(problems.slice(0, 5)).toEqual([]);
});
