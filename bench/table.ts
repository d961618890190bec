import { counted } from '../src/cli/print.ts';

/** How long one program took for something. */
export interface Result {
  readonly program: string;
  readonly seconds: number;
  /** Which part of the work it did; seconds are those of all of it. */
  readonly part: number;
  /** It was ended after that time. */
  readonly unfinished?: boolean;
  /** The first time in a process, where the others are those of later ones. */
  readonly cold?: number;
  readonly remark?: string;
}

/** Several programs that did the same, ours first. */
export interface Comparison {
  readonly id: string;
  readonly what: string;
  readonly results: readonly [Result, ...Result[]];
}

/** How long a program took for what takes us 1. */
export function ratioOf({ results: [ours] }: Comparison, { seconds }: Result): number {
  return seconds / ours.seconds;
}

/** 41x slower, 0.9x. */
export function ratioText(ratio: number): string {
  if (ratio >= 9.95) return `${counted(Number(ratio.toPrecision(3)))}x slower`;
  const shown = ratio >= 0.095 ? ratio.toFixed(1) : ratio.toPrecision(1);
  return Number(shown) > 1 ? `${shown}x slower` : `${shown}x`;
}

export function secondsText({ seconds, unfinished }: Pick<Result, 'seconds' | 'unfinished'>): string {
  const shown = seconds >= 99.95 ? counted(seconds) : seconds.toPrecision(3);
  return `${unfinished ? 'more than ' : ''}${shown} s`;
}

/** What has to be known of a result to trust it. */
export function remarks({ part, cold, remark }: Result): string {
  const parts = [
    part < 1 ? `of ${Number((part * 100).toPrecision(2))} %` : '',
    cold === undefined ? '' : `cold ${secondsText({ seconds: cold })}`,
    remark ?? '',
  ];
  return parts.filter((text) => text !== '').join(', ');
}

/** A table with a row for each program. */
export function tableLines(comparison: Comparison): string[] {
  const { id, what, results } = comparison;
  const cells = results.map((result, i) => [
    result.program,
    secondsText(result),
    i === 0 ? '' : ratioText(ratioOf(comparison, result)),
    remarks(result),
  ]);
  const [programs, seconds, ratios] = [0, 1, 2].map((column) =>
    Math.max(...cells.map((row) => (row[column] as string).length)),
  ) as [number, number, number];
  const rows = cells.map(([program = '', time = '', ratio = '', remark = '']) =>
    `  ${program.padEnd(programs)}  ${time.padStart(seconds)}  ${ratio.padStart(ratios)}  ${remark}`.trimEnd(),
  );
  return [`${id}: ${what}`, ...rows];
}
