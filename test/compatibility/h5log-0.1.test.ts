import { cpSync, existsSync, readdirSync, readFileSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { list, verify } from 'h5log/tools';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Description, h5pyDescribes } from '../interop/describe.ts';
import { h5dump, withOracle } from '../oracles.ts';
import { runRanks } from '../parallel/run-ranks.ts';
import { temporaryDirectory } from '../temporary.ts';
import { contentsOf, PIECES, read, readAsync } from './contents.ts';
import { type Expected, expectedOf, folder, names } from './expected.ts';
import { type DatasetState, Model, type State } from './model.ts';
import { type Place, positions, positionsOfMany, whereOf } from './places.ts';
import { type CommitFacts, runSession } from './rank.ts';
import { type PlannedSession, Script } from './script.ts';
import { seenByH5py, withoutLog } from './seen-by-h5py.ts';
import { type Json, jsonList } from './types.ts';

// Files that h5log 0.1.0 wrote, each with its contents: every later version reads them and appends to them.

interface Fixture {
  readonly name: string;
  readonly expected: Expected;
}

const fixtures: readonly Fixture[] = names.map((name) => ({ name, expected: expectedOf(name) }));
const logs = fixtures.filter(({ expected }) => expected.kind === 'log');
const subfilesOf = (path: string): string => `${path}.subfiles`;
const at = (name: string): string => join(folder, `${name}.h5`);
const hasSubfiles = ({ name }: Fixture): boolean => existsSync(subfilesOf(at(name)));

const lastState = ({ states, sequence }: Expected): State => states[sequence] as State;
const datasetsIn = (state: State): [string, DatasetState][] =>
  Object.entries(state).filter((entry): entry is [string, DatasetState] => !('links' in entry[1]));

/** A copy of a fixture, as it was when it was written: one that was open has zeros behind its last commit. */
function copyOf({ name, expected }: Fixture): string {
  const to = join(temporaryDirectory(), `${name}.h5`);
  cpSync(at(name), to);
  if (existsSync(subfilesOf(at(name)))) cpSync(subfilesOf(at(name)), subfilesOf(to), { recursive: true });
  if (expected.openSize !== undefined) truncateSync(to, expected.openSize);
  return to;
}

// Blocking reads of ordinary datasets work once an asynchronous one has loaded what they need.
beforeAll(async () => {
  const file = await File.open(at('sealed'));
  await file.dataset('/contiguous').read();
  await file.close();
});

function expectContents(path: string, state: State, options: { asOf?: number } = {}): void {
  const file = File.openSync(path, options);
  const meant = contentsOf(state);
  expect(read(file, meant)).toEqual(meant);
  file.closeSync();
}

test('there are fixtures, at most 1 MB of them', () => {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const data = files.filter(({ name }) => !/\.(ts|md)$/.test(name));
  const sizes = data.map((entry) => statSync(join(entry.parentPath, entry.name)).size);
  expect(fixtures.length).toBe(37);
  expect(sizes.reduce((a, b) => a + b, 0)).toBeLessThan(2 ** 20);
});

/** Damage in no commit, and all commits up to the last one are looked at. */
async function expectSound(path: string, sequence: number | null, checksums: boolean): Promise<void> {
  const { sound, problems, commits, newestSound, checksums: hasSums } = await verify(path);
  expect(problems).toEqual([]);
  expect(sound).toBe(true);
  expect({ newestSound, hasSums }).toEqual({ newestSound: sequence, hasSums: checksums });
  expect(commits.map((commit) => commit.good)).toEqual(commits.map(() => true));
  expect(commits.at(-1)?.sequence ?? null).toBe(sequence);
}

