import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type CreateOptions, File } from '../../src/index.ts';
import { memoryStorage } from '../../src/storage/memory.ts';
import { count } from '../counts.ts';
import { keepInput } from '../failures.ts';
import { h5dump, oracle, pythonSync, withOracle } from '../oracles.ts';
import { full, seed, some } from '../seed.ts';
import { type Fault, type FaultyStorage, faultyStorage, variants } from '../storage/faulty.ts';
import { temporaryDirectory } from '../temporary.ts';
import { applyCommit, commitOf, expectSameLayouts, FOREIGN } from './states.ts';

type Disk = FaultyStorage & { readonly blocking: NonNullable<FaultyStorage['blocking']> };

/** After so many operations of the log commit `n` was reported. */
interface Report {
  readonly after: number;
  readonly n: number;
}

type Publish = NonNullable<CreateOptions['publish']>;
/** Where logs live, and how tables are written. */
type Layout = Pick<CreateOptions, 'logs' | 'table'>;

/** Bytes that others made, to be appended to; none: a file is created. */
type Given = Uint8Array | undefined;

/** Create, commits of every kind with failures in between, close, open again, more commits, close. */
async function workload(
  disk: Disk,
  durability: 'power' | 'process',
  commits: number,
  given?: Given,
  publish: Publish = 'auto',
  layout: Layout = {},
): Promise<Report[]> {
  const reports: Report[] = [];
  const report = (n: number): void => void reports.push({ after: disk.log.length, n });
  let n = 0;
  let failures = 0;
  const next = (file: File): number => {
    applyCommit(file, ++n);
    return n;
  };
  const created = given ? null : await File.create(disk, { durability, publish, ...layout });
  report(0);
  for (const file of [created, null, null]) {
    disk.reopen();
    const open = file ?? (await File.open(disk, { mode: 'r+', durability }));
    for (let i = 0; i < commits; i++) {
      const first = next(open);
      if (i % 4 === 3) await failOnce(disk, open, failures++);
      if (i % 3 === 0) open.flushSync();
      else if (i % 3 === 1) await open.flush();
      else {
        const flushes = [open.flush().then(() => report(first))];
        const second = next(open);
        flushes.push(open.flush().then(() => report(second)));
        await Promise.all(flushes);
        continue;
      }
      report(first);
    }
    await open.close();
    await disk.close();
  }
  return reports;
}

/** A flush that fails: at the write of what is appended or of the superblock, or at a sync (where there is one). */
async function failOnce(disk: Disk, file: File, i: number): Promise<void> {
  const { write, sync } = disk.counts;
  // Sectors are written whole or not at all, and so is the superblock. A small commit has two writes.
  const writes = [0, 1].map((k) => ({ op: 'write', at: write + k, landed: 'torn' }) as const);
  const syncs = sync > 0 ? [0, 1].map((k) => ({ op: 'sync', at: sync + k }) as const) : [];
  const faults = [...syncs, ...writes];
  disk.fail(faults[i % faults.length] as Fault);
  const failed = i % 2 === 0 ? file.flush() : (async () => file.flushSync())();
  await expect(failed).rejects.toMatchObject({ code: 'STORAGE' });
  disk.heal();
}

const directory = temporaryDirectory();
let samples = 0;

/** Where little is un-synced many variants give the same image; each is looked at once. */
const known = new Map<string, number>();

/** Opens an image and gives the commit it is at; throws unless it is whole. */
function open(image: Uint8Array): number {
  const key = createHash('sha1').update(image).digest('base64');
  let n = known.get(key);
  if (n === undefined) {
    const file = File.openSync(memoryStorage(image));
    n = commitOf(file);
    if (file.has(FOREIGN)) expectForeign(file);
    expectSameLayouts(file, File.openSync(memoryStorage(image), { connector: 'native' }));
    known.set(key, n);
  }
  return n;
}

/** What h5py made is all there, as it was. */
function expectForeign(file: File): void {
  for (let i = 0; i < 20; i++) {
    const dataset = file.dataset(`${FOREIGN}/d${i}`);
    if (dataset.size !== i || dataset.attributes.get('text') !== 'h5py '.repeat(i))
      throw new Error(`d${i} is not what it was`);
  }
}

function sample(image: Uint8Array): void {
  if (oracle('h5dump') === undefined) return;
  const path = join(directory, 'image.h5');
  writeFileSync(path, image);
  h5dump('-H', path);
  samples++;
}

/** The commit that must be in an image of the first `k` operations. */
function reportedAt(reports: readonly Report[], k: number): number {
  let last = -1;
  for (const { after, n } of reports) if (after <= k) last = Math.max(last, n);
  return last;
}

