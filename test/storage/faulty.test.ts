import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../seed.ts';
import { storageConformance } from './conformance.ts';
import { type Fault, faultyStorage, type Variant, variants } from './faulty.ts';
import { errorOf, expectBytes, pattern } from './scratch.ts';

storageConformance('a faulty disk', (bytes) => faultyStorage({ bytes }));
storageConformance('a faulty disk with delays', (bytes) => faultyStorage({ bytes, delays: true, seed: 5 }));
storageConformance('a faulty disk without a blocking half', (bytes) => faultyStorage({ bytes, asyncOnly: true }));

const seeds: Variant[] = Array.from({ length: 300 }, (_, i) => i);
const distinct = (images: Uint8Array[]): number =>
  new Set(images.map((image) => Buffer.from(image).toString('hex'))).size;

describe('faults', () => {
  test('the n-th operation of a kind fails, once, with the code as its cause', async () => {
    const disk = faultyStorage({ faults: [{ op: 'write', at: 1, code: 'ENOSPC', landed: 'none' }] });
    disk.blocking.write([pattern(4)], 0);
    const error = await errorOf(() => disk.write([pattern(4)], 4));
    expect(error).toMatchObject({ code: 'STORAGE', offset: 4, cause: { code: 'ENOSPC' } });
    expectBytes(disk.processImage(), pattern(4));
    await disk.write([pattern(4)], 4);
    expect(disk.processImage().length).toBe(8);
    expect([disk.injected, disk.counts.write, disk.counts.any]).toEqual([1, 3, 3]);
    expect(disk.log.map(({ kind, failed }) => [kind, failed])).toEqual([
      ['write', undefined],
      ['write', 'ENOSPC'],
      ['write', undefined],
    ]);
  });

  test.each(['read', 'write', 'truncate', 'sync'] as const)(
    '%s fails in both halves, with EIO unless told',
    async (op) => {
      const disk = faultyStorage({ bytes: pattern(9), faults: [{ op, at: 0, times: 2, landed: 'none' }] });
      for (const calls of [disk, disk.blocking]) {
        const attempts = {
          read: () => calls.read(new Uint8Array(1), 0),
          write: () => calls.write([pattern(1, 9)], 0),
          truncate: () => calls.truncate(3),
          sync: () => calls.sync(),
        };
        expect(await errorOf(attempts[op])).toMatchObject({ code: 'STORAGE', cause: { code: 'EIO' } });
      }
      expectBytes(disk.processImage(), pattern(9));
    },
  );

  test("'any' counts all kinds together, and a disk can stay broken until healed", async () => {
    const disk = faultyStorage({ faults: [{ op: 'any', at: 2, times: Infinity }] });
    disk.blocking.write([pattern(4)], 0);
    disk.blocking.read(new Uint8Array(1), 0);
    for (let i = 0; i < 5; i++) expect(() => disk.blocking.sync()).toThrowError(/EIO/);
    disk.heal();
    disk.blocking.sync();
    disk.fail({ op: 'any', at: disk.counts.any });
    expect(() => disk.blocking.truncate(0)).toThrowError(/EIO/);
  });

  test('a failing write leaves as much as told: bytes, a beginning, or whole sectors', () => {
    const image = (landed: Fault['landed'], seed: number): Uint8Array => {
      const disk = faultyStorage({
        bytes: new Uint8Array(4096),
        seed,
        faults: [{ op: 'write', at: 0, ...(landed === undefined ? {} : { landed }) }],
      });
      expect(() => disk.blocking.write([pattern(1000), pattern(1000)], 100)).toThrowError();
      return disk.processImage();
    };
    const whole = new Uint8Array(4096);
    whole.set([...pattern(1000), ...pattern(1000)], 100);
    const five = image(5, 0);
    expectBytes(five.subarray(0, 105), whole.subarray(0, 105));
    expect(five.subarray(105).every((byte) => byte === 0)).toBe(true);
    const torn = seeds.map((seed) => image('torn', Number(seed)));
    for (const found of torn) {
      for (let at = 0; at < 4096; at += 512) {
        const sector = found.subarray(at, at + 512);
        if (sector.some((byte) => byte !== 0)) expectBytes(sector, whole.subarray(at, at + 512));
      }
    }
    // Bytes 100 to 2100 lie in 5 sectors: every subset of them is met.
    expect(distinct(torn)).toBe(2 ** 5);
    expect(distinct(seeds.map((seed) => image(undefined, Number(seed))))).toBeGreaterThan(200);
  });
});

