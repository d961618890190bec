import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DType, File } from 'h5log';
import { plotBlocks, type Stat, stat } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { h5log, intoHead, onTerminal, slow } from '../../cli/command.ts';
import { pythonSync, withOracle } from '../../oracles.ts';
import { folder, misread, readable } from '../../original/fixtures.ts';
import { some } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { classicFile, cutFile, damagedTable, fileOfRanks, regularFile } from '../samples.ts';

const fresh = (name: string): string => join(temporaryDirectory(), name);
const sum = (list: readonly { readonly bytes: number }[]): number =>
  list.reduce((total, { bytes }) => total + bytes, 0);

/** What must hold of every report. */
function checkSums({ datasets, ranks, tables, data, size, structure }: Stat): void {
  expect(data.live + data.dead).toBe(data.bytes);
  expect(data.bytes + structure).toBe(size);
  expect(sum(datasets)).toBe(sum(ranks));
  expect(sum(datasets.map(({ dead }) => ({ bytes: dead })))).toBeLessThanOrEqual(data.dead);
  const { record, ...forms } = tables.forms;
  expect(sum(Object.values(forms)) + tables.header).toBe(tables.bytes);
  expect(record.bytes).toBeLessThanOrEqual(tables.bytes);
  for (const dataset of datasets) {
    expect(sum(dataset.ranks)).toBe(dataset.bytes);
    expect(dataset.overlap).toBeGreaterThanOrEqual(0);
    expect(dataset.dead).toBeGreaterThanOrEqual(0);
    expect(dataset.dead).toBeLessThanOrEqual(dataset.bytes);
  }
}

