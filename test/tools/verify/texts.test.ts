import { readFileSync, writeFileSync } from 'node:fs';
import { File, T } from 'h5log';
import { verify } from 'h5log/tools';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../../temporary.ts';

test.each([
  ['texts', T.string(), ['hello', 'world']],
  ['compounds with texts', T.compound({ s: T.string(), a: 'int32' }), [{ s: 'hello', a: 1 }]],
] as const)(
  'a published commit whose %s are damaged is not good, and is not what a repair gives',
  async (_, dtype, values) => {
    const path = `${temporaryDirectory()}/a.h5`;
    const file = await File.create(path, { publish: 'never' });
    const dataset = file.createDataset('s', { dtype: dtype as never, shape: [8] });
    dataset.write(values as never, { start: [0], count: [values.length] });
    await file.flush();
    await file.publish();
    expect(dataset.published?.way).toBe('copied');
    await file.close();
    expect((await verify(path)).commits.map(({ good }) => good)).toEqual([true, true, true]);
    const bytes = readFileSync(path);
    const at = bytes.indexOf('hello');
    bytes.writeUInt8((bytes[at] as number) ^ 1, at);
    writeFileSync(path, bytes);
    const repairTo = `${path}.repaired`;
    const found = await verify(path, { repairTo, strict: true });
    expect(found.commits.map(({ good }) => good)).toEqual([true, false, false]);
    expect(found.newestSound).toBe(0);
    expect((await verify(repairTo)).sound).toBe(true);
  },
);
