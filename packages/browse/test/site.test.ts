import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../../../test/temporary.ts';
import { buildSite } from '../scripts/build.ts';

const site = temporaryDirectory();
const read = (name: string): string => readFileSync(join(site, name), 'utf8');

beforeAll(() => buildSite(site), 120_000);

describe('the static site', () => {
  test('consists of five files, and asks nobody else for anything', () => {
    expect(readdirSync(site).sort()).toEqual(['app.css', 'app.js', 'index.html', 'licenses.txt', 'worker.js']);
    const loaded = [...read('index.html').matchAll(/(?:src|href)="([^"]*)"/g)].map(([, to]) => to);
    expect(loaded).toEqual(['data:,', 'app.css', 'app.js']);
    expect(read('app.css')).not.toMatch(/@import|url\((?!["']?data:)/);
  });

  test('compiles no code while it runs, so that its policy forbids that', () => {
    for (const name of ['app.js', 'worker.js']) expect(read(name)).not.toMatch(/\bnew Function\(|[^.\w]eval\(/);
    expect(read('index.html')).toContain("script-src 'self';");
    expect(read('index.html')).not.toContain('unsafe');
  });

  test('names the license of every package in it, with its text, and all of them allow that', () => {
    const text = read('licenses.txt');
    const packages = [...text.matchAll(/^(\S+) \d\S* \(([^)]*)\)$/gm)].map(([, name, license]) => ({ name, license }));
    for (const name of ['@h5web/app', '@h5web/lib', 'react', 'react-dom', 'three', 'zustand', 'd3-format'])
      expect(packages.map((each) => each.name)).toContain(name);
    expect(packages.map((each) => each.name)).not.toContain('ndarray');
    expect(
      packages.filter(({ license }) => !/^(MIT|ISC|BSD-[23]-Clause|Apache-2\.0|0BSD|MIT and ISC)$/.test(license ?? '')),
    ).toEqual([]);
    expect(text).toContain('Permission is hereby granted');
    expect(text).not.toContain('has no text of it');
  });

  test('is not larger than it was', () => {
    const gzip = (name: string): number => gzipSync(readFileSync(join(site, name)), { level: 9 }).length;
    const [app, worker] = [gzip('app.js'), gzip('worker.js')];
    console.log(`page: ${statSync(join(site, 'app.js')).size} bytes, ${app} gzip; worker: ${worker} gzip`);
    expect(app).toBeLessThan(450_000);
    expect(worker).toBeLessThan(192_500);
  });
});
