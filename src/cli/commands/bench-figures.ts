import type { Figure } from '../../bench/workload.ts';
import { columns } from '../columns.ts';
import { counted, seconds } from '../figures.ts';

/** A row for each figure; one that belongs to the figure before it, because its name begins with that one's, stands in the same row. */
export function figureLines(figures: readonly Figure[]): string[] {
  const rows: string[][] = [];
  let before = '';
  for (const figure of figures) {
    if (before !== '' && figure.id.startsWith(`${before}/`)) rows.at(-1)?.push(`${shown(figure)} ${figure.what}`);
    else {
      rows.push([figure.what, shown(figure)]);
      before = figure.id;
    }
  }
  return columns(rows);
}

function shown({ value, unit }: Figure): string {
  if (unit === 's') return seconds(value);
  if (unit === 'count') return counted(value);
  if (unit === 'bytes' || value >= 1000) return `${counted(value)} ${unit}`;
  return `${value.toPrecision(3)} ${unit}`;
}
