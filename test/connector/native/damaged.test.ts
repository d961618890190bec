import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { H5LogError, isH5LogError } from '../../../src/base/errors.ts';
import type { Library } from '../../../src/connector/native/library.ts';
import { NativeFile } from '../../../src/connector/native/native-file.ts';
import { unpack } from '../../../src/connector/native/packed.ts';
import { memoryStorage } from '../../../src/storage/memory.ts';
import { count } from '../../counts.ts';
import { withOracle } from '../../oracles.ts';
import { random, repeats, seed } from '../../seed.ts';
import { codeOf, library, makeRegularFiles, plainData, withFile } from './regular.ts';

const FLOAT = { kind: 'plain', size: 8, fileSize: 8 } as const;

withOracle('python', 'damaged regular files', () => {
  const { folder } = makeRegularFiles();
  const at = (name: string): string => join(folder, name);

  /** Opens a file and reads all of its datasets; what is thrown must be ours. */
  function readAll(bytes: Uint8Array): string {
    let file: NativeFile;
    try {
      file = NativeFile.open(library, memoryStorage(bytes), 'r');
    } catch (error) {
      if (isH5LogError(error)) return error.code;
      throw error;
    }
    let outcome = 'read';
    for (const name of file.structure.root.links.keys()) {
      const code = codeOf(() => file.find(name)?.node.kind === 'dataset' && file.dataset(name).read());
      if (code !== undefined) outcome = code;
    }
    file.discard();
    return outcome;
  }

  test('throw what h5log throws, and h5wasm goes on', () => {
    const next = random(seed('damaged regular files'));
    const outcomes: Record<string, number> = {};
    const control = withFile(at('vlens.h5'), (file) => plainData(file, '/in record'));
    for (const name of ['vlens.h5', 'layouts.h5', 'filters-latest.h5', 'references.h5', 'compounds-latest.h5']) {
      const intact = readFileSync(at(name));
      for (let i = 0; i < repeats(200); i++) {
        const bytes = new Uint8Array(intact);
        const place = Math.floor(next() * bytes.length);
        bytes[place] = (bytes[place] as number) ^ (1 << Math.floor(next() * 8));
        const outcome = readAll(bytes);
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      }
      // Some damage makes libhdf5 itself trap. That is told, and from then on every call says so.
      const after = ((): unknown => {
        try {
          return withFile(at('vlens.h5'), (file) => plainData(file, '/in record'));
        } catch (error) {
          return (error as Error).message;
        }
      })();
      if (typeof after === 'string') {
        expect(after).toContain('h5wasm has crashed');
        process.stdout.write(`native: damage in ${name} made h5wasm crash, which was told: ${after}\n`);
        return;
      }
      expect(after).toEqual(control);
    }
    count('damaged regular files', outcomes);
    expect(Object.keys(outcomes).sort()).not.toContain('undefined');
  });
});

// What h5wasm makes of a damaged heap once had lists of 2^30 elements in it.
test.each([
  ['a list longer than the memory', { kind: 'sequence', size: 8, fileSize: 16, base: FLOAT }, [2 ** 30, 16]],
  ['a list that begins behind the memory', { kind: 'sequence', size: 8, fileSize: 16, base: FLOAT }, [1, 60]],
  ['a text that begins behind the memory', { kind: 'text', size: 4, fileSize: 16 }, [5000]],
  ['a text without an end', { kind: 'text', size: 4, fileSize: 16 }, [8]],
] as const)('%s is damage', (_name, form, words) => {
  const bytes = new Uint8Array(64).fill(1);
  new Uint32Array(bytes.buffer).set(words);
  expect(codeOf(() => unpack({ bytes } as Library, form, 0, 1, new Uint8Array(16), 0, []))).toBe('FORMAT');
});

// The last one: afterwards h5wasm is gone.
test('a crash of h5wasm is told, and nobody is given what it would say then', () => {
  const file = NativeFile.create(library, memoryStorage());
  file.createDataset('/d', { dtype: 'int32', shape: [4], maxShape: [4], chunks: null, filters: [] });
  file.dataset('/d').write([1, 2, 3, 4]);
  const failure = (reason: string): H5LogError => new H5LogError('STORAGE', reason);
  const outside = BigInt(2 ** 32 - 16);
  expect(
    codeOf(() => library.call((calls) => calls.get_dataset_data(file.id, '/d', null, null, null, outside), failure)),
  ).toBe('STORAGE');
  expect(() => file.dataset('/d').read()).toThrow('h5wasm has crashed');
});
