import { type KeyboardEvent, type PointerEvent, type ReactElement, useEffect, useMemo, useRef, useState } from 'react';
import type { SomeBlocks } from '../reader/log-facts.ts';
import { type ColourBy, colouring, draw, explain, find, planeOf, WHOLE, type Window, zoomed } from './block-picture.ts';
import { parsed, useColours } from './colours.ts';
import { countText } from './texts.ts';
import { useCalled } from './use-called.ts';
import type { OpenFile } from './use-open-file.ts';

const HEIGHT = 360;
/** How far a key moves, as a part of what is shown, and how much it enlarges. */
const STEP = 0.15;
const ZOOM = 1.5;

interface Props {
  readonly file: OpenFile;
  readonly path: string;
  readonly paths: readonly string[];
  readonly onPath: (path: string) => void;
}

/** The blocks of a dataset as rectangles, newer ones on top. */
export function BlockMap({ file, path, paths, onPath }: Props): ReactElement {
  const { client, summary, asOf } = file;
  const { value: blocks, error } = useCalled(
    (signal) => client.call('blocks', [path, asOf], { signal }),
    [client, summary, asOf, path],
  );
  const [by, setBy] = useState<ColourBy>('rank');
  return (
    <section aria-labelledby="map-title">
      <h2 id="map-title">Blocks</h2>
      <p className="controls">
        <label>
          Dataset{' '}
          <select value={path} onChange={({ target }) => onPath(target.value)}>
            {paths.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label>
          Colour by{' '}
          <select value={by} onChange={({ target }) => setBy(target.value as ColourBy)}>
            <option value="rank">rank</option>
            <option value="flush">flush</option>
            <option value="age">age</option>
          </select>
        </label>
      </p>
      {error !== undefined && (
        <p role="alert" className="problem">
          {error}
        </p>
      )}
      {blocks ? <Picture blocks={blocks} by={by} file={file} /> : <p role="status">Reading the blocks ...</p>}
    </section>
  );
}

function Picture({ blocks, by, file }: { blocks: SomeBlocks; by: ColourBy; file: OpenFile }): ReactElement {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(600);
  const [shown, setShown] = useState<Window>(WHOLE);
  const [pointer, setPointer] = useState<{ x: number; y: number }>();
  const held = useRef<{ x: number; y: number }>();
  const colours = useColours();
  const plane = useMemo(() => planeOf(blocks), [blocks]);
  const colour = useMemo(() => colouring(blocks, by), [blocks, by]);

  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.floor(entry.contentRect.width)));
    if (canvas.current) observer.observe(canvas.current);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context) return;
    const begun = performance.now();
    const scale = devicePixelRatio;
    context.canvas.width = Math.max(1, Math.round(width * scale));
    context.canvas.height = HEIGHT * scale;
    const image = context.createImageData(context.canvas.width, context.canvas.height);
    draw(image, plane, shown, colour, parsed(colours.field));
    context.putImageData(image, 0, 0);
    context.canvas.dataset.drawn = String(Math.round(performance.now() - begun));
  }, [plane, shown, colour, width, colours]);

  // React listens to wheels passively: the page would scroll, too.
  useEffect(() => {
    const { current } = canvas;
    const wheel = (event: WheelEvent): void => {
      event.preventDefault();
      const { left, top, width: across, height } = (current as HTMLCanvasElement).getBoundingClientRect();
      const at = { x: (event.clientX - left) / across, y: (event.clientY - top) / height };
      setShown((known) => zoomed(known, Math.exp(-event.deltaY / 300), at));
    };
    current?.addEventListener('wheel', wheel, { passive: false });
    return () => current?.removeEventListener('wheel', wheel);
  }, []);

  const placeOf = (event: PointerEvent): { x: number; y: number } => {
    const { left, top, width: across, height } = (canvas.current as HTMLCanvasElement).getBoundingClientRect();
    return { x: (event.clientX - left) / across, y: (event.clientY - top) / height };
  };
  const moved = (x: number, y: number): void =>
    setShown((known) => ({ ...known, x: known.x + x / known.zoom, y: known.y + y / known.zoom }));
  const keys: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => moved(-STEP, 0),
    ArrowRight: () => moved(STEP, 0),
    ArrowUp: () => moved(0, -STEP),
    ArrowDown: () => moved(0, STEP),
    '+': () => setShown((known) => zoomed(known, ZOOM)),
    '-': () => setShown((known) => zoomed(known, 1 / ZOOM)),
    Home: () => setShown(WHOLE),
  };
  const press = (event: KeyboardEvent): void => {
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    // Without a pointer, the block in the middle is the one that is explained.
    setPointer({ x: 0.5, y: 0.5 });
    act();
  };
  const block = pointer && find(plane, shown, pointer);
  const { total, step } = blocks;
  return (
    <>
      <p className="controls">
        <span>
          {countText(total, 'block')}
          {step > 1 && `: too many to draw, so every ${step}th is drawn`}
          {plane.note}
        </span>
        <button type="button" onClick={keys['+']} aria-label="Zoom in">
          +
        </button>
        <button type="button" onClick={keys['-']} aria-label="Zoom out">
          -
        </button>
        <button type="button" onClick={keys.Home}>
          Whole
        </button>
      </p>
      <div
        role="application"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the keys need the focus.
        tabIndex={0}
        aria-label={`Map of ${countText(total, 'block')}. Arrow keys move, plus and minus zoom, Home shows all.`}
        aria-describedby="map-block"
        onKeyDown={press}
      >
        <canvas
          ref={canvas}
          className="map"
          data-blocks={blocks.length}
          onPointerDown={(event) => {
            held.current = placeOf(event);
            event.currentTarget.setPointerCapture(event.pointerId);
          }}
          onPointerUp={() => {
            held.current = undefined;
          }}
          onPointerMove={(event) => {
            const at = placeOf(event);
            setPointer(at);
            if (!held.current) return;
            moved(held.current.x - at.x, held.current.y - at.y);
            held.current = at;
          }}
          onPointerLeave={() => setPointer(undefined)}
        />
      </div>
      <p className="under" id="map-block" aria-live="polite">
        {block === undefined ? plane.axes : explain(blocks, block, file.summary.commits)}
      </p>
      <p className="legend">
        {colour.legend.map(([name, sample]) => (
          <span key={name}>
            <i style={{ backgroundColor: sample }} /> {name}
          </span>
        ))}
      </p>
    </>
  );
}
