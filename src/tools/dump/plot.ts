import type { File } from '../../api/file.ts';
import { ANY, checkOptions, oneOf } from '../../base/options.ts';
import type { BlockIndex } from '../../log/read/index.ts';
import { nameOf, reading, type Source, sayingKind } from '../inside.ts';
import { mustHaveLog } from '../stat/stat.ts';
import { shownText } from '../value-text.ts';
import { largest, writtenBlocks } from './blocks.ts';

export interface PlotOptions {
  /** The one with most blocks unless it is said. */
  dataset?: string;
  /** What the colours mean. */
  by?: 'rank' | 'flush';
}

export interface BlockPlot {
  readonly dataset: string;
  readonly blocks: number;
  readonly svg: string;
}

/**
 * A picture of the blocks of a dataset, newer ones on top, coloured by who wrote them or when.
 *
 * @example writeFileSync('blocks.svg', (await plotBlocks('run.h5', { dataset: '/T', by: 'rank' })).svg);
 */
export async function plotBlocks(source: Source, options: PlotOptions = {}): Promise<BlockPlot> {
  checkOptions('plotBlocks', options, { dataset: ANY, by: oneOf('rank', 'flush') });
  return sayingKind(source, () => reading(source, (file) => plot(file, options)));
}

async function plot(file: File, { dataset: wanted, by = 'rank' }: PlotOptions): Promise<BlockPlot> {
  const log = mustHaveLog(file);
  const path = wanted ?? (await largest(file, log));
  const { index, ranks, flushes } = await writtenBlocks(file, log, path);
  const group = by === 'rank' ? ranks : flushes;
  const title = `${nameOf(file).replace(/^.*[\\/]/, '')} ${path}`;
  const { shape } = file.dataset(path);
  return { dataset: path, blocks: index.length, svg: drawBlocks({ title, shape, index, group, by }) };
}

interface Picture {
  readonly title: string;
  readonly shape: readonly number[];
  /** Oldest first. */
  readonly index: BlockIndex;
  /** The rank or the flush of each block; -1: unknown. */
  readonly group: Int32Array;
  readonly by: 'rank' | 'flush';
}

const WIDTH = 720;
const LEFT = 64;
const TOP = 56;
const RIGHT = 16;
/** More blocks than this are drawn as coloured cells. */
const SEPARATE = 4000;
const CELLS = 240;
/** So many ranks or flushes have a colour of their own each. */
const NAMED = 8;
// Of medium lightness: they stand out from white as well as from black.
const COLOURS = ['#2f7fc1', '#d9730d', '#2a9d5c', '#c2569b', '#8a6bd1', '#b08a00', '#2b9c9c', '#c94f4f'];
const UNKNOWN_COLOUR = '#8a8f98';

const STYLE = `
  .paper { fill: #ffffff } .field { fill: #eef0f3 } .frame { fill: none; stroke: #6b7280 }
  .block { stroke: #ffffff; stroke-width: 0.6 } text { fill: #1f2937; font: 12px system-ui, sans-serif } .title { font-weight: 600; font-size: 14px }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #14171c } .field { fill: #242932 } .frame { stroke: #9ca3af } .block { stroke: #14171c } text { fill: #e5e7eb }
  }`;

