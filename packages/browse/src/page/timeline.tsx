import type { FlushStat } from 'h5log/tools';
import { type PointerEvent, type ReactElement, useEffect, useMemo, useRef, useState } from 'react';
import { useColours } from './colours.ts';
import { countText, sizeText } from './texts.ts';
import type { OpenFile } from './use-open-file.ts';

const HEIGHT = 96;
/** The least width of a bar; of more commits than fit, several share one. */
const BAR = 4;
/** Commits in the table below the bars. */
const ROWS = 200;

/** Commits that share a bar. */
interface Bar {
  readonly first: FlushStat;
  readonly last: FlushStat;
  readonly bytes: number;
  readonly requests: number;
  readonly ranks: number;
}

/** The commits as bars of the bytes that they added; a click opens the state after one. */
export function Timeline({ file, flushes }: { file: OpenFile; flushes: readonly FlushStat[] }): ReactElement {
  const { asOf, showAsOf, summary } = file;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(600);
  const [over, setOver] = useState<number>();
  const colours = useColours();
  const bars = useMemo(() => barsOf(flushes, Math.max(1, Math.floor(width / BAR))), [flushes, width]);
  const shown = asOf ?? summary.sequence;

  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.floor(entry.contentRect.width)));
    if (canvas.current) observer.observe(canvas.current);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context) return;
    const scale = devicePixelRatio;
    context.canvas.width = width * scale;
    context.canvas.height = HEIGHT * scale;
    context.scale(scale, scale);
    context.fillStyle = colours.field;
    context.fillRect(0, 0, width, HEIGHT);
    const most = Math.max(1, ...bars.map(({ bytes }) => bytes));
    const step = width / bars.length;
    for (const [i, { bytes, first, last }] of bars.entries()) {
      // So that small commits are still seen beside large ones.
      const height = Math.max(2, Math.sqrt(bytes / most) * (HEIGHT - 8));
      context.fillStyle = first.sequence > shown ? colours.later : colours.bar;
      if (first.sequence <= shown && shown <= last.sequence) context.fillStyle = colours.chosen;
      context.fillRect(i * step, HEIGHT - height, Math.max(1, step - (step > 3 ? 1 : 0)), height);
    }
  }, [bars, width, shown, colours]);

  const barAt = ({ clientX }: PointerEvent<HTMLCanvasElement>): number => {
    const { left = 0, width: whole = 1 } = canvas.current?.getBoundingClientRect() ?? {};
    return Math.min(bars.length - 1, Math.max(0, Math.floor(((clientX - left) / whole) * bars.length)));
  };
  const bar = over === undefined ? bars.find(({ last }) => last.sequence >= shown) : bars[over];
  return (
    <section aria-labelledby="timeline-title">
      <h2 id="timeline-title">{countText(flushes.length, 'commit')}</h2>
      <canvas
        ref={canvas}
        className="timeline"
        role="img"
        aria-label={`Bytes of ${countText(flushes.length, 'commit')}; the table below and the slider above tell the same`}
        onPointerMove={(event) => setOver(barAt(event))}
        onPointerLeave={() => setOver(undefined)}
        onClick={(event) => {
          const { last } = bars[barAt(event as unknown as PointerEvent<HTMLCanvasElement>)] as Bar;
          showAsOf(last.sequence === summary.sequence ? undefined : last.sequence);
        }}
      />
      <p className="under">{bar ? textOf(bar) : ''}</p>
      <details>
        <summary>Table of commits</summary>
        <div className="scrolled">
          <table data-table="commits">
            <thead>
              <tr>
                {['Commit', 'Time', 'Requests', 'Ranks', 'Data', 'Bytes'].map((title) => (
                  <th key={title} scope="col">
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {flushes.slice(-ROWS).map(({ sequence, time, requests, ranks, data, bytes }) => (
                <tr key={sequence} aria-current={sequence === shown ? 'true' : undefined}>
                  <th scope="row">
                    <button
                      type="button"
                      className="link"
                      onClick={() => showAsOf(sequence === summary.sequence ? undefined : sequence)}
                    >
                      {sequence}
                    </button>
                  </th>
                  <td>{time ?? ''}</td>
                  <td className="number">{requests ?? ''}</td>
                  <td className="number">{ranks ?? ''}</td>
                  <td className="number">{sizeText(data)}</td>
                  <td className="number">{sizeText(bytes)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {flushes.length > ROWS && <p>The last {ROWS}; the slider reaches all of them.</p>}
      </details>
    </section>
  );
}

function barsOf(flushes: readonly FlushStat[], most: number): Bar[] {
  const size = Math.ceil(flushes.length / most);
  const bars: Bar[] = [];
  for (let i = 0; i < flushes.length; i += size) {
    const group = flushes.slice(i, i + size);
    bars.push({
      first: group[0] as FlushStat,
      last: group.at(-1) as FlushStat,
      bytes: group.reduce((sum, { bytes }) => sum + bytes, 0),
      requests: group.reduce((sum, { requests = 0 }) => sum + requests, 0),
      ranks: Math.max(...group.map(({ ranks = 0 }) => ranks)),
    });
  }
  return bars;
}

function textOf({ first, last, bytes, requests, ranks }: Bar): string {
  const which =
    first === last ? `commit ${first.sequence}, ${first.time ?? ''}` : `commits ${first.sequence} to ${last.sequence}`;
  return `${which}: ${sizeText(bytes)}, ${countText(requests, 'request')}, ${countText(ranks, 'rank')}`;
}