describe('a power loss', () => {
  test('keeps what was synced and may lose what was not', () => {
    const disk = faultyStorage({ bytes: pattern(2000) });
    disk.blocking.write([pattern(1000, 50)], 0);
    disk.blocking.sync();
    const durable = disk.processImage();
    disk.blocking.write([pattern(3000, 99)], 500);
    expectBytes(disk.image('none'), durable);
    expectBytes(disk.image('all'), disk.processImage());
    for (const seed of seeds) expectBytes(disk.image(seed).subarray(0, 500), durable.subarray(0, 500));
    disk.blocking.sync();
    for (const variant of variants(20)) expectBytes(disk.image(variant), disk.processImage());
  });

  test('tears writes at sectors and never inside one', () => {
    const disk = faultyStorage({ bytes: new Uint8Array(8192) });
    disk.blocking.write([pattern(3000)], 700);
    const whole = disk.processImage();
    const images = seeds.map((seed) => disk.image(seed));
    for (const image of images) {
      for (let at = 0; at < 8192; at += 512) {
        const sector = image.subarray(at, at + 512);
        if (sector.some((byte) => byte !== 0)) expectBytes(sector, whole.subarray(at, at + 512));
      }
    }
    expect(distinct(images)).toBeGreaterThan(20);
  });

  test('loses writes in any order: the later can be there without the earlier, and the earlier on top', () => {
    const disk = faultyStorage({ bytes: Uint8Array.of(0, 0) });
    disk.blocking.write([Uint8Array.of(1)], 0);
    disk.blocking.write([Uint8Array.of(2)], 1);
    disk.blocking.write([Uint8Array.of(3)], 0);
    const images = new Set(seeds.map((seed) => disk.image(seed).join()));
    expect([...images].sort()).toEqual(['0,0', '0,2', '1,0', '1,2', '3,0', '3,2']);
  });

  test('may grow the file without its data, which is zero then, or keep the old size', () => {
    const disk = faultyStorage();
    disk.blocking.write([Uint8Array.of(1)], 0);
    disk.blocking.sync();
    disk.blocking.truncate(3);
    disk.blocking.write([Uint8Array.of(2, 2)], 1);
    disk.blocking.write([Uint8Array.of(5)], 3);
    const images = new Set(seeds.map((seed) => disk.image(seed).join()));
    for (const found of ['1', '1,0,0', '1,2,2', '1,0,0,0', '1,0,0,5', '1,2,2,0', '1,2,2,5'])
      expect(images).toContain(found);
    expect(images.size).toBe(7);
  });

  test('never brings back in a grown file what a truncate that held had cut off', () => {
    const disk = faultyStorage({ bytes: Uint8Array.of(1, 1) });
    disk.blocking.write([Uint8Array.of(2)], 1);
    disk.blocking.truncate(1);
    disk.blocking.truncate(2);
    disk.blocking.sync();
    for (const variant of variants(50)) expectBytes(disk.image(variant), Uint8Array.of(1, 0));
    disk.blocking.write([Uint8Array.of(3)], 1);
    disk.blocking.truncate(1);
    disk.blocking.truncate(3);
    const images = new Set(seeds.map((seed) => disk.image(seed).join()));
    // Old size: written or not. Cut. Grown again: never with the 3 in it.
    expect([...images].sort()).toEqual(['1', '1,0', '1,0,0', '1,3']);
  });

  test('after a failed sync the changes before it are there or not, and no later sync brings them', () => {
    const disk = faultyStorage({ bytes: Uint8Array.of(0, 0), faults: [{ op: 'sync', at: 0 }] });
    disk.blocking.write([Uint8Array.of(1)], 0);
    expect(() => disk.blocking.sync()).toThrowError(/EIO/);
    disk.blocking.write([Uint8Array.of(2)], 1);
    disk.blocking.sync();
    const images = new Set(variants(300).map((variant) => disk.image(variant).join()));
    expect([...images].sort()).toEqual(['0,2', '1,2']);
    expectBytes(disk.processImage(), Uint8Array.of(1, 2));
    // Written again it is safe.
    disk.blocking.write([Uint8Array.of(1)], 0);
    disk.blocking.sync();
    for (const variant of variants(50)) expectBytes(disk.image(variant), Uint8Array.of(1, 2));
  });

  test('gives many different images for one moment, the same for the same seed', () => {
    const disk = faultyStorage();
    for (let i = 0; i < 5; i++) disk.blocking.write([pattern(1500, i)], i * 1500);
    expect(distinct(variants(20).map((variant) => disk.image(variant)))).toBeGreaterThanOrEqual(10);
    for (const variant of variants(12)) expectBytes(disk.image(variant), disk.image(variant));
    expect(variants(12)).toHaveLength(12);
  });

  test('at an earlier moment is what it was then, whichever way one looks back', () => {
    const step = fc.oneof(
      fc.record({ offset: fc.nat(2000), bytes: fc.uint8Array({ minLength: 1, maxLength: 1200 }) }),
      fc.record({ size: fc.nat(3000) }),
      fc.constant('sync' as const),
    );
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 12 }),
        fc.array(fc.nat(3), { maxLength: 3 }),
        fc.array(fc.nat(12)),
        (steps, failing, looks) => {
          const disk = faultyStorage({ faults: failing.map((at) => ({ op: 'sync', at })) });
          const moments: Uint8Array[][] = [];
          const look = (): number =>
            moments.push([disk.processImage(), ...variants(5).map((variant) => disk.image(variant))]);
          look();
          for (const step of steps) {
            try {
              if (step === 'sync') disk.blocking.sync();
              else if ('size' in step) disk.blocking.truncate(step.size);
              else disk.blocking.write([step.bytes], step.offset);
            } catch {
              // A sync that was told to fail.
            }
            look();
          }
          for (const k of looks.filter((k) => k < moments.length)) {
            const then = [disk.processImageAfter(k), ...variants(5).map((variant) => disk.imageAfter(k, variant))];
            for (const [i, image] of then.entries()) expectBytes(image, moments[k]?.[i] as Uint8Array);
          }
        },
      ),
      runs('earlier moments of a disk', 1000),
    );
  });
});

