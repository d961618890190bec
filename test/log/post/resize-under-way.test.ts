import fc from 'fast-check';
import { type ByteStorage, File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { expect, test } from 'vitest';
import { runs } from '../../seed.ts';

/** A storage that can only be waited for, and takes its time. */
function slow(memory: ByteStorage): ByteStorage {
  const wait = (): Promise<void> => new Promise((done) => setImmediate(done));
  return {
    name: 'slow',
    size: () => memory.size(),
    async read(into, offset) {
      await wait();
      return memory.read(into, offset);
    },
    async write(parts, offset) {
      await wait();
      await memory.write?.(parts, offset);
    },
    truncate: async (size) => memory.truncate?.(size),
    sync: async () => {},
    close: async () => {},
  };
}

const steps = ['append', 'shrink', 'grow', 'write', 'flush', 'publish', 'attribute', 'read', 'await'] as const;

test('what changes a shape while a commit is under way is in the next one', async () => {
  const program = fc.record({
    list: fc.array(fc.constantFrom(...steps), { minLength: 2, maxLength: 8 }),
    options: fc.constantFrom(
      { publish: 'never' } as const,
      { publish: 'close' } as const,
      { publish: 'flush' } as const,
      { connector: 'native' } as const,
    ),
  });
  const property = fc.asyncProperty(program, async ({ list, options }) => {
    const memory = memoryStorage();
    const file = await File.create(slow(memory), options);
    const dataset = file.createDataset('d', { dtype: 'int32', shape: [0], maxShape: [null], fill: -1 });
    const model: number[] = [];
    const open: Promise<unknown>[] = [];
    for (const [i, step] of list.entries()) {
      if (step === 'append') {
        model.push(i);
        dataset.append([i]);
      } else if (step === 'shrink' && model.length > 0) {
        model.pop();
        dataset.resize([model.length]);
      } else if (step === 'grow') dataset.resize([model.push(-1)]);
      else if (step === 'write' && model.length > 0) {
        model[0] = i;
        dataset.write([i], { start: [0], count: [1] });
      } else if (step === 'flush') open.push(file.flush());
      else if (step === 'publish' && !('connector' in options)) open.push(file.publish());
      else if (step === 'attribute') file.attributes.set('a', i);
      else if (step === 'read') open.push(dataset.read());
      else if (step === 'await') await Promise.all(open.splice(0));
    }
    await Promise.all([...open, file.close()]);
    const reader = await File.open(memory);
    expect(Array.from(await reader.dataset('d').read())).toEqual(model);
    await reader.close();
  });
  await fc.assert(property, runs('shapes that change under way', 5000));
}, 300_000);
