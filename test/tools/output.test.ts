import { memoryStorage } from 'h5log/storage';
import { expect, test } from 'vitest';
import { Output } from '../../src/tools/output.ts';
import { Runner } from '../../src/tools/run.ts';

/** A storage whose writes take a while, and take their bytes only at the end of it. */
function slow(fail = false) {
  const storage = memoryStorage();
  const write = async (parts: readonly Uint8Array[], offset: number): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    if (fail) throw new Error('no room');
    await storage.write?.(parts, offset);
  };
  return { ...storage, write, bytes: () => storage.bytes() };
}

test('a buffer may be used again once the write after it was awaited, also a small one', async () => {
  const storage = slow();
  const runner = new Runner(storage);
  const output = new Output(48);
  const buffers = [new Uint8Array(200_000), new Uint8Array(200_000)];
  const sizes = [200_000, 10, 200_000, 100, 100, 150_000, 3, 200_000];
  const places: number[] = [];
  for (const [i, size] of sizes.entries()) {
    const bytes = (buffers[i % 2] as Uint8Array).subarray(0, size).fill(i + 1);
    places.push(output.take(size));
    await runner.run(output.write(bytes, places[i] as number));
  }
  await runner.run(output.flush());
  await runner.finish();
  const written = storage.bytes();
  sizes.forEach((size, i) => {
    const at = places[i] as number;
    expect(written.subarray(at, at + size).every((byte) => byte === i + 1)).toBe(true);
  });
  expect(output.written).toBe(sizes.reduce((sum, size) => sum + size, 0));
});

test('places do not overlap; large ones begin at a page', () => {
  const output = new Output(48);
  expect([5, 3, 2 ** 20, 1].map((size) => output.take(size))).toEqual([48, 56, 4096, 4096 + 2 ** 20]);
  expect(output.end).toBe(4096 + 2 ** 20 + 1);
});

test('a write that fails is reported by the next one, or at the end', async () => {
  const large = new Uint8Array(200_000);
  for (const next of [large, new Uint8Array(10)]) {
    const [runner, output] = [new Runner(slow(true)), new Output(48)];
    await runner.run(output.write(large, 48));
    await expect(runner.run(output.write(next, 300_000))).rejects.toThrow('no room');
  }
  const [runner, output] = [new Runner(slow(true)), new Output(48)];
  await runner.run(output.write(new Uint8Array(10), 48));
  await runner.run(output.flush());
  await expect(runner.finish()).rejects.toThrow('no room');
  await runner.settle();
});
