import type { Communicator } from '../../src/comm/communicator.ts';
import { File, T } from '../../src/index.ts';

export const RECORD = T.compound({ s: T.string(), n: 'int32', list: T.vlen(T.string()), to: T.reference });
const EACH = 20;

interface Options {
  readonly path: string;
  readonly subfiles?: number;
}

const text = (rank: number, i: number, turn: number): string => `rank ${rank}, ${'ä'.repeat(i)} ${turn}`;

/** Every rank posts its part of each dataset, some of it twice; returns what it sees of all of it in the end. */
export default (comm: Communicator, { path, subfiles = 0 }: Options): unknown => {
  const { rank, size } = comm;
  const file = File.createSync(path, { comm, ...(subfiles > 0 && { subfiles }) });
  for (let r = 0; r < size; r++) file.createGroup(`g${r}`);
  const shape = [size * EACH];
  const plain = file.createDataset('plain', { dtype: T.string(), shape });
  const packed = file.createDataset('packed', { dtype: T.string(), shape, chunks: [7], filters: [{ deflate: 5 }] });
  const records = file.createDataset('records', { dtype: RECORD, shape });
  const numbers = file.createDataset('numbers', { dtype: 'int32', shape });
  const mine = { start: [rank * EACH], count: [EACH] };
  for (let turn = 0; turn < 2; turn++) {
    const texts = Array.from({ length: EACH }, (_, i) => text(rank, i, turn));
    // In the second turn only odd ranks have values that point elsewhere.
    if (turn === 0 || rank % 2 === 1) {
      plain.write(texts, mine);
      packed.write(texts, mine);
      records.write(
        texts.map((s, i) => ({ s, n: i, list: i % 3 ? [s, ''] : [], to: i % 2 ? `/g${(rank + i) % size}` : '' })),
        mine,
      );
    }
    numbers.write(new Int32Array(EACH).fill(rank + turn), mine);
    file.flushSync();
    file.group(`g${turn % size}`).attributes.set('turn', turn);
  }
  file.closeSync();
  comm.barrier();
  const reader = File.openSync(path, { comm });
  const seen = ['plain', 'packed', 'records', 'numbers'].map((name) => [
    ...(reader.dataset(name).readSync() as never[]),
  ]);
  reader.closeSync();
  const expected = [0, 1, 2, 3].map((which) =>
    Array.from({ length: size * EACH }, (_, k) => {
      const [r, i] = [Math.floor(k / EACH), k % EACH];
      const s = text(r, i, r % 2 === 1 ? 1 : 0);
      if (which < 2) return s;
      if (which === 3) return r + 1;
      return { s, n: i, list: i % 3 ? [s, ''] : [], to: i % 2 ? `/g${(r + i) % size}` : '' };
    }),
  );
  return { seen, expected };
};
