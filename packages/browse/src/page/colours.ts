import { useEffect, useMemo, useState } from 'react';

/** What canvases are drawn with; style sheets do not reach into them. */
export interface Colours {
  readonly field: string;
  readonly bar: string;
  readonly chosen: string;
  readonly later: string;
}

const LIGHT: Colours = { field: '#eef1f5', bar: '#1b6ca8', chosen: '#d9730d', later: '#c3cad4' };
const DARK: Colours = { field: '#242932', bar: '#6db3e8', chosen: '#ffa657', later: '#4a5261' };

/** Those of the system's scheme, and others when it changes. */
export function useColours(): Colours {
  const query = useMemo(() => matchMedia('(prefers-color-scheme: dark)'), []);
  const [isDark, setDark] = useState(query.matches);
  useEffect(() => {
    const change = (): void => setDark(query.matches);
    query.addEventListener('change', change);
    return () => query.removeEventListener('change', change);
  }, [query]);
  return isDark ? DARK : LIGHT;
}

/** Red, green and blue, from 0 to 255. */
export type Colour = readonly [number, number, number];

// Of medium lightness: they stand out from white as well as from black. The same as in plots of h5log stat.
const NAMED: readonly Colour[] = [
  [0x2f, 0x7f, 0xc1],
  [0xd9, 0x73, 0x0d],
  [0x2a, 0x9d, 0x5c],
  [0xc2, 0x56, 0x9b],
  [0x8a, 0x6b, 0xd1],
  [0xb0, 0x8a, 0x00],
  [0x2b, 0x9c, 0x9c],
  [0xc9, 0x4f, 0x4f],
];
const UNKNOWN: Colour = [0x8a, 0x8f, 0x98];

/** A colour for the n-th of some things; below 0: unknown. */
export function colourOf(n: number): Colour {
  if (n < 0) return UNKNOWN;
  // Steps of the golden angle: neighbours differ, however many there are.
  return NAMED[n] ?? fromHsl((n * 137.508) % 360, 0.55, 0.5);
}

/** From old, 0, to new, 1. */
export function ageColour(age: number): Colour {
  const part = Math.min(1, Math.max(0, age));
  return fromHsl(265 - 215 * part, 0.65, 0.38 + 0.18 * part);
}

function fromHsl(hue: number, saturation: number, lightness: number): Colour {
  const reach = saturation * Math.min(lightness, 1 - lightness);
  const part = (n: number): number => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (lightness - reach * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [part(0), part(8), part(4)];
}

/** For style sheets. */
export const cssOf = ([red, green, blue]: Colour): string => `rgb(${red}, ${green}, ${blue})`;

/** As the pixels of an ImageData are in memory, on every machine that a browser runs on. */
export const packed = ([red, green, blue]: Colour): number => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;

/** `#rrggbb` */
export const parsed = (hex: string): Colour =>
  [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as unknown as Colour;
