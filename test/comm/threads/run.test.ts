import { writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { execute, root } from '../../../scripts/root.ts';
import { isH5LogError } from '../../../src/base/errors.ts';
import { runThreads } from '../../../src/comm/threads/run.ts';
import { temporaryDirectory } from '../../temporary.ts';
import type { Case } from './cases.ts';
import { ran } from './process.ts';

const program = new URL('./cases.ts', import.meta.url);

describe('runThreads', () => {
  test('calls the module on every rank and gives the results in rank order', async () => {
    expect(await run(3, { name: 'ranks' })).toEqual(
      [0, 1, 2].map((rank) => ({ rank, size: 3, kind: 'threads', timeout: Number.POSITIVE_INFINITY })),
    );
    expect(await runThreads(2, program, { name: 'ranks' }, { timeout: 900 })).toMatchObject([
      { timeout: 900 },
      { timeout: 900 },
    ]);
  });

  test('may run several times at once', async () => {
    const runs = [2, 3, 1].map((ranks) => run(ranks, { name: 'sums' }));
    expect(await Promise.all(runs)).toEqual([[1, 1], [3, 3, 3], [0]]);
  });

  test('passes data to the ranks as structured clones, shared memory as it is', async () => {
    const value = { when: new Date(5), big: 7n, map: new Map([['a', Float32Array.of(1, 2)]]), none: undefined };
    expect(await run(2, { name: 'returns', value })).toEqual([value, value]);
    const counter = new SharedArrayBuffer(4);
    expect(await run(3, { name: 'shared', value: counter })).toEqual([3, 3, 3]);
    expect(new Int32Array(counter)[0]).toBe(3);
  });

  test('gives results that are arrays, without what is around them', async () => {
    expect(await run(2, { name: 'array' })).toEqual([new Float64Array(1000), new Float64Array(1000).fill(1)]);
    const parts = (await run(2, { name: 'part' })) as Float64Array[];
    expect(parts).toEqual([new Float64Array(3), new Float64Array(3).fill(1)]);
    expect(parts[1]?.buffer.byteLength).toBe(24);
    const [, buffer] = (await run(2, { name: 'buffer' })) as Uint8Array[];
    expect(Array.from(buffer ?? [])).toEqual([1, 7]);
    expect(buffer?.buffer.byteLength).toBe(2);
    expect(await run(2, { name: 'untransferable' })).toEqual([new Uint8Array(5), new Uint8Array(5).fill(1)]);
    const [, view] = (await run(2, { name: 'view' })) as DataView[];
    expect(view?.getUint8(0)).toBe(1);
  });

  test('ends a rank whose function has returned, whatever it left running', async () => {
    const begin = performance.now();
    expect(await run(2, { name: 'idles' })).toEqual([undefined, undefined]);
    expect(performance.now() - begin).toBeLessThan(15_000);
  });

  test.each([0, -1, 1.5, Number.NaN, 5000, '2'])('refuses %s ranks', async (ranks) => {
    await fails(runThreads(ranks as number, program), 'OPTION', /number of ranks is a whole number from 1 to 1024/);
  });

  test.each([0, -5, Number.NaN, '10'])('refuses a timeout of %s', async (timeout) => {
    await fails(runThreads(1, program, null, { timeout: timeout as number }), 'OPTION', /a timeout is a number/);
  });

  test('refuses data that cannot be cloned', async () => {
    await fails(
      runThreads(2, program, () => 1),
      'OPTION',
      /a thread cannot be started: .*could not be cloned/,
    );
  });

  test('refuses what is no module', async () => {
    await fails(runThreads(1, 5 as never), 'OPTION', /the module is a URL, a path or the name of a package/);
    await fails(runThreads(1, ''), 'OPTION', /the module is/);
  });
});

describe('a module', () => {
  const folder = temporaryDirectory();
  const write = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };

  test('is a URL, the text of one, or a path', async () => {
    const path = write('rank.mjs', 'export default ({ rank }, data) => data + rank;');
    const forms = [pathToFileURL(path), pathToFileURL(path).href, path, `./${relative(process.cwd(), path)}`];
    for (const form of forms) expect(await runThreads(2, form, 10)).toEqual([10, 11]);
  });

  test('may be TypeScript, CommonJS or a text', async () => {
    const typed = write('rank.mts', 'export default async (comm: { rank: number }, data: number) => data + comm.rank;');
    expect(await runThreads(2, typed, 10)).toEqual([10, 11]);
    const common = write('rank.cjs', 'module.exports = ({ rank }, data) => data + rank;');
    expect(await runThreads(2, common, 10)).toEqual([10, 11]);
    const compiled = write('compiled.cjs', 'exports.__esModule = true; exports.default = ({ rank }) => rank;');
    expect(await runThreads(2, compiled)).toEqual([0, 1]);
    expect(await runThreads(2, 'data:text/javascript,export default ({ size }) => size')).toEqual([2, 2]);
  });

  test('that is not there gives NOT_FOUND', async () => {
    await fails(runThreads(2, join(folder, 'none.js')), 'NOT_FOUND', /cannot load the module .*none\.js: /);
    await fails(runThreads(2, 'no-such-package/rank'), 'NOT_FOUND', /cannot load the module no-such-package\/rank/);
    await fails(runThreads(1, folder), 'NOT_FOUND', /cannot load/);
  });

  test('that is no JavaScript, or has no default function, gives NOT_FOUND', async () => {
    await fails(runThreads(2, write('broken.mjs', 'export default (')), 'NOT_FOUND', /cannot load the module .*broken/);
    await fails(runThreads(2, write('empty.mjs', 'export const a = 1;')), 'NOT_FOUND', /no function as its default/);
    await fails(runThreads(2, write('text.mjs', "export default 'text';")), 'NOT_FOUND', /no function as its default/);
  });

  test('that throws while it is loaded gives its own error, and no rank begins', async () => {
    const path = write('throws.mjs', "throw Object.assign(new TypeError('at load'), { hint: 5 });");
    const error = await runThreads(2, path).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'TypeError', message: 'at load', hint: 5, rank: expect.any(Number) });
    const half = write(
      'half.mjs',
      "import { workerData } from 'node:worker_threads'; if (workerData.rank === 1) throw new Error('half');" +
        'export default (comm, data) => { new Int32Array(data)[0] = 1; comm.barrier(); };',
    );
    const began = new SharedArrayBuffer(4);
    await expect(runThreads(2, half, began)).rejects.toMatchObject({ message: 'half', rank: 1 });
    expect(new Int32Array(began)[0]).toBe(0);
  });
});