describe('stat', () => {
  test.each(some([...readable, ...misread.filter((name) => !name.includes('merge'))], 'files to count'))(
    'the sums of %s add up',
    async (name) => {
      const report = await stat(join(folder, name));
      checkSums(report);
      const ranks = Number(/_(\d)r/.exec(name)?.[1]);
      for (const { rank } of report.ranks) {
        expect(rank).toBeGreaterThanOrEqual(0);
        expect(rank).toBeLessThan(ranks);
      }
      if (name.startsWith('flushes')) expect(report.flushes.length).toBeGreaterThan(1);
      if (name.startsWith('overlap')) expect(report.datasets.some(({ overlap }) => overlap > 0)).toBe(true);
      if (name.startsWith('subfile')) expect(report.ranks.map(({ rank }) => rank)).toEqual([...Array(ranks).keys()]);
    },
  );

  test('ranks and flushes are those that wrote, also in subfiles', slow, async () => {
    const [one, several] = [await stat(await fileOfRanks(4)), await stat(await fileOfRanks(4, 2))];
    for (const report of [one, several]) {
      checkSums(report);
      expect(report.ranks.map(({ rank }) => rank)).toEqual([0, 1, 2, 3]);
      expect(report.requests).toBeGreaterThan(0);
      expect(report.flushes.map(({ sequence }) => sequence)).toEqual(one.flushes.map(({ sequence }) => sequence));
      expect(report.flushes.every(({ time }) => !Number.isNaN(Date.parse(time ?? '')))).toBe(true);
    }
    expect([one.subfiles, several.subfiles]).toEqual([0, 2]);
    const facts = ({ datasets, ranks }: Stat) => ({
      ranks,
      datasets: datasets.map(({ path, entries, blocks, bytes, overlap, dead }) => ({
        path,
        entries,
        blocks,
        bytes,
        overlap,
        dead,
      })),
    });
    expect(facts(several)).toEqual(facts(one));
    // Tiles of 6 rows with halos of 2, six times: 4 ranks of 40 columns of float64.
    const field = one.datasets.find(({ path }) => path === '/run/field');
    expect(field).toMatchObject({
      bytes: 6 * 8 * 40 * (8 + 10 + 10 + 8),
      overlap: 6 * 8 * 40 * 12,
      dead: 6 * 8 * 40 * 12,
    });
    expect(field?.ranks.map(({ bytes }) => bytes)).toEqual([8, 10, 10, 8].map((rows) => 6 * 8 * 40 * rows));
    expect(one.flushes.reduce((total, { data }) => total + data, 0)).toBe(one.data.bytes);
  });

  test('dead bytes: overwritten, cut off, deleted', async () => {
    const path = fresh('dead.h5');
    const file = await File.create(path, { publish: 'never' });
    const a = file.createDataset('/a', { dtype: 'int32', shape: [100], maxShape: [null] });
    file.createDataset('/b', { dtype: 'int8', shape: [1000] }).write(new Int8Array(1000));
    const packed = file.createDataset('/packed', {
      dtype: 'int32',
      shape: [64],
      chunks: [16],
      filters: [{ deflate: 1 }],
    });
    a.write(new Int32Array(100));
    packed.write(Int32Array.from({ length: 64 }, (_, i) => i * i * 77_777));
    await file.flush();
    a.write(new Int32Array(30), { start: [10], count: [30] });
    packed.write(
      Int32Array.from({ length: 16 }, (_, i) => i * i * 99_999),
      { start: [16], count: [16] },
    );
    await file.flush();
    const before = await stat(path);
    checkSums(before);
    expect(before.datasets.map(({ path: name, overlap, outside }) => [name, overlap, outside])).toEqual([
      ['/a', 120, 0],
      ['/b', 0, 0],
      ['/packed', 64, 0],
    ]);
    // One of four streams is not read any more.
    const stream = before.datasets[2]?.dead ?? 0;
    expect(stream).toBeGreaterThan(16);
    expect(before.data.dead).toBe(120 + stream);
    a.resize([50]);
    file.delete('/b');
    await file.close();
    const after = await stat(path);
    expect(after.datasets[0]).toMatchObject({ overlap: 120, outside: 200, dead: 320 });
    expect(after.data).toEqual({
      bytes: before.data.bytes,
      live: before.data.live - 200 - 1000,
      dead: before.data.dead + 1200,
    });
    expect((await stat(path, { dataset: '/a' })).datasets).toEqual([after.datasets[0]]);
  });

  test('forms of entries', async () => {
    const forms = async (options: object): Promise<string[]> => {
      const path = fresh('forms.h5');
      const file = await File.create(path, { table: options });
      const [a, b] = ['/a', '/b'].map((name) => file.createDataset(name, { dtype: 'int8', shape: [300, 40] }));
      for (const dataset of [a, b])
        for (let i = 0; i < 300; i += 2) dataset?.write(new Int8Array(3), { start: [i, (i * 7) % 37], count: [1, 3] });
      await file.close();
      const { tables } = await stat(path);
      return Object.entries(tables.forms).flatMap(([form, { entries }]) => (entries > 0 ? [form] : []));
    };
    expect(await forms({ merge: false, encode: false, share: false, compress: false })).toEqual(['single']);
    expect(await forms({ encode: false, share: false, compress: false })).toEqual(['multi']);
    expect(await forms({ share: false, compress: false })).toEqual(['encoded']);
    expect(await forms({ share: false })).toEqual(['compressed']);
    expect(await forms({})).toEqual(['compressed', 'reference']);
  });
});

/** What an SVG consists of, after an XML parser has read it. */
function parsed(svg: string): { rects: number; titles: number; text: string; style: string } {
  const script = `
import sys, json, xml.etree.ElementTree as E
root = E.fromstring(sys.stdin.buffer.read().decode())
n = '{http://www.w3.org/2000/svg}'
inner = root.find(n + 'svg')
print(json.dumps({'rects': len(inner.findall(n + 'rect')), 'titles': len(inner.findall(n + 'rect/' + n + 'title')),
  'text': ' | '.join(t.text or '' for t in root.iter(n + 'text')), 'style': root.find(n + 'style').text}))`;
  return JSON.parse(pythonSync(script, [], svg));
}

