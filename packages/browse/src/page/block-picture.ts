import type { Commit } from 'h5log';
import type { SomeBlocks } from '../reader/log-facts.ts';
import { ageColour, type Colour, colourOf, cssOf, packed } from './colours.ts';
import { countText, sizeText } from './texts.ts';

/*
 * The picture of the blocks of a dataset, without React: what is where, in which colour, and what is under a point.
 */

export type ColourBy = 'rank' | 'flush' | 'age';

/** The part of the picture that is shown: its corner, as a part of the whole, and how much it is enlarged. */
export interface Window {
  readonly x: number;
  readonly y: number;
  readonly zoom: number;
}

export const WHOLE: Window = { x: 0, y: 0, zoom: 1 };
const MOST_ZOOM = 1e6;

/** Enlarged around a point of the picture on the screen. */
export function zoomed({ x, y, zoom }: Window, by: number, at = { x: 0.5, y: 0.5 }): Window {
  const next = Math.min(MOST_ZOOM, Math.max(1, zoom * by));
  if (next === 1) return WHOLE;
  return { x: x + at.x / zoom - at.x / next, y: y + at.y / zoom - at.y / next, zoom: next };
}

/** Where blocks are drawn: four numbers each, left, top, width and height, as parts of the whole. */
export interface Plane {
  readonly boxes: Float64Array;
  readonly length: number;
  readonly note: string;
  readonly axes: string;
}

/** Two dimensions as they are, of more the last two; one dimension across, with commits from top to bottom. */
export function planeOf({ shape, length, starts, counts, flushes }: SomeBlocks): Plane {
  const rank = shape.length;
  const boxes = new Float64Array(length * 4);
  if (rank === 0) {
    for (let i = 0; i < length; i++) boxes.set([0, 0, 1, 1], i * 4);
    return { boxes, length, note: '; one element', axes: '' };
  }
  const [v, h] = [rank - 2, rank - 1];
  const across = Math.max(1, shape[h] as number);
  if (rank === 1) {
    const order = [...new Set(flushes)].sort((a, b) => a - b);
    const lanes = new Map(order.map((flush, i) => [flush, i / order.length]));
    for (let i = 0; i < length; i++) {
      const lane = lanes.get(flushes[i] as number) ?? 0;
      boxes.set([(starts[i] as number) / across, lane, (counts[i] as number) / across, 1 / order.length], i * 4);
    }
    const axes = `across: dimension 0, ${across} elements; down: ${countText(order.length, 'commit')}`;
    return { boxes, length, note: '; a lane for each commit', axes };
  }
  const down = Math.max(1, shape[v] as number);
  for (let i = 0; i < length; i++) {
    const at = i * rank;
    boxes[i * 4] = (starts[at + h] as number) / across;
    boxes[i * 4 + 1] = (starts[at + v] as number) / down;
    boxes[i * 4 + 2] = (counts[at + h] as number) / across;
    boxes[i * 4 + 3] = (counts[at + v] as number) / down;
  }
  const note = rank > 2 ? '; the last two dimensions, newer blocks on top' : '';
  const axes = `across: dimension ${h}, ${across} elements; down: dimension ${v}, ${down} elements`;
  return { boxes, length, note, axes };
}

export interface Colouring {
  /** Of each block, as a pixel. */
  readonly pixels: Uint32Array;
  readonly legend: readonly (readonly [name: string, colour: string])[];
}

/** Names in a legend. */
const NAMES = 16;

export function colouring({ length, ranks, flushes }: SomeBlocks, by: ColourBy): Colouring {
  const pixels = new Uint32Array(length);
  if (by === 'age') {
    // Data that nobody recorded is older than what was.
    const [oldest, newest] = [flushes[0] ?? 0, flushes[length - 1] ?? 0];
    const steps = Array.from({ length: 256 }, (_, i) => packed(ageColour(i / 255)));
    const span = Math.max(1, newest - oldest);
    for (let i = 0; i < length; i++)
      pixels[i] = steps[Math.round((255 * ((flushes[i] as number) - oldest)) / span)] ?? 0;
    const legend = [
      [`oldest: commit ${oldest}`, cssOf(ageColour(0))],
      [`newest: commit ${newest}`, cssOf(ageColour(1))],
    ] as const;
    return { pixels, legend };
  }
  const groups = by === 'rank' ? ranks : flushes;
  const values = [...new Set(groups)].sort((a, b) => a - b);
  const colours = new Map<number, Colour>();
  for (const value of values) colours.set(value, colourOf(value < 0 ? -1 : colours.size - (values[0] === -1 ? 1 : 0)));
  const pixelOf = new Map([...colours].map(([value, colour]) => [value, packed(colour)]));
  for (let i = 0; i < length; i++) pixels[i] = pixelOf.get(groups[i] as number) ?? 0;
  const what = by === 'rank' ? 'rank' : 'commit';
  const legend = values
    .slice(0, NAMES)
    .map((value) => [value < 0 ? 'unknown' : `${what} ${value}`, cssOf(colours.get(value) as Colour)] as const);
  const more = values.length - legend.length;
  return { pixels, legend: more > 0 ? [...legend, [`and ${countText(more, what)}`, 'transparent']] : legend };
}