/** All links below the root as `list` gives them; an object that was listed before is only named. */
function linksIn(state: State): unknown[] {
  const listed: unknown[] = [];
  const seen = new Map<string, string>();
  const visit = (path: string, key: string): void => {
    const object = state[key];
    const kind = object && 'links' in object ? 'group' : 'dataset';
    const before = seen.get(key);
    listed.push({ path, kind, ...(before === undefined ? {} : { sameAs: before }) });
    if (before !== undefined || !object || !('links' in object)) {
      seen.set(key, before ?? path);
      return;
    }
    seen.set(key, path);
    for (const link of object.links) {
      const below = `${path === '/' ? '' : path}/${link.name}`;
      if ('to' in link) visit(below, link.to);
      else if ('soft' in link) listed.push({ path: below, kind: 'soft link', target: link.soft });
      else {
        const [targetFile, target] = link.external;
        listed.push({ path: below, kind: 'external link', target, targetFile });
      }
    }
  };
  visit('/', '/');
  return listed;
}

describe.each(fixtures)('$name', (fixture) => {
  const { name, expected } = fixture;
  const path = at(name);
  const state = lastState(expected);

  test('blocking calls read what was written', () => {
    expectContents(path, state);
  });

  test('asynchronous calls read what was written', async () => {
    const meant = contentsOf(state);
    const file = await File.open(path);
    expect(await readAsync(file, meant)).toEqual(meant);
    await file.close();
    if (expected.kind !== 'log' || expected.ordinary || hasSubfiles(fixture)) return;
    const inMemory = await File.open(new Blob([readFileSync(path)]));
    expect(await readAsync(inMemory, meant)).toEqual(meant);
    await inMemory.close();
  });

  test('parts of datasets are read as well', async () => {
    const file = await File.open(path);
    let elements = 0;
    for (const [where, { dtype, shape, values }] of datasetsIn(state)) {
      if (values.length < 2) continue;
      const dataset = file.dataset(where);
      const rows = shape.map((n, d) => Math.min(n, 1 + (d % 2)));
      const parts: Place[] = [
        { start: shape.map((n) => Math.floor(n / 3)), count: shape.map((n) => n - Math.floor(n / 3)) },
        { start: shape.map((n) => (n > 1 ? 1 : 0)), stride: shape.map(() => 2) },
        { points: [shape.map((n) => n - 1), shape.map(() => 0), shape.map((n) => n >> 1)] },
      ];
      for (const part of parts) {
        const meant = positions(part, shape).map((position) => values[position] as Json);
        const [seen, later] = [dataset.readSync(whereOf(part)), await dataset.read(whereOf(part))];
        expect(jsonList(dtype, seen as ArrayLike<unknown>), `${where} ${JSON.stringify(part)}`).toEqual(meant);
        expect(jsonList(dtype, later as ArrayLike<unknown>), `${where} ${JSON.stringify(part)}`).toEqual(meant);
        elements += meant.length;
      }
      const starts = [...shape.map((n, d) => n - (rows[d] as number)), ...shape.map(() => 0)];
      const meant = positionsOfMany(starts, rows, shape).map((position) => values[position] as Json);
      expect(jsonList(dtype, dataset.readManySync(starts, rows) as ArrayLike<unknown>), where).toEqual(meant);
    }
    await file.close();
    expect(elements).toBeGreaterThan(0);
  });

  test('links are what they were', async () => {
    const { objects } = await list(path, { recursive: true });
    const users = objects.filter((object) => object.path.split('/')[1] !== PIECES);
    const seen = users.map(({ path: where, kind, target, targetFile, sameAs }) => ({
      ...{ path: where, kind, target, targetFile, sameAs },
    }));
    expect(seen).toEqual(linksIn(state));
  });

  test('verify finds nothing wrong', async () => {
    await expectSound(
      path,
      expected.kind === 'log' ? expected.sequence : null,
      expected.kind === 'log' && name !== 'no-checksum',
    );
  });

  // Once a file has a log, ordinary objects whose names begin with an underscore are taken for its own.
  if (name === 'sealed-names') return;
  test('it can be appended to', async () => {
    await expectAppended(fixture, copyOf(fixture), 1);
  });
});

