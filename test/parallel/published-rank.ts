import type { Communicator } from '../../src/comm/communicator.ts';
import { File, T } from '../../src/index.ts';

export interface Options {
  readonly path: string;
  /** Sessions, each of which adds rows and writes over what there is. */
  readonly sessions: number;
  /** In the middle of each session, too. */
  readonly midway?: boolean;
  /** This rank fails to make its chunks. */
  readonly failing?: number;
}

const decode = (bytes: Uint8Array): Uint8Array => bytes;

const ROWS = 30;
const [HEIGHT, WIDTH] = [37, 41];

/** What all of the file should hold after so many sessions of so many ranks, by dataset. */
export function expected(size: number, sessions: number): Record<string, unknown[]> {
  const rows = Array.from({ length: sessions * size * ROWS }, (_, k) => k);
  const field = Array.from({ length: HEIGHT * WIDTH }, (_, k) => {
    const row = Math.floor(k / WIDTH);
    return row < size ? sessions * 1000 + row * 100 + (k % WIDTH) : -1;
  });
  const texts = Array.from({ length: size }, (_, r) => `rank ${r}, session ${sessions - 1}`);
  const targets = Array.from({ length: size }, (_, r) => `/g${(r + 1) % size}`);
  return { rows, packed: rows, field, texts, targets, scalar: [sessions] };
}

/** Every rank writes its part of each dataset, and all publish. */
export default (comm: Communicator, { path, sessions, midway = false, failing = -1 }: Options): unknown => {
  const { rank, size } = comm;
  const published: (number | null)[] = [];
  let isPublishing = false;
  const encode = (bytes: Uint8Array): Uint8Array => {
    if (rank === failing && isPublishing) throw new Error('no encoder today');
    return bytes;
  };
  const options = { comm, ...(failing < 0 ? {} : { codecs: { 32000: { name: 'none', encode, decode } } }) };
  for (let session = 0; session < sessions; session++) {
    const file =
      session === 0
        ? File.createSync(path, { ...options, publish: 'close' })
        : File.openSync(path, { ...options, mode: 'r+' });
    if (session === 0) {
      for (let r = 0; r < size; r++) file.createGroup(`g${r}`);
      file.createDataset('rows', { dtype: 'float64', shape: [0], maxShape: [null], chunks: [16] });
      const filters = failing < 0 ? ['shuffle' as const, { deflate: 3 }] : [{ id: 32_000, parameters: [] }];
      file.createDataset('packed', { dtype: 'float64', shape: [0], maxShape: [null], chunks: [16], filters });
      file.createDataset('field', { dtype: 'int32', shape: [HEIGHT, WIDTH], fill: -1, chunks: [8, 8] });
      file.createDataset('texts', { dtype: T.string(), shape: [size], chunks: [2] });
      file.createDataset('targets', { dtype: T.reference, shape: [size] });
      file.createDataset('scalar', { dtype: 'int32', shape: [] });
    }
    const before = session * size * ROWS;
    for (const name of ['rows', 'packed']) {
      const dataset = file.dataset(name);
      dataset.resize([before + size * ROWS]);
      const start = before + rank * ROWS;
      const half = ROWS / 2;
      for (let part = 0; part < 2; part++) {
        const from = start + part * half;
        dataset.write(
          Float64Array.from({ length: half }, (_, i) => from + i),
          { start: [from], count: [half] },
        );
        if (part > 0 || !midway) continue;
        published.push(file.publishSync().sequence);
      }
    }
    const line = Int32Array.from({ length: WIDTH }, (_, i) => (session + 1) * 1000 + rank * 100 + i);
    file.dataset('field').write(line, { start: [rank, 0], count: [1, WIDTH] });
    file.dataset('texts').write([`rank ${rank}, session ${session}`], { start: [rank], count: [1] });
    file.dataset('targets').write([`/g${(rank + 1) % size}`], { start: [rank], count: [1] });
    if (rank === 0) file.dataset('scalar').write(Int32Array.of(session + 1));
    if (failing >= 0) {
      file.flushSync();
      let message = '';
      isPublishing = true;
      try {
        file.publishSync();
      } catch (error) {
        message = (error as Error).message;
      }
      isPublishing = false;
      // It goes on working.
      file.dataset('field').write(line, { start: [rank, 0], count: [1, WIDTH] });
      const { sequence } = file.flushSync();
      file.discard();
      return { message, sequence };
    }
    file.closeSync();
    comm.barrier();
  }
  return published;
};
