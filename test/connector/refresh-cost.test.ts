import { File } from 'h5log';
import { type ByteStorage, memoryStorage } from 'h5log/storage';
import { expect, test } from 'vitest';

/** The same bytes, with a count of those that were read. */
function counted(storage: ByteStorage): { storage: ByteStorage; read(): number } {
  let bytes = 0;
  const blocking = storage.blocking as NonNullable<ByteStorage['blocking']>;
  const read = (into: Uint8Array, offset: number): number => {
    bytes += into.length;
    return blocking.read(into, offset);
  };
  return { storage: { ...wrapped(storage), blocking: { ...wrapped(blocking), read } }, read: () => bytes };
}

/** An object whose methods are those of another. */
function wrapped<T extends object>(object: T): T {
  const out: Record<string, unknown> = {};
  for (let from: object | null = object; from && from !== Object.prototype; from = Object.getPrototypeOf(from)) {
    for (const name of Object.getOwnPropertyNames(from)) {
      if (name === 'constructor' || name in out) continue;
      const value = (object as Record<string, unknown>)[name];
      out[name] = typeof value === 'function' ? value.bind(object) : value;
    }
  }
  return out as T;
}

/** A reader that follows a file of so many blocks: bytes and the fewest milliseconds of a refresh with a small read. */
function follow(blocks: number): { bytes: number; ms: number } {
  const storage = memoryStorage();
  const writer = File.createSync(storage);
  const written = writer.createDataset('x', { dtype: 'int32', shape: [blocks, 4] });
  for (let i = 0; i < blocks; i++) {
    // Every second column: blocks that cannot be joined.
    written.write(Int32Array.of(i), { start: [i, (i * 2) % 4], count: [1, 1] });
    if (i % (blocks / 10) === 0) writer.flushSync();
  }
  writer.flushSync();
  const source = counted(storage);
  const reader = File.openSync(source.storage);
  const read = reader.dataset('x', 'int32');
  for (let i = 0; i < 4; i++) read.readSync({ start: [i, 0], count: [1, 4] });
  const before = source.read();
  const times: number[] = [];
  const rounds = 32;
  for (let i = 0; i < rounds; i++) {
    const row = (i * 37) % blocks;
    written.write(Int32Array.of(-i - 1), { start: [row, 3], count: [1, 1] });
    writer.flushSync();
    const begun = performance.now();
    expect(reader.refreshSync()).toBe(true);
    const [value] = read.readSync({ start: [row, 3], count: [1, 1] });
    times.push(performance.now() - begun);
    expect(value).toBe(-i - 1);
  }
  // What was there before is there still.
  expect([...read.readSync({ start: [5, 0], count: [1, 4] })]).toEqual([0, 0, 5, 0]);
  expect(reader.commits().length).toBe(writer.commits().length);
  const bytes = (source.read() - before) / rounds;
  reader.closeSync();
  writer.closeSync();
  return { bytes, ms: Math.min(...times) };
}

test('a refresh costs what is new, not what the file holds', () => {
  follow(10_000); // compiles
  const few = follow(10_000);
  const many = follow(160_000);
  const line = ({ bytes, ms }: typeof few): string => `${ms.toFixed(2)} ms, ${Math.round(bytes)} bytes`;
  process.stdout.write(`refresh and a small read: ${line(few)} at 10,000 blocks, ${line(many)} at 160,000\n`);
  expect(many.bytes).toBeLessThan(2 * few.bytes);
  expect(many.ms).toBeLessThan(3 * few.ms);
  expect(many.ms).toBeLessThan(2);
});
