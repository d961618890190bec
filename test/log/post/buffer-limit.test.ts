import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { File } from '../../../src/api/file.ts';
import { isH5LogError } from '../../../src/base/errors.ts';
import { memoryStorage } from '../../../src/storage/memory.ts';
import { runNode } from '../../process.ts';
import { noise } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';

/** The figure in docs/api.md: the limit, as much again with filters that make nothing smaller, and this for the rest. */
const BESIDES = 96;
/** Filtering takes longer than writing. */
const LIMITS = { plain: 128, filtered: 64 } as const;

describe('the memory of a process that writes three times its bufferLimit', () => {
  const directory = temporaryDirectory();
  for (const kind of ['plain', 'filtered'] as const) {
    for (const how of ['flushSync', 'flush', 'onBufferFull', 'unawaited'] as const) {
      test(`${kind}, ${how}`, async () => {
        const module = new URL('./buffer-limit-writer.ts', import.meta.url);
        const limit = LIMITS[kind];
        const path = join(directory, `${kind}-${how}.h5`);
        const { stdout, stderr } = await runNode(module, [path, how, kind, String(limit)]);
        expect(stderr).toBe('');
        const { grown, refused } = JSON.parse(stdout) as { grown: number; refused: number };
        const most = limit * (kind === 'filtered' ? 2 : 1) + BESIDES;
        process.stdout.write(`bufferLimit of ${limit} MiB, ${kind}, ${how}: ${grown.toFixed(0)} MiB, most ${most}\n`);
        expect(grown).toBeLessThan(most);
        if (how === 'flushSync' || how === 'flush') expect(refused).toBe(2);
      });
    }
  }
});

describe('what counts as held', () => {
  const SIZE = 2 ** 19;
  const posted = (filters: readonly 'fletcher32'[]) => {
    const file = File.createSync(memoryStorage(), { bufferLimit: 2.5 * SIZE });
    const dataset = file.createDataset('d', { dtype: 'uint8', shape: [4, SIZE], filters });
    const post = (row: number): void => dataset.write(noise(SIZE, row), { start: [row, 0], count: [1, SIZE] });
    return { file, post };
  };
  const full = (work: () => void): boolean => {
    try {
      work();
      return false;
    } catch (error) {
      if (isH5LogError(error, 'BUFFER_FULL')) return true;
      throw error;
    }
  };

  test('the data of a flush that is being written', async () => {
    const { file, post } = posted([]);
    post(0);
    const flushed = file.flush();
    post(1);
    expect(full(() => post(2))).toBe(true);
    await flushed;
    expect(full(() => post(2))).toBe(false);
    await file.close();
  });

  test('and what filters made of it', async () => {
    const { file, post } = posted(['fletcher32']);
    post(0);
    const flushed = file.flush();
    expect(full(() => post(1))).toBe(true);
    await flushed;
    expect(full(() => post(1))).toBe(false);
    expect(full(() => post(2))).toBe(false);
    await file.close();
    expect(file.pending.bytes).toBe(0);
  });
});