withOracle('python', 'plots', () => {
  test('have a rectangle a block, a legend, and colours for light and dark', slow, async () => {
    const path = await fileOfRanks(4, 2);
    const { svg, blocks, dataset } = await plotBlocks(path, { dataset: '/run/packed', by: 'rank' });
    expect(dataset).toBe('/run/packed');
    const { rects, titles, text, style } = parsed(svg);
    expect([rects, titles]).toEqual([blocks, blocks]);
    expect(text).toMatch(/rank 0 \| rank 1 \| rank 2 \| rank 3/);
    expect(style).toContain('prefers-color-scheme: dark');
    const flushes = await plotBlocks(path, { dataset: '/run/packed', by: 'flush' });
    expect(parsed(flushes.svg).text).toMatch(/flush 1 \| flush 3 \| flush 5/);
    for (const name of ['/total', '/run/scattered', '/run/field', '/run/_names'])
      expect(parsed((await plotBlocks(path, { dataset: name })).svg).rects).toBeGreaterThan(0);
  });

  test('of very many blocks stay small; names are escaped', slow, async () => {
    const path = fresh('many.h5');
    const file = await File.create(path);
    const d = file.createDataset('/a <b> & "c"', { dtype: 'int8', shape: [2000, 2000] });
    for (let i = 0; i < 30_000; i++)
      d.write(new Int8Array(4), { start: [(i * 37) % 1998, (i * 91) % 1998], count: [2, 2] });
    await file.close();
    const { svg, blocks } = await plotBlocks(path);
    expect(blocks).toBe(30_000);
    const { rects, text } = parsed(svg);
    expect(rects).toBeGreaterThan(1000);
    expect(svg.length).toBeLessThan(6e6);
    expect(text).toContain('many.h5 /a <b> & "c"');
  });
});

describe('h5log stat', () => {
  test('text, --json, --plot', slow, async () => {
    const path = join(folder, 'overlap_rank_2r.h5');
    const { stdout, code, stderr } = await h5log('stat', path);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^dataset +shape +type +entries +blocks +bytes +overlap +dead$/m);
    expect(stdout).toMatch(/^rank 1 +\d+ +\d+ +\d+$/m);
    const json = await h5log('stat', '--json', path);
    expect(JSON.parse(json.stdout)).toEqual(JSON.parse(JSON.stringify(await stat(path))));
    const out = fresh('blocks.svg');
    const plot = await h5log('stat', '--plot', out, '--by', 'flush', path);
    expect(plot.stdout).toBe(`${stdout}plot        ${out}\n`);
    expect(readFileSync(out, 'utf8')).toMatch(/^<svg [\s\S]*<\/svg>\n$/);
    const bad = await h5log('stat', '--plot', join(out, 'nowhere.svg'), path);
    expect(bad.stderr).toMatch(/^h5log: STORAGE: .*nowhere\.svg cannot be written: .*\n$/);
    expect(bad.code).toBe(2);
  });

  test('flushes over time: at most sixteen lines, all of them with -v', slow, async () => {
    const path = fresh('flushes.h5');
    const file = await File.create(path, { publish: 'never' });
    const d = file.createDataset('/d', { dtype: 'int8' as DType, shape: [100] });
    for (let i = 0; i < 99; i++) {
      d.write([i], { start: [i], count: [1] });
      await file.flush();
    }
    await file.close();
    const lines = (text: string): number => text.slice(text.indexOf('\nflush ')).trim().split('\n').length - 1;
    expect(lines((await h5log('stat', path)).stdout)).toBe(15); // seven flushes a line
    expect(lines((await h5log('stat', '-v', path)).stdout)).toBe(100);
  });

  test('says in one line what is wrong', slow, async () => {
    for (const [args, line] of [
      [['missing.h5'], /^h5log: NOT_FOUND: missing\.h5 does not exist\n$/],
      [[await damagedTable()], /^h5log: FORMAT: .*\n$/],
      [[cutFile()], /^h5log: FORMAT: .*\n$/],
      [[classicFile()], /^h5log: UNSUPPORTED: .* is NetCDF classic, not HDF5\n$/],
      [['-d', '/nothing', join(folder, 'mix_1r.h5')], /^h5log: NOT_FOUND: there is no dataset \/nothing\n$/],
      [['--by', 'colour', 'a.h5'], /^h5log: OPTION: --by is rank or flush, not colour; .*\n$/],
    ] as const) {
      const { code, stdout, stderr } = await h5log('stat', ...args);
      expect(stderr).toMatch(line);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    }
  });

  test('ends quietly when nobody reads on', slow, async () => {
    const { code, stderr } = await intoHead(1, 'stat', '-v', join(folder, 'types_2r.h5'));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });
});