/** An SVG of blocks: two dimensions as they are, the last two of more, one dimension with a lane a rank or flush. */
function drawBlocks(picture: Picture): string {
  const groups = [...new Set(picture.group)].sort((a, b) => a - b);
  const plane = planeOf(picture, groups);
  const inner = WIDTH - LEFT - RIGHT;
  const height = Math.round(inner * Math.min(1, Math.max(0.25, plane.rows / Math.max(1, plane.columns))));
  const colour = colours(groups, picture.by);
  const scale = { x: inner / Math.max(1, plane.columns), y: height / Math.max(1, plane.rows) };
  const bottom = TOP + height;
  const legend = legendOf(groups, picture.by, colour, bottom + 44);
  const { index } = picture;
  const body =
    index.length > SEPARATE ? cells(plane, picture, colour, inner, height) : rectangles(plane, picture, colour, scale);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${legend.bottom + 12}" role="img">`,
    `<title>${escaped(`blocks of ${picture.title}`)}</title>`,
    `<style>${STYLE}\n</style>`,
    `<rect class="paper" width="${WIDTH}" height="${legend.bottom + 12}"/>`,
    `<text class="title" x="${LEFT}" y="22">${escaped(picture.title)}</text>`,
    `<text x="${LEFT}" y="42">${escaped(`${index.length} blocks by ${picture.by}, newer ones on top${plane.note}`)}</text>`,
    `<rect class="field" x="${LEFT}" y="${TOP}" width="${inner}" height="${height}"/>`,
    `<svg x="${LEFT}" y="${TOP}" width="${inner}" height="${height}" viewBox="0 0 ${inner} ${height}">`,
    ...body,
    '</svg>',
    `<rect class="frame" x="${LEFT}" y="${TOP}" width="${inner}" height="${height}"/>`,
    `<text x="${LEFT}" y="${bottom + 18}">0</text>`,
    `<text x="${WIDTH - RIGHT}" y="${bottom + 18}" text-anchor="end">${escaped(plane.across)}</text>`,
    ...(plane.down === ''
      ? []
      : [
          `<text x="${LEFT - 8}" y="${TOP + 12}" text-anchor="end">0</text>`,
          `<text x="${LEFT - 8}" y="${bottom}" text-anchor="end">${escaped(plane.down)}</text>`,
        ]),
    ...legend.lines,
    '</svg>',
    '',
  ].join('\n');
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** What of the blocks is drawn. */
interface Plane {
  readonly columns: number;
  readonly rows: number;
  readonly note: string;
  readonly across: string;
  readonly down: string;
  boxOf(block: number): Box;
}

function planeOf({ shape, index, group, by }: Picture, groups: readonly number[]): Plane {
  const { rank, starts, counts } = index;
  const size = (d: number): number => shape[d] as number;
  if (rank === 0) {
    const boxOf = (): Box => ({ x: 0, y: 0, width: 1, height: 1 });
    return { columns: 1, rows: 1, note: '; one element', across: '1', down: '', boxOf };
  }
  if (rank === 1) {
    const lane = new Map(groups.map((value, i) => [value, i]));
    const boxOf = (i: number): Box => ({
      x: starts[i] as number,
      y: lane.get(group[i] as number) ?? 0,
      width: counts[i] as number,
      height: 1,
    });
    const across = `dimension 0: ${size(0)}`;
    return { columns: size(0), rows: Math.max(1, groups.length), note: `; a lane a ${by}`, across, down: '', boxOf };
  }
  const [v, h] = [rank - 2, rank - 1];
  const boxOf = (i: number): Box => ({
    x: starts[i * rank + h] as number,
    y: starts[i * rank + v] as number,
    width: counts[i * rank + h] as number,
    height: counts[i * rank + v] as number,
  });
  const note = rank === 2 ? '' : `; the last two of ${rank} dimensions`;
  return { columns: size(h), rows: size(v), note, across: `dimension ${h}: ${size(h)}`, down: String(size(v)), boxOf };
}

type Colour = (group: number) => string;

function colours(groups: readonly number[], by: Picture['by']): Colour {
  const known = groups.filter((value) => value >= 0);
  const place = new Map(known.map((value, i) => [value, i]));
  return (value) => {
    const i = place.get(value);
    if (i === undefined) return UNKNOWN_COLOUR;
    if (known.length <= NAMED) return COLOURS[i % COLOURS.length] as string;
    // Time has a direction: from blue over red to yellow. Ranks only have to differ from their neighbours.
    return by === 'flush'
      ? `hsl(${Math.round((230 + (170 * i) / (known.length - 1)) % 360)} 65% 52%)`
      : `hsl(${Math.round((i * 137.508) % 360)} 60% 50%)`;
  };
}

const rounded = (value: number): string => String(Math.round(value * 100) / 100);

function rectangle({ x, y, width, height }: Box, colour: string, scale: { x: number; y: number }): string {
  // A block must not vanish however small it is.
  const [w, h] = [Math.max(0.8, width * scale.x), Math.max(0.8, height * scale.y)];
  return `<rect class="block" x="${rounded(x * scale.x)}" y="${rounded(y * scale.y)}" width="${rounded(w)}" height="${rounded(h)}" fill="${colour}"`;
}