test('a kill in the middle of a write leaves a beginning of it', () => {
  const disk = faultyStorage({ bytes: pattern(10) });
  disk.blocking.write([pattern(100, 7)], 10);
  const whole = disk.processImage();
  const lengths = new Set<number>();
  for (let seed = 0; seed < 200; seed++) {
    const image = disk.processImageAfter(0, seed);
    expectBytes(image, whole.subarray(0, image.length));
    lengths.add(image.length);
  }
  expect(lengths.size).toBeGreaterThan(50);
  expectBytes(disk.processImageAfter(0), pattern(10));
  expect(() => disk.imageAfter(2, 'all')).toThrowError(/no moment 2/);
});

describe('delays', () => {
  test('complete operations in an order that the seed decides', async () => {
    const orderOf = async (seed: number): Promise<string> => {
      const disk = faultyStorage({ delays: true, seed });
      await Promise.all([0, 1, 2, 3, 4].map((i) => disk.write([Uint8Array.of(i)], i)));
      return disk.log.map((operation) => (operation.kind === 'write' ? operation.offset : '')).join();
    };
    const orders = await Promise.all(Array.from({ length: 30 }, (_, seed) => orderOf(seed)));
    expect(new Set(orders).size).toBeGreaterThan(15);
    expect(await orderOf(3)).toBe(orders[3]);
  });

  test('a sync covers only the writes that were complete when it was called', async () => {
    const disk = faultyStorage({ delays: true });
    await disk.write([Uint8Array.of(1)], 0);
    disk.pause();
    const late = disk.write([Uint8Array.of(2)], 1);
    const sync = disk.sync();
    disk.resume();
    await Promise.all([late, sync]);
    expectBytes(disk.image('none'), Uint8Array.of(1));
    await disk.sync();
    expectBytes(disk.image('none'), Uint8Array.of(1, 2));
  });

  test('a paused write takes effect with resume, from what the buffer holds by then; blocking calls go on', async () => {
    const disk = faultyStorage({ delays: true });
    disk.pause();
    const buffer = Uint8Array.of(1);
    const write = disk.write([buffer], 0);
    disk.blocking.write([Uint8Array.of(7)], 1);
    buffer[0] = 9;
    expect(disk.log).toHaveLength(1);
    disk.resume();
    await write;
    expectBytes(disk.processImage(), Uint8Array.of(9, 7));
  });

  test('close waits for operations in flight; reopen makes it usable again', async () => {
    const disk = faultyStorage({ delays: true });
    const writes = [0, 1, 2].map((i) => disk.write([Uint8Array.of(i + 1)], i));
    await disk.close();
    expectBytes(disk.processImage(), Uint8Array.of(1, 2, 3));
    await Promise.all(writes);
    expect(await errorOf(() => disk.size())).toMatchObject({ code: 'CLOSED' });
    disk.reopen();
    expect(await disk.size()).toBe(3);
  });
});