/**
 * Draws the blocks that are in the window. The newest come first, and a pixel is written once: what lies below costs nothing, however many
 * large blocks there are. In each row `next` leads from a pixel to the first one from there on that is free.
 */
export function draw(
  image: { readonly width: number; readonly height: number; readonly data: Uint8ClampedArray },
  { boxes, length }: Plane,
  { x, y, zoom }: Window,
  { pixels }: Colouring,
  field: Colour,
): void {
  const { width, height, data } = image;
  const out = new Uint32Array(data.buffer, data.byteOffset, width * height);
  out.fill(packed(field));
  const next = new Int32Array((width + 1) * height);
  for (let row = 0; row < height; row++)
    for (let column = 0; column <= width; column++) next[row * (width + 1) + column] = column;
  let free = width * height;
  for (let i = length - 1; i >= 0 && free > 0; i--) {
    const left = ((boxes[i * 4] as number) - x) * zoom * width;
    const top = ((boxes[i * 4 + 1] as number) - y) * zoom * height;
    const across = (boxes[i * 4 + 2] as number) * zoom * width;
    const down = (boxes[i * 4 + 3] as number) * zoom * height;
    // A gap between neighbours, where there is room for one.
    const right = Math.min(width, Math.max(Math.floor(left) + 1, Math.round(left + across - (across > 4 ? 1 : 0))));
    const bottom = Math.min(height, Math.max(Math.floor(top) + 1, Math.round(top + down - (down > 4 ? 1 : 0))));
    const from = Math.max(0, Math.floor(left));
    const colour = pixels[i] as number;
    for (let row = Math.max(0, Math.floor(top)); row < bottom; row++) {
      const base = row * (width + 1);
      for (let column = firstFree(next, base, from); column < right; column = firstFree(next, base, column)) {
        out[row * width + column] = colour;
        next[base + column] = column + 1;
        free--;
      }
    }
  }
}

/** Follows `next`, and shortens the way for those who come later. */
function firstFree(next: Int32Array, base: number, from: number): number {
  let at = from;
  while (next[base + at] !== at) at = next[base + at] as number;
  for (let step = from; step !== at; ) {
    const following = next[base + step] as number;
    next[base + step] = at;
    step = following;
  }
  return at;
}

/** The newest block under a point of the picture. */
export function find(
  { boxes, length }: Plane,
  { x, y, zoom }: Window,
  at: { x: number; y: number },
): number | undefined {
  const [px, py] = [x + at.x / zoom, y + at.y / zoom];
  for (let i = length - 1; i >= 0; i--) {
    const [left, top] = [boxes[i * 4] as number, boxes[i * 4 + 1] as number];
    if (px < left || py < top) continue;
    if (px < left + (boxes[i * 4 + 2] as number) && py < top + (boxes[i * 4 + 3] as number)) return i;
  }
  return undefined;
}

/** A block in words. */
export function explain(blocks: SomeBlocks, i: number, commits: readonly Commit[]): string {
  const { shape, starts, counts, ranks, flushes, bytes, visible } = blocks;
  const rank = shape.length;
  const parts: string[] = [];
  let elements = 1;
  for (let d = 0; d < rank; d++) {
    const [start, count] = [starts[i * rank + d] as number, counts[i * rank + d] as number];
    elements *= count;
    parts.push(count === 1 ? String(start) : `${start} to ${start + count - 1}`);
  }
  const [flush, writer] = [flushes[i] as number, ranks[i] as number];
  const time = commits.find(({ sequence }) => sequence === flush)?.time;
  const seen = visible[i] as number;
  const hidden =
    seen === elements ? 'all visible' : seen === 0 ? 'hidden' : `${Math.round((100 * seen) / elements)} % visible`;
  return [
    `[${parts.join(', ')}]`,
    countText(elements, 'element'),
    sizeText(bytes[i] as number),
    writer < 0 ? 'by nobody knows whom' : `by rank ${writer}`,
    flush < 0 ? '' : `in commit ${flush}${time ? `, ${time.toLocaleString()}` : ''}`,
    hidden,
  ]
    .filter((part) => part !== '')
    .join('; ');
}
