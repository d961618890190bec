import type { Communicator } from '../../src/comm/communicator.ts';
import { File } from '../../src/index.ts';

export interface Options {
  readonly path: string;
  readonly publish: 'never' | 'close';
}

/** Every rank reads all references, moves what h5py made, and writes one reference; the last is to what nobody has referred to. */
export default (comm: Communicator, { path, publish }: Options): unknown => {
  const { rank, size } = comm;
  const file = File.openSync(path, { comm, mode: 'r+', publish });
  const ends = file.dataset('ends');
  const read = (): string[] => [...(ends.readSync() as unknown as string[])];
  const before = read();
  file.dataset('new').attributes.set('moved', 1);
  file.flushSync();
  const between = read();
  ends.write([rank === size - 1 ? '/other' : '/new'] as never, { start: [rank], count: [1] });
  file.group('g').attributes.set('moved', 1);
  file.closeSync();
  return [before, between];
};