function* rectangles(
  plane: Plane,
  { index, group, by }: Picture,
  colour: Colour,
  scale: { x: number; y: number },
): Iterable<string> {
  const { rank, starts, counts } = index;
  for (let i = 0; i < index.length; i++) {
    const start = [...starts.subarray(i * rank, (i + 1) * rank)].join(', ');
    const count = [...counts.subarray(i * rank, (i + 1) * rank)].join(', ');
    const value = group[i] as number;
    const text = `${by} ${value < 0 ? 'unknown' : value}: (${start}) + (${count})`;
    yield `${rectangle(plane.boxOf(i), colour(value), scale)}><title>${text}</title></rect>`;
  }
}

/** Every cell has the colour of the newest block that touches it; neighbours of a colour are one rectangle. */
function* cells(
  plane: Plane,
  { index, group }: Picture,
  colour: Colour,
  width: number,
  height: number,
): Iterable<string> {
  const columns = Math.min(CELLS, Math.max(1, plane.columns));
  const rows = Math.min(Math.round((CELLS * height) / width), Math.max(1, plane.rows));
  const newest = new Int32Array(columns * rows).fill(-1);
  const [x, y] = [columns / Math.max(1, plane.columns), rows / Math.max(1, plane.rows)];
  for (let i = 0; i < index.length; i++) {
    const box = plane.boxOf(i);
    const left = Math.min(columns - 1, Math.floor(box.x * x));
    const right = Math.min(columns, Math.max(left + 1, Math.ceil((box.x + box.width) * x)));
    const bottom = Math.min(rows, Math.max(1, Math.ceil((box.y + box.height) * y)));
    for (let row = Math.min(rows - 1, Math.floor(box.y * y)); row < bottom; row++)
      newest.fill(i, row * columns + left, row * columns + right);
  }
  const scale = { x: width / columns, y: height / rows };
  for (let row = 0; row < rows; row++) {
    for (let from = 0; from < columns; ) {
      const value = groupAt(row * columns + from);
      let end = from + 1;
      while (end < columns && groupAt(row * columns + end) === value) end++;
      if (value !== undefined)
        yield `<rect x="${rounded(from * scale.x)}" y="${rounded(row * scale.y)}" width="${rounded((end - from) * scale.x)}" height="${rounded(scale.y)}" fill="${colour(value)}"/>`;
      from = end;
    }
  }
  function groupAt(cell: number): number | undefined {
    const block = newest[cell] as number;
    return block < 0 ? undefined : group[block];
  }
}

function legendOf(
  groups: readonly number[],
  by: string,
  colour: Colour,
  top: number,
): { lines: string[]; bottom: number } {
  const named = (value: number): string => (value < 0 ? `${by} unknown` : `${by} ${value}`);
  const shown = groups.length <= NAMED + 1 ? groups : [];
  const step = 84;
  if (shown.length > 0) {
    const perLine = Math.floor((WIDTH - LEFT - RIGHT) / step);
    const lines = shown.flatMap((value, i) => {
      const [x, y] = [LEFT + (i % perLine) * step, top + Math.floor(i / perLine) * 20];
      return [
        `<rect x="${x}" y="${y - 10}" width="12" height="12" fill="${colour(value)}"/>`,
        `<text x="${x + 17}" y="${y}">${named(value)}</text>`,
      ];
    });
    return { lines, bottom: top + Math.floor((shown.length - 1) / perLine) * 20 };
  }
  // Too many for names: a strip of their colours in order, with the first and the last.
  const known = groups.filter((value) => value >= 0);
  const most = Math.min(known.length, 60);
  const lines = Array.from({ length: most }, (_, i) => {
    const value = known[Math.floor((i * (known.length - 1)) / Math.max(1, most - 1))] as number;
    return `<rect x="${LEFT + i * 5}" y="${top - 10}" width="5" height="12" fill="${colour(value)}"/>`;
  });
  if (known.length > 0)
    lines.push(`<text x="${LEFT + most * 5 + 8}" y="${top}">${named(known[0] as number)} to ${known.at(-1)}</text>`);
  return { lines, bottom: top };
}

function escaped(text: string): string {
  const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return shownText(text).replace(/[&<>"]/g, (character) => entities[character] as string);
}
