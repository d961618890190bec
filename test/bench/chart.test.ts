import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chart } from '../../bench/chart.ts';
import type { Comparison } from '../../bench/table.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';

const comparisons: Comparison[] = [
  {
    id: 'a',
    what: 'Write "rows" & <more>',
    results: [
      { program: 'h5log', seconds: 0.1, part: 1 },
      { program: 'h5py', seconds: 10, part: 0.02 },
      { program: 'plain fs', seconds: 0.01, part: 1 },
    ],
  },
  {
    id: 'b',
    what: 'On ranks',
    results: [
      { program: 'h5log threads', seconds: 1, part: 1, cold: 2 },
      { program: 'h5log MPICH', seconds: 1.5, part: 1 },
    ],
  },
];

const drawn = chart(comparisons, { title: 'Ours & others', note: 'shorter < longer' });

function widths(svg: string): number[] {
  return [...svg.matchAll(/<rect[^>]* width="([\d.]+)"/g)].map(([, width]) => Number(width));
}

describe('a chart', () => {
  test('has bars as long as the logarithm of their seconds', () => {
    const [ours, slow, fast, threads, mpich] = widths(drawn) as [number, number, number, number, number];
    // From 10 ms, where the scale begins, to 10 s: three powers of ten.
    expect(fast).toBe(2);
    expect(slow).toBe(370);
    expect(ours).toBeCloseTo(370 / 3, 0);
    expect(threads).toBeCloseTo((370 * 2) / 3, 0);
    expect(mpich).toBeCloseTo((370 * (2 + Math.log10(1.5))) / 3, 0);
  });

  test('names programs, seconds, ratios and what was scaled up', () => {
    for (const text of ['>h5py<', '10.0 s, 100x slower', '(of 2 %)', '0.0100 s, 0.1x', '(cold 2.00 s)', '>100 ms<'])
      expect(drawn).toContain(text);
  });

  test('shows ours in another colour than theirs', () => {
    expect([...drawn.matchAll(/<rect class="(\w+)"/g)].map(([, kind]) => kind)).toEqual([
      'ours',
      'peer',
      'peer',
      'ours',
      'ours',
    ]);
  });

  test('is for dark backgrounds and screen readers too', () => {
    expect(drawn).toContain('prefers-color-scheme: dark');
    expect(drawn).toMatch(/<title id="title">Ours &#38; others<\/title>/);
    expect(drawn).toMatch(
      /<desc id="desc">Write &#34;rows&#34; &#38; &#60;more&#62;: h5log 0.100 s; h5py 10.0 s \(100x slower\)/,
    );
  });

  test('draws one time too', () => {
    const [one] = comparisons as [Comparison];
    const svg = chart([{ ...one, results: [{ program: 'h5log', seconds: 1, part: 1 }] }], { title: '', note: '' });
    expect(widths(svg)).toEqual([2]);
    expect(svg).not.toMatch(/NaN|Infinity/);
  });

  withOracle('python', 'an XML parser', () => {
    test('reads it', () => {
      const path = join(temporaryDirectory(), 'chart.svg');
      writeFileSync(path, drawn);
      const script =
        'import sys, xml.etree.ElementTree as tree; root = tree.parse(sys.argv[1]).getroot(); ' +
        "print(root.tag, root.find('{*}title').text, len(root.findall('{*}rect')))";
      expect(pythonSync(script, [path]).trim()).toBe('{http://www.w3.org/2000/svg}svg Ours & others 5');
    });
  });
});
