import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { memoryForm } from '../../../src/connector/native/memory-form.ts';
import type { NativeFile } from '../../../src/connector/native/native-file.ts';
import { T } from '../../../src/dtype/construct.ts';
import { decodeValues } from '../../../src/dtype/decode.ts';
import { describeType } from '../../../src/dtype/describe.ts';
import type { DType } from '../../../src/dtype/model.ts';
import { unallocated } from '../../../src/hdf5/layouts/new-dataset.ts';
import { simpleSpace } from '../../../src/hdf5/messages/dataspace.ts';
import { count } from '../../counts.ts';
import { anyType, elements } from '../../dtype/generate.ts';
import { Draft } from '../../interop/driver.ts';
import { runs } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { codeOf, withFile } from './regular.ts';

/** Samples in one file: making and opening it takes longer than all of them. */
const BATCH = 25;

const sample = anyType.chain((dtype) =>
  fc
    .integer({ min: 1, max: 4 })
    .chain((count) => fc.tuple(fc.constant(dtype), fc.constant(count), elements(dtype, count))),
);

/** What lies in the file, decoded without h5wasm: raw bytes, and the global heap as our own reader sees it. */
function inTheFile(file: NativeFile, path: string, dtype: DType, count: number): unknown {
  const { structure } = file;
  const { layout } = file.dataset(path).parts;
  if (layout?.kind !== 'contiguous') throw new Error('contiguous data was expected');
  const bytes = new Uint8Array(layout.size);
  file.storage.blocking?.read(bytes, layout.address);
  file.now(structure.heap.load(dtype, bytes, count));
  const addresses = new Map(
    ['/', '/a', '/a/b'].map((name) => [file.find(name)?.node.address, name] as [number | undefined, string]),
  );
  const heap = structure.heap.contents();
  return decodeValues(dtype, bytes, count, { heap, path: (address) => addresses.get(address) ?? 'nothing' });
}

test('values of any type are written and read through h5wasm, and are what lies in the file', () => {
  const folder = temporaryDirectory();
  const tally = { types: 0, files: 0 };
  fc.assert(
    fc.property(fc.array(sample, { minLength: BATCH, maxLength: BATCH }), (samples) => {
      const path = join(folder, `${tally.files++}.h5`);
      const draft = Draft.create(path);
      draft.group('/a');
      draft.group('/a/b');
      samples.forEach(([dtype, count], i) => {
        const dataset = { dtype, space: simpleSpace([count]), layout: unallocated } as const;
        draft.structure.createDataset(draft.root, `d${i}`, dataset);
      });
      draft.commit();
      draft.close();
      withFile(
        path,
        (file) => {
          const datasets = samples.map((_, i) => file.dataset(`/d${i}`));
          for (const [i, [dtype, , values]] of samples.entries()) {
            datasets[i]?.write(values);
            expect(datasets[i]?.read(), describeType(dtype)).toEqual(values);
            tally.types++;
          }
        },
        'r+',
      );
      withFile(path, (file) => {
        for (const [i, [dtype, count, values]] of samples.entries())
          expect(inTheFile(file, `/d${i}`, dtype, count), describeType(dtype)).toEqual(values);
      });
    }),
    runs('native values of any type', 200),
  );
  count('native values of any type', tally);
}, 300_000);

test('references of HDF5 1.12, whose memory holds pointers, and those of files with short addresses are refused', () => {
  const newer = { class: 'reference', size: 18, to: 'other' } as DType;
  const short = { class: 'reference', size: 4, to: 'object' } as DType;
  for (const dtype of [newer, short]) {
    for (const type of [dtype, T.array(dtype, [2]), T.vlen(dtype), T.compound({ n: 'int8', to: T.vlen(dtype) })])
      expect(codeOf(() => memoryForm(type, '/d'))).toBe('UNSUPPORTED');
  }
  expect(memoryForm(T.compound({ to: T.reference, text: T.string() }), '/d').size).toBe(12);
});