describe.each(fixtures.filter(({ expected }) => expected.kind === 'ordinary'))('$name', (fixture) => {
  test('its datasets can be written', async () => {
    const path = copyOf(fixture);
    const state = lastState(fixture.expected);
    const script = new Script(new Model(state)).append();
    for (const [where, { shape, maxShape }] of datasetsIn(state)) {
      // libhdf5 refuses to write to a virtual dataset where it has no source.
      if (fixture.name === 'sealed' && where === '/virtual') continue;
      if (maxShape[0] === null) script.resize(where, [(shape[0] as number) + 2, ...shape.slice(1)]);
      const middle = script.model.dataset(where).shape.map((n) => n >> 1);
      script.write(where, 700, middle.length === 0 ? undefined : { start: middle });
    }
    runSession({ path, steps: script.sessions[0]?.steps ?? [] });
    expectContents(path, script.model.state());
    const { sound, problems } = await verify(path);
    expect({ sound, problems }).toEqual({ sound: true, problems: [] });
  });
});

describe.each(logs)('$name', (fixture) => {
  const { name, expected } = fixture;

  test('earlier states are still there', () => {
    for (const [sequence, state] of Object.entries(expected.states)) {
      expectContents(at(name), state, { asOf: Number(sequence) });
    }
  });

  test('its commits are listed', () => {
    const file = File.openSync(at(name));
    const commits = file.commits();
    expect(file.sequence).toBe(expected.sequence);
    expect(commits.at(-1)?.sequence).toBe(expected.sequence);
    const bySequence = new Map(commits.map((commit) => [commit.sequence, commit]));
    for (const { sequence, time, requests, bytes } of expected.commits) {
      // Of a commit with subfiles the file itself knows only the bytes in it.
      const size = hasSubfiles(fixture) ? {} : { bytes };
      expect(bySequence.get(sequence)).toMatchObject({ sequence, time: new Date(time), requests, ...size });
    }
    file.closeSync();
  });
});

/**
 * What is appended to every fixture: new rows where there may be any, changes in the middle, a dataset that shrinks and grows, a
 * group, a link, attributes; in five flushes. Of several ranks every one writes something.
 */
function appendix(state: State, ranks: number, mayWrite: (path: string) => boolean): Script {
  const script = new Script(new Model(state)).append(ranks);
  const by = (number: number): { rank?: number } => (ranks === 1 ? {} : { rank: number % ranks });
  const datasets = datasetsIn(state).filter(([path]) => mayWrite(path));
  script.group('/appended/group').attribute('/', 'appended', 'int32', [2], 1);
  script.add({ do: 'soft link', path: '/appended/link', target: '/appended/new' });
  const more = { maxShape: [null, 4], chunks: [2, 3], filters: ['shuffle', { deflate: 5 }] as const, fill: -3 };
  script.dataset('/appended/new', 'int32', [3, 4], more).flush();
  for (const [path, { shape, maxShape }] of datasets) {
    const grown = shape.map((n, d) => Math.min(n + 2, maxShape[d] === null ? n + 2 : (maxShape[d] as number)));
    if (grown.some((n, d) => n > (shape[d] as number))) script.resize(path, grown);
    script.attribute(path, 'appended', { string: 'variable', pad: 'zero', charset: 'utf8' }, [], [`to ${path}`]);
  }
  for (const [i, [path]] of datasets.entries()) {
    const middle = script.model.dataset(path).shape.map((n) => n >> 1);
    script.write(path, 500 + i, middle.length === 0 ? undefined : { start: middle }, by(i));
  }
  script.write('/appended/new', 7, { start: [1, 1], count: [2, 2] }, by(1)).flush();
  for (const [i, [path]] of datasets.entries()) {
    const { shape } = script.model.dataset(path);
    if (!shape.includes(0) && shape.length > 0)
      script.write(path, 900 + i, { points: [shape.map(() => 0)] }, by(i + 1));
  }
  script.write('/appended/new', 9, { start: [0, 0], count: [1, 4] }, by(2)).flush();
  script.resize('/appended/new', [2, 4]).flush();
  return script
    .resize('/appended/new', [5, 4])
    .write('/appended/new', 8, { start: [4, 0], count: [1, 4] }, by(0))
    .flush();
}