describe('a crash after every single operation', () => {
  const chosen = seed('crash after every operation');
  const commits = full ? 27 : 11;

  /** Every image of every moment. */
  async function powerLoss(
    name: string,
    commits: number,
    given?: Given,
    publish?: Publish,
    layout?: Layout,
  ): Promise<void> {
    const disk = faultyStorage({ seed: chosen, delays: true, ...(given ? { bytes: given } : {}) });
    const reports = await workload(disk, 'power', commits, given, publish, layout);
    const last = Math.max(...reports.map(({ n }) => n));
    let [images, ahead] = [0, 0];
    known.clear();
    for (let k = 0; k <= disk.log.length; k++) {
      const reported = reportedAt(reports, k);
      for (const variant of variants(10, chosen + 100 * k)) {
        const image = disk.imageAfter(k, variant);
        images++;
        let n: number;
        try {
          n = open(image);
        } catch (error) {
          if (reported < 0) continue;
          keepInput(`after-${k}-variant-${variant}.h5`, image);
          throw new Error(`after operation ${k} (${describeOperation(disk, k)}), variant ${variant}`, { cause: error });
        }
        expect(n, `after operation ${k}, variant ${variant}`).toBeGreaterThanOrEqual(reported);
        expect(n).toBeLessThanOrEqual(last);
        if (n > reported) ahead++;
        if (images % (full ? 20 : 100) === 0) sample(image);
      }
    }
    expect(open(disk.image('none'))).toBe(last);
    if (!given) expect(disk.log.length).toBeGreaterThanOrEqual(commits < 11 ? 15 * commits : 200);
    count(name, {
      operations: disk.log.length,
      failed: disk.injected,
      images,
      'different images': known.size,
      'images ahead of the report': ahead,
      commits: last,
    });
  }

  const kinds: readonly Publish[] = ['auto', 'never', 'close', 'flush', { interval: 3 }];
  test.each(kinds)(
    'power loss, publish %j: every commit reported survives, every image opens',
    {
      timeout: 600_000,
    },
    async (publish) => {
      samples = 0;
      const name = `power loss, publish ${JSON.stringify(publish)}`;
      await powerLoss(name, publish === 'auto' || full ? commits : 5, undefined, publish);
      count(name, { 'images shown to h5dump': samples });
    },
  );

  const layouts: readonly (readonly [string, Layout, Publish])[] = [
    ['logs of groups', { logs: 'group' }, 'never'],
    ['logs of datasets, classic tables', { logs: 'dataset', table: { format: 'classic' } }, 'flush'],
    ['classic tables', { table: { format: 'classic', bigEndian: true } }, 'close'],
    ['logs of datasets', { logs: 'dataset' }, 'never'],
  ];
  test.each(layouts)('power loss, %s: every image opens', { timeout: 600_000 }, async (name, layout, publish) => {
    await powerLoss(`power loss, ${name}`, full ? commits : 4, undefined, publish, layout);
  });

  withOracle('python', 'power loss while appending to a file of h5py', () => {
    const kinds = [
      ['with an old superblock', "libver='earliest'"],
      ['with a new superblock', "libver='latest'"],
      ['behind a user block', 'userblock_size=1024'],
    ] as const;
    test.each(some(kinds, 'power loss on a file of h5py'))(
      '%s: every image opens',
      { timeout: 600_000 },
      async (name, options) => {
        const path = join(directory, 'given.h5');
        pythonSync(
          `import h5py, sys
with h5py.File(sys.argv[1], 'w', ${options}) as f:
    for i in range(20):
        f.create_dataset(f'${FOREIGN}/d{i}', data=list(range(i))).attrs['text'] = 'h5py ' * i`,
          [path],
        );
        await powerLoss(`power loss, file of h5py ${name}`, full ? 9 : 4, readFileSync(path));
      },
    );
  });

  test.each([
    ['one log', {}],
    ['logs of datasets', { logs: 'dataset', table: { format: 'classic' } }],
  ] as const)(
    'kill -9, %s: also without syncs, and in the middle of a write',
    { timeout: 600_000 },
    async (name, layout) => {
      const disk = faultyStorage({ seed: chosen, delays: true });
      const reports = await workload(
        disk,
        'process',
        name === 'one log' || full ? commits : 5,
        undefined,
        'auto',
        layout,
      );
      expect(disk.counts.sync).toBe(0);
      let images = 0;
      for (let k = 0; k <= disk.log.length; k++) {
        const reported = reportedAt(reports, k);
        for (const middle of [undefined, chosen + k]) {
          // Never in the middle of a flip: 48 bytes inside one page are copied in one go.
          if (middle !== undefined && isFlip(disk, k)) continue;
          const image = disk.processImageAfter(k, middle);
          images++;
          try {
            expect(open(image)).toBeGreaterThanOrEqual(reported);
          } catch (error) {
            if (reported < 0) continue;
            keepInput(`after-${k}.h5`, image);
            throw new Error(`after operation ${k} (${describeOperation(disk, k)})`, { cause: error });
          }
        }
      }
      count(`kill -9 after every operation, ${name}`, { operations: disk.log.length, failed: disk.injected, images });
    },
  );
});

const isFlip = (disk: Disk, k: number): boolean => {
  const next = disk.log[k];
  return next?.kind === 'write' && next.offset === 0;
};

function describeOperation(disk: Disk, k: number): string {
  const operation = disk.log[k - 1];
  return operation
    ? JSON.stringify(operation, (name, value: unknown) => (name === 'pieces' ? undefined : value))
    : 'none';
}
