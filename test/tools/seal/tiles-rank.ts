import { File } from 'h5log';
import type { Communicator } from '../../../src/comm/communicator.ts';

/** Every rank writes a row of tiles, with one flush of all: plain ones, and deflated ones. */
export default function main(comm: Communicator, { path, subfiles }: { path: string; subfiles?: number }): void {
  const file = File.createSync(path, { comm, ...(subfiles === undefined ? {} : { subfiles }) });
  const shape = [comm.size * 8, 48];
  const plain = file.createDataset('plain', { dtype: 'float64', shape });
  const packed = file.createDataset('packed', { dtype: 'int32', shape, chunks: [8, 16], filters: [{ deflate: 4 }] });
  for (let column = 0; column < 3; column++) {
    const where = { start: [comm.rank * 8, column * 16], count: [8, 16] };
    const from = 1000 * comm.rank + 200 * column;
    plain.write(
      Float64Array.from({ length: 128 }, (_, i) => from + i),
      where,
    );
    packed.write(
      Int32Array.from({ length: 128 }, (_, i) => from - i),
      where,
    );
  }
  file.flushSync();
  file.closeSync();
}