/** Where h5py shall look afterwards. */
const appendedFiles: { path: string; state: State; ordinary: readonly string[]; isDoubled: boolean }[] = [];

async function expectAppended({ expected }: Fixture, path: string, ranks: number): Promise<void> {
  const state = lastState(expected);
  const ordinary = expected.ordinary ?? (expected.kind === 'ordinary' ? datasetsIn(state).map(([each]) => each) : []);
  const script = appendix(state, ranks, (each) => !ordinary.includes(each));
  const { ranks: _, ...session } = script.sessions[0] as PlannedSession;
  const commits =
    ranks === 1
      ? runSession({ path, ...session })
      : ((await runRanks<CommitFacts[]>(ranks, new URL('./rank.ts', import.meta.url), { path, ...session }))[0] ?? []);
  const isLog = expected.kind === 'log';
  const first = isLog ? expected.sequence + 1 : 1;
  const now = script.model.state();
  expectContents(path, now);
  for (const [sequence, before] of Object.entries(expected.kind === 'log' ? expected.states : {})) {
    expectContents(path, before, { asOf: Number(sequence) });
  }
  expect(commits.map(({ sequence }) => sequence)).toEqual([0, 1, 2, 3, 4].map((n) => first + n));
  // What is made in an ordinary file is ordinary.
  await expectSound(path, isLog ? first + 4 : null, isLog);
  appendedFiles.push({
    path,
    state: now,
    ordinary: isLog ? ordinary : [...ordinary, '/appended/new'],
    isDoubled: isLog,
  });
}

describe.each(fixtures.filter(({ name }) => /^(ranks|subfiles|tiers|unclosed)/.test(name)))('$name', (fixture) => {
  // Two ranks share the subfiles of four; three are more than there are subfiles.
  test.each(hasSubfiles(fixture) ? [2, 3] : [2])('%i ranks can append to it', async (ranks) => {
    await expectAppended(fixture, copyOf(fixture), ranks);
  });
});

describe.each(fixtures.filter(({ expected }) => expected.openSize !== undefined))('$name', (fixture) => {
  test('is read with the zeros behind it', () => {
    expectContents(copyOf(fixture), lastState(fixture.expected));
  });
});

withOracle(['python', 'h5dump'], 'what h5py and h5dump see of files of h5log 0.1', () => {
  test('the fixtures are as they must be for h5py', () => {
    const seen = h5pyDescribes(names.map(at));
    for (const [i, { name, expected }] of fixtures.entries()) {
      const isLog = expected.kind === 'log';
      const isLogged = (path: string): boolean => isLog && !expected.ordinary?.includes(path);
      expect(withoutLog(seen[i] as Description, isLog), name).toEqual(seenByH5py(lastState(expected), isLogged, isLog));
    }
  }, 180_000);

  test('and after they were appended to', () => {
    expect(appendedFiles.length).toBeGreaterThan(fixtures.length);
    const seen = h5pyDescribes(appendedFiles.map(({ path }) => path));
    for (const [i, { path, state, ordinary, isDoubled }] of appendedFiles.entries()) {
      const meant = seenByH5py(state, (each) => !ordinary.includes(each), isDoubled);
      expect(withoutLog(seen[i] as Description, true), path).toEqual(meant);
    }
  }, 180_000);

  test('h5dump opens them', () => {
    for (const path of [...names.map(at), ...appendedFiles.map((file) => file.path)]) {
      expect(h5dump('-H', path)).toContain(`HDF5 "${path}"`);
    }
  }, 180_000);
});
