import { beforeEach, describe, expect, test } from 'vitest';
import { byLayout, isLayoutDrawn, reportLayouts } from '../../bench/layouts.ts';
import { figures } from '../../bench/report.ts';
import type { Comparison } from '../../bench/table.ts';

const figure = (id: string, what: string, seconds: number): Comparison => ({
  id: `layouts/many/1/${id}`,
  what,
  results: [{ program: 'h5log', seconds, part: 1 }],
});

const measured = [
  figure('shared', '500 datasets, 1 thread, shared: post', 1),
  figure('shared/open-first', 'open and first read', 50),
  figure('dataset-classic', '500 datasets, 1 thread, dataset, classic: post', 3),
  figure('dataset-classic/open-first', 'open and first read', 2),
  figure('dataset', '500 datasets, 1 thread, dataset: post', 2),
  figure('dataset/open-first', 'open and first read', 2),
];

describe('layouts beside each other', () => {
  beforeEach(() => {
    figures.length = 0;
  });

  test('what was measured, with the seconds of every layout', () => {
    const results = (...seconds: [string, number][]) =>
      seconds.map(([program, value]) => ({ program, seconds: value, part: 1 }));
    expect(byLayout(measured)).toEqual([
      {
        id: 'layouts/many/1/post',
        what: '500 datasets, 1 thread: post',
        results: results(['shared', 1], ['dataset, classic', 3], ['dataset', 2]),
      },
      {
        id: 'layouts/many/1/open-first',
        what: '500 datasets, 1 thread: open and first read',
        results: results(['shared', 50], ['dataset, classic', 2], ['dataset', 2]),
      },
    ]);
    expect(byLayout(measured).every(({ id }) => isLayoutDrawn(id))).toBe(true);
    expect(isLayoutDrawn('layouts/many/1/first')).toBe(false);
  });

  test('a little of one dataset: 20 times as fast with a log for each', () => {
    reportLayouts(byLayout(measured));
    expect(figures.map(({ value, least }) => [value, least])).toEqual([[25, 20]]);
  });
});
