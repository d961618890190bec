import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type CompareOptions, compare } from '../../bench/compare.ts';
import { readOptions } from '../../bench/options.ts';
import { external } from '../../bench/peers/external.ts';
import type { Peer } from '../../bench/peers/peer.ts';
import { plain } from '../../bench/peers/plain.ts';
import type { Figure, Workload } from '../../src/bench/workload.ts';
import { workloads } from '../../src/bench/workloads.ts';
import { temporaryDirectory } from '../temporary.ts';

const options = (more: Partial<CompareOptions> = {}): CompareOptions => ({
  folder: temporaryDirectory(),
  scale: 0.0005,
  full: true,
  rounds: 1,
  ...more,
});

function shipped(name: string): Workload {
  return workloads.find((workload) => workload.name === name) as Workload;
}

/** A workload whose times are given, turn by turn. */
function scripted(turns: readonly (readonly Figure[])[]): Workload {
  let turn = 0;
  return {
    name: 'small',
    summary: '',
    async *run() {
      yield* turns[turn++] as readonly Figure[];
    },
  };
}

function peerOf(name: string, id: string, turns: readonly number[]): Peer {
  let turn = 0;
  return { name, workloads: { small: async () => [{ id, seconds: turns[turn++] as number, part: 1 }] } };
}

describe('programs side by side', () => {
  test.each(['small', 'stream', 'flushes'])('%s: every figure of a peer has one of ours', async (name) => {
    const at = options();
    const { comparisons } = await compare(shipped(name), [plain], at);
    const both = comparisons.filter(({ results }) => results.length > 1);
    for (const { results } of both) expect(results.map(({ program }) => program)).toEqual(['h5log', 'plain fs']);
    expect(both.map(({ id }) => id).sort()).toEqual(
      {
        small: ['ordered', 'shuffled'].flatMap((order) =>
          ['random', 'read', 'write'].map((part) => `small/${order}/${part}`),
        ),
        stream: ['stream/async-lent'],
        flushes: ['flushes/total'],
      }[name],
    );
    expect(readdirSync(at.folder)).toEqual([]);
  });

  test('take turns, and the best of each counts', async () => {
    const seen: string[] = [];
    const time = (value: number): Figure => ({ id: 'small/x', what: ' x', value, unit: 's' });
    const size = (value: number): Figure => ({ id: 'small/size', what: 'size', value, unit: 'bytes' });
    const ours = scripted([[time(3), size(10)], [time(1), size(20)], [time(2)]]);
    const outcome = await compare(
      ours,
      [peerOf('a', 'small/x', [8, 9, 7]), peerOf('b', 'small/x', [4, 5, 6])],
      options({ rounds: 3, onTurn: (program, round) => seen.push(`${program}${round}`) }),
    );
    expect(seen.join(' ')).toBe('h5log0 a0 b0 h5log1 a1 b1 h5log2 a2 b2');
    const results = [
      { program: 'h5log', seconds: 1, part: 1 },
      { program: 'a', seconds: 7, part: 1 },
      { program: 'b', seconds: 4, part: 1 },
    ];
    expect(outcome.comparisons).toEqual([{ id: 'small/x', what: 'x', results }]);
    expect(outcome.figures).toEqual([size(20)]);
  });

  test('refuse a figure that we do not have', async () => {
    const ours = scripted([[{ id: 'small/x', what: 'x', value: 1, unit: 's' }]]);
    await expect(compare(ours, [peerOf('a', 'small/y', [1])], options())).rejects.toThrow('no figure small/y');
  });
});

describe('an external program', () => {
  const ours = (): Workload => scripted([[{ id: 'small/shuffled/write', what: '', value: 0.5, unit: 's' }]]);
  const beside = (command: string) =>
    compare(ours(), [external(command, 'small', 'small/shuffled/write')], options({ scale: 0.25 }));

  test('is one more row', async () => {
    // The folder is its own, and exists.
    const command =
      'test "$H5LOG_BENCH_WORKLOAD $H5LOG_BENCH_SCALE" = "small 0.25" && cd "$H5LOG_BENCH_FOLDER" && echo took 1.5 s';
    const { comparisons } = await beside(command);
    expect(comparisons[0]?.results[1]).toEqual({ program: 'external', seconds: 1.5, part: 1 });
  });

  test('that does not say its seconds is refused', async () => {
    await expect(beside('echo done')).rejects.toThrow('must print its seconds in the last line');
  });

  test('that fails is refused', async () => {
    await expect(beside('echo 1; echo broken >&2; exit 3')).rejects.toThrow('ended with exit code 3: broken');
  });
});

describe('options', () => {
  const [suites, workloadNames] = [['log'], ['small', 'e3sm']];

  test('without any: everything, in full size, with peers', () => {
    expect(readOptions([], suites, workloadNames)).toEqual({
      names: ['log', 'small', 'e3sm'],
      withPeers: true,
      full: false,
      scale: 1,
      external: undefined,
      json: false,
      chart: undefined,
    });
  });

  test('all of them', () => {
    const args = ['small', '--no-peers', '--full', '--scale', '0.1', '--external', 'x', '--json', '--chart', 'c.svg'];
    expect(readOptions(args, suites, workloadNames)).toEqual({
      names: ['small'],
      withPeers: false,
      full: true,
      scale: 0.1,
      external: 'x',
      json: true,
      chart: 'c.svg',
    });
  });

  test.each([
    [['smal'], 'there is no smal; there are log, small, e3sm'],
    [['--scale', '0'], '--scale is a number above 0, up to 1, not 0'],
    [['--scale', 'much'], 'not much'],
    [['--external', 'x'], 'name it, and no other'],
    [['small', 'log', '--external', 'x'], 'name it, and no other'],
    [['e3sm', '--external', 'x'], 'not for e3sm'],
    [['log', '--external', 'x'], 'log is a suite'],
    [['small', '--quick'], "Unknown option '--quick'"],
  ])('%j is refused', (args, message) => {
    expect(() => readOptions(args, suites, workloadNames)).toThrow(message);
  });
});
