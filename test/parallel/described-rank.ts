import type { Communicator } from '../../src/comm/communicator.ts';
import { type AttributeValue, type Dataset, File } from '../../src/index.ts';

type Described = [name: string, dtype: unknown, shape: readonly number[], fill: unknown, attributes: unknown[]];

const plain = (value: AttributeValue): unknown =>
  ArrayBuffer.isView(value)
    ? [value.constructor.name, ...(value as Float64Array)].map(String)
    : String(value).slice(0, 99);

function describe(dataset: Dataset): Described {
  const { path, dtype, shape, fill } = dataset;
  return [path, dtype, shape, fill, [...dataset.attributes].map(([name, value]) => [name, plain(value)])];
}

/** Datasets with attributes, some changed afterwards: as this rank sees them before the flush, after it, and in the file. */
export default (comm: Communicator, path: string): Described[][] => {
  const file = File.createSync(path, { comm });
  const numbers = Float32Array.of(1, 2, 3);
  const bytes = Buffer.from([1, 2, 3]);
  const create = (name: string): Dataset =>
    file.createDataset(name, {
      dtype: 'float32',
      shape: [4, 4],
      maxShape: [null, 4],
      fill: 7,
      chunks: [2, 2],
      filters: ['shuffle', { deflate: 3 }],
      attributes: { units: 'K', ['__proto__']: 'own', _own: 1.5, numbers, bytes, long: 'x'.repeat(20_000), empty: '' },
    });
  const names = ['a', 'b', 'c', 'd', 'e/inside', 'f'];
  for (const name of names) create(name);
  file.createDataset('only-plain', { dtype: 'int16', shape: [], attributes: { numbers, bytes, _x: -0 } });
  // The ranks have copies.
  numbers.fill(comm.rank + 10);
  bytes.fill(comm.rank + 10);
  file.dataset('b').resize([9, 4]);
  file.dataset('c').attributes.set('units', 'kg');
  file.dataset('c').attributes.set('more', 1n);
  file.dataset('d').attributes.delete('numbers');
  file.createHardLink('other', 'e/inside');
  file.move('f', 'g');
  const states: Described[][] = [];
  const look = (from: File): void => {
    const paths = ['a', 'b', 'c', 'd', 'other', 'g', 'only-plain'];
    states.push(paths.map((name) => describe(from.dataset(name))));
  };
  look(file);
  file.flushSync();
  look(file);
  file.dataset('a').attributes.set('late', 'one');
  file.flushSync();
  file.dataset('a').attributes.delete('late');
  file.flushSync();
  look(file);
  file.closeSync();
  comm.barrier();
  const reader = File.openSync(path, { comm });
  look(reader);
  reader.closeSync();
  return states;
};
