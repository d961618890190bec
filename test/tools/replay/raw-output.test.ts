import { memoryStorage } from 'h5log/storage';
import { expect, test } from 'vitest';
import { RawOutput } from '../../../src/tools/replay/raw-output.ts';

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
  const output = new RawOutput(storage);
  const buffers = [new Uint8Array(200_000), new Uint8Array(200_000)];
  const sizes = [200_000, 10, 200_000, 100, 100, 150_000, 3, 200_000];
  const places: number[] = [];
  for (const [i, size] of sizes.entries()) {
    const bytes = (buffers[i % 2] as Uint8Array).subarray(0, size).fill(i + 1);
    places.push(output.take(size));
    await output.write(bytes, places[i] as number);
  }
  await output.finish();
  const written = storage.bytes();
  sizes.forEach((size, i) => {
    const at = places[i] as number;
    expect(written.subarray(at, at + size).every((byte) => byte === i + 1)).toBe(true);
  });
  expect(output.written).toBe(sizes.reduce((sum, size) => sum + size, 0));
});

test('places do not overlap; large ones begin at a page', () => {
  const output = new RawOutput(memoryStorage());
  expect([5, 3, 2 ** 20, 1].map((size) => output.take(size))).toEqual([48, 56, 4096, 4096 + 2 ** 20]);
  expect(output.end).toBe(4096 + 2 ** 20 + 1);
});

test('a write that fails is reported by the next one, or at the end', async () => {
  const large = new Uint8Array(200_000);
  for (const next of [large, new Uint8Array(10)]) {
    const output = new RawOutput(slow(true));
    await output.write(large, 48);
    await expect(output.write(next, 300_000)).rejects.toThrow('no room');
  }
  const output = new RawOutput(slow(true));
  await output.write(new Uint8Array(10), 48);
  await expect(output.finish()).rejects.toThrow('no room');
  await output.abandon();
});