describe('the output of ranks', () => {
  test('reaches the parent in order and whole', async () => {
    const { stdout } = await ran([3, program.href, { name: 'prints', value: 2000 }]);
    const lines = stdout.split('\n');
    for (const rank of [0, 1, 2]) {
      const mine = lines.filter((line) => line.startsWith(`rank ${rank} `));
      const expected = Array.from({ length: 2000 }, (_, i) => `rank ${rank} line ${i}`);
      expect(mine).toEqual([...expected, `rank ${rank} last`]);
    }
  });

  test('does not repeat the text of an error, and the exit code is not 0', async () => {
    const { stderr, stdout, code } = await ran([3, program.href, { name: 'throws', who: 1 }], {}, 'loud');
    expect(code).not.toBe(0);
    // Once in the heading of the stack that Node prints.
    expect(`${stdout}${stderr}`.split('the tide is out')).toHaveLength(2);
    expect(`${stdout}${stderr}`).not.toContain('a consequence');
  });

  test('is not lost when a rank aborts', async () => {
    const { stdout } = await ran([2, program.href, { name: 'aborts', who: 1 }]);
    expect(stdout).toContain('the last words');
    expect(stdout).toContain('rank 1 aborted the run with code 7');
  });
});

describe('under a launcher', () => {
  test.each([
    [{ OMPI_COMM_WORLD_SIZE: '4', OMPI_COMM_WORLD_RANK: '2' }, 'rank 2 of 4'],
    [{ PMI_SIZE: '2', PMI_RANK: '1' }, 'rank 1 of 2'],
    [{ PMIX_RANK: '0', SLURM_NTASKS: '3', SLURM_PROCID: '0' }, 'rank 0 of 3'],
  ])('%j, threads are refused', async (environment, who) => {
    const { stdout } = await ran([2, program.href, { name: 'sums' }], environment as Record<string, string>);
    const { error } = JSON.parse(stdout) as { error: { code: string; message: string } };
    expect(error.code).toBe('COMM');
    expect(error.message).toContain(`this process is ${who} of an MPI launcher`);
    expect(error.message).toContain('h5log/mpi');
  });

  test.each([
    ['of one rank', { OMPI_COMM_WORLD_SIZE: '1', OMPI_COMM_WORLD_RANK: '0' }],
    ['that is a batch job of Slurm', { SLURM_NTASKS: '2', SLURM_PROCID: '0' }],
  ])('%s they run', async (_, environment) => {
    const { stdout } = await ran([2, program.href, { name: 'sums' }], environment as Record<string, string>);
    expect(JSON.parse(stdout)).toEqual({ results: [1, 1] });
  });
});

describe('the built package', () => {
  test('needs no TypeScript loader', () => {
    const folder = temporaryDirectory();
    writeFileSync(
      join(folder, 'rank.js'),
      "export default (comm) => comm.allreduce(Float64Array.of(comm.rank), 'sum')[0];",
    );
    const main = join(folder, 'main.js');
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    const text =
      `import { runThreads } from ${JSON.stringify(pathToFileURL(join(root, 'dist', 'node', 'threads.js')))};` +
      "const begin = performance.now(); const sums = await runThreads(4, new URL('./rank.js', import.meta.url));" +
      'console.log(JSON.stringify({ sums, took: Math.round(performance.now() - begin) }));';
    writeFileSync(main, text);
    const { sums, took } = JSON.parse(execute('node', [main])) as { sums: number[]; took: number };
    process.stdout.write(`4 threads of the built package started, met and ended in ${took} ms\n`);
    expect(sums).toEqual([6, 6, 6, 6]);
  });
});

function run(ranks: number, given: Case): Promise<unknown[]> {
  return runThreads(ranks, program, given);
}

async function fails(run: Promise<unknown>, code: 'OPTION' | 'NOT_FOUND', message: RegExp): Promise<void> {
  const error = await run.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(isH5LogError(error, code), String(error)).toBe(true);
  expect((error as Error).message).toMatch(message);
}