withOracle('python', 'h5log stat elsewhere', () => {
  test('a regular file is counted by dataset', slow, async () => {
    const path = regularFile();
    const { code, stdout } = await h5log('stat', path);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /regular\.h5: .*, no log\ndata .*\nstructure .*\n\ndataset +shape +type +layout +chunks +bytes +of\n/,
    );
    expect(stdout).toMatch(/^\/chunked +10 x 12 +float32 +chunked +4 +\d+ +480$/m);
    const { ordinary, datasets, size, data, structure } = await stat(path, { dataset: 'grid' });
    expect(datasets).toEqual([]);
    expect(ordinary).toEqual([
      { path: '/grid', dtype: 'int32', shape: [3, 4, 5], layout: 'contiguous', bytes: 240, size: 240 },
    ]);
    expect(data.bytes + structure).toBe(size);
    const plotted = await h5log('stat', '--plot', fresh('plot.svg'), path);
    expect(plotted.stderr).toMatch(/^h5log: UNSUPPORTED: .*regular\.h5 has no log to count in\n$/);
  });

  test('a terminal gets what a pipe gets', slow, async () => {
    const path = join(folder, 'mix_2r.h5');
    const [terminal, pipe] = [await onTerminal(['stat', path]), await h5log('stat', path)];
    expect(terminal.stdout.replaceAll('\r', '')).toBe(pipe.stdout);
  });
});

describe('stat of a published file', () => {
  test('what is shared with the log, what was copied, and which copies are dead', slow, async () => {
    const path = fresh('published.h5');
    const file = File.createSync(path, { publish: 'flush' });
    // Chunks as they were posted: the layout points into the log.
    const whole = file.createDataset('whole', {
      dtype: 'float64',
      shape: [0, 100],
      maxShape: [null, 100],
      chunks: [10, 100],
    });
    // Half a chunk with each flush: copied, and copied again when the other half is there.
    const halves = file.createDataset('halves', { dtype: 'int32', shape: [0], maxShape: [null], chunks: [100] });
    for (let i = 0; i < 4; i++) {
      whole.append(new Float64Array(1000).fill(i));
      halves.append(new Int32Array(50).fill(i));
      file.flushSync();
    }
    file.createDataset('later', { dtype: 'int8', shape: [3] });
    file.closeSync();
    const report = await stat(path);
    checkSums(report);
    const { sequence } = report.flushes.at(-1) as { sequence: number };
    expect(report.published).toEqual({ sequence, shared: 32_000, copied: 800, dead: 800 });
    const [first, second, third] = report.datasets;
    expect(first?.published).toEqual({ sequence: sequence - 1, way: 'chunked', shared: 32_000, copied: 0 });
    expect(second?.published).toEqual({ sequence: sequence - 1, way: 'copied', shared: 0, copied: 800 });
    expect(third?.published).toMatchObject({ way: 'empty', shared: 0, copied: 0 });
    expect(report.data).toEqual({ bytes: 32_000 + 800 + 1600, live: 32_000 + 800 + 800, dead: 800 });
    const { stdout } = await h5log('stat', path);
    expect(stdout).toMatch(
      /^published +commit \d+: 32\.0 kB shared with the log, 800 B copied, 800 B of older copies dead$/m,
    );
    expect(stdout).toMatch(/^\/halves .* \d+, copied$/m);
    const listed = await h5log('ls', '-v', path);
    expect(listed.stdout).toMatch(/^ +published {2}commit \d+, chunked$/m);
    const facts = JSON.parse((await h5log('ls', '--json', path)).stdout) as Record<string, unknown>;
    expect(facts).toMatchObject({
      published: sequence,
      objects: [{ path: '/whole', log: { published: { way: 'chunked' } } }, {}, {}],
    });
  });

  test('a log that was never published says so', slow, async () => {
    const path = fresh('never.h5');
    const file = File.createSync(path, { publish: 'never' });
    file.createDataset('x', { dtype: 'int8', shape: [1] }).write([1]);
    file.closeSync();
    const report = await stat(path);
    expect([report.published, report.datasets[0]?.published]).toEqual([null, null]);
    expect((await h5log('stat', path)).stdout).not.toContain('published');
    expect((await h5log('ls', '-v', path)).stdout).toContain('never: other programs see no data');
  });
});
