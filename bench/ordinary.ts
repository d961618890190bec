import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Dataset } from 'h5log';
import type { Dataset as WasmDataset, Group as WasmGroup } from 'h5wasm/node';
import { Random } from '../src/bench/random.ts';
import { File, Group } from './built-h5log.ts';
import { python, pythonLacks } from './peers/python.ts';
import { report } from './report.ts';

const SCRIPT = fileURLToPath(new URL('peers/ordinary_peer.py', import.meta.url));

/** 256 MiB in rows of 32 KiB. */
const ROWS = 8192;
const MIB = (ROWS * 8192 * 4) / 2 ** 20;
const TIMES = 5;
/** Whole reads of h5log, h5py and h5wasm take turns, so that a disturbance does not hit one of them alone. */
const TURNS = 3;
const BOXES = 100_000;
/** h5py and h5wasm do a part of the boxes, and the time of all follows from it. */
const PART = 10;

/** How the data is stored, and which part of the rate of h5py we want to reach. */
const KINDS = {
  contiguous: 1,
  chunked: 1,
  deflate: 0.8,
  scaleoffset: 0.6,
  lzf: 0.5,
} as const;

/** Reading of ordinary HDF5 beside h5py and h5wasm: whole datasets, small boxes, and the structure of a file with many objects. */
export async function ordinary(): Promise<void> {
  const lacks = await pythonLacks('h5py', 'python3-h5py');
  if (lacks !== undefined) {
    console.log(`skipped: ordinary: ${lacks}`);
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), 'h5log-bench-'));
  try {
    await python(SCRIPT, ['make', folder, String(ROWS)]);
    const { default: h5wasm } = await import('h5wasm/node');
    await h5wasm.ready;
    const wasm = (path: string) => new h5wasm.File(path, 'r');
    for (const [kind, least] of Object.entries(KINDS)) await whole(join(folder, `${kind}.h5`), kind, least, wasm);
    await boxes(join(folder, 'rows.h5'), wasm);
    await objects(join(folder, 'objects.h5'), wasm);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

type OpenWasm = (path: string) => WasmGroup & { close(): unknown };

/** The fastest of several runs, in seconds. Each run is told when to begin the clock. */
function fastest(times: number, run: () => () => void): number {
  let least = Infinity;
  for (let i = 0; i < times; i++) {
    const began = performance.now();
    const end = run();
    least = Math.min(least, (performance.now() - began) / 1000);
    end();
  }
  return least;
}

/** Seconds of reading alone, the fastest of all turns: the file is open, as h5py has it. */
async function whole(path: string, kind: string, least: number, wasm: OpenWasm): Promise<void> {
  const best = { ours: Infinity, theirs: Infinity, others: Infinity };
  // h5wasm has no lzf: it returns whatever was in memory.
  const compared = kind !== 'lzf';
  for (let turn = 0; turn < TURNS; turn++) {
    for (let i = 0; i < TIMES; i++) {
      const file = File.openSync(path);
      const dataset = file.dataset('x');
      best.ours = Math.min(
        best.ours,
        secondsOf(() => dataset.readSync() as Int32Array, kind),
      );
      file.closeSync();
    }
    best.theirs = Math.min(best.theirs, await python<number>(SCRIPT, ['read', path, 'x', String(TIMES)]));
    if (!compared) continue;
    const file = wasm(path);
    const dataset = file.get('x') as WasmDataset;
    best.others = Math.min(
      best.others,
      secondsOf(() => dataset.value as Int32Array, `${kind} with h5wasm`),
    );
    file.close();
  }
  const { ours, theirs, others } = best;
  report(`${MIB} MiB, ${kind}: h5log`, MIB / ours, 'MiB/s');
  report(`${MIB} MiB, ${kind}: h5py`, MIB / theirs, 'MiB/s');
  report('    that is (x the rate of h5py)', theirs / ours, 'x', { least });
  if (!compared) return;
  report(`${MIB} MiB, ${kind}: h5wasm`, MIB / others, 'MiB/s');
  report('    that is (x the rate of h5wasm)', others / ours, 'x', { least: 1 });
}

function secondsOf(read: () => Int32Array, what: string): number {
  const began = performance.now();
  const values = read();
  const seconds = (performance.now() - began) / 1000;
  mustBe(values.length * 4 === MIB * 2 ** 20 && values[8192 * 3 + 11] === 2, what);
  return seconds;
}

async function boxes(path: string, wasm: OpenWasm): Promise<void> {
  const random = new Random(2);
  const starts = new Float64Array(2 * BOXES);
  for (let i = 0; i < BOXES; i++) starts[2 * i] = random.below(999_990);
  const opened = (): { file: File; dataset: Dataset } => {
    const file = File.openSync(path);
    return { file, dataset: file.dataset('x') };
  };
  const many = fastest(TIMES, () => {
    const { file, dataset } = opened();
    dataset.readManySync(starts, [10, 3]);
    return () => file.closeSync();
  });
  const single = fastest(TIMES, () => {
    const { file, dataset } = opened();
    const where = { start: [0, 0], count: [10, 3] };
    for (let i = 0; i < BOXES; i++) {
      where.start[0] = starts[2 * i] as number;
      dataset.readSync(where);
    }
    return () => file.closeSync();
  });
  const theirs = PART * (await python<number>(SCRIPT, ['boxes', path, String(BOXES / PART), '3']));
  const others =
    PART *
    fastest(2, () => {
      const file = wasm(path);
      const dataset = file.get('x') as WasmDataset;
      for (let i = 0; i < BOXES / PART; i++) {
        const start = starts[2 * i] as number;
        dataset.slice([[start, start + 10], []]);
      }
      return () => file.close();
    });
  const label = `${BOXES.toLocaleString('en')} random boxes of 10x3, chunks of 10,000x3`;
  report(`${label}: readMany`, many, 's');
  report(`${label}: readSync, one by one`, single, 's');
  report(`${label}: h5py`, theirs, 's');
  report(`${label}: h5wasm`, others, 's');
  report('    readMany is faster than h5py', theirs / many, 'x', { least: 5 });
  report('    readSync is faster than h5py', theirs / single, 'x', { least: 1.5 });
  report('    readMany is faster than h5wasm', others / many, 'x', { least: 1 });
  report('    readSync is faster than h5wasm', others / single, 'x', { least: 1 });
}

/** Opens the file and looks at the name and the shape of every object. */
async function objects(path: string, wasm: OpenWasm): Promise<void> {
  const ours = fastest(TIMES, () => {
    const file = File.openSync(path);
    let count = 0;
    const visit = (group: Group): void => {
      for (const [, child] of group.children()) {
        count++;
        if (child instanceof Group) visit(child);
        else mustBe(child?.shape.length === 0, 'a shape');
      }
    };
    visit(file);
    mustBe(count === 10_000, `${count} objects`);
    return () => file.closeSync();
  });
  const theirs = await python<number>(SCRIPT, ['list', path, String(TIMES)]);
  const others = fastest(2, () => {
    const file = wasm(path);
    let count = 0;
    const visit = (group: WasmGroup): void => {
      for (const name of group.keys()) {
        const child = group.get(name);
        count++;
        if (child && 'keys' in child) visit(child as WasmGroup);
        else mustBe((child as WasmDataset).shape?.length === 0, 'a shape');
      }
    };
    visit(file);
    mustBe(count === 10_000, `${count} objects with h5wasm`);
    return () => file.close();
  });
  report('10,000 objects, opened and listed: h5log', 1000 * ours, 'ms');
  report('10,000 objects, opened and listed: h5py', 1000 * theirs, 'ms');
  report('10,000 objects, opened and listed: h5wasm', 1000 * others, 'ms');
  report('    that is faster than h5wasm', others / ours, 'x', { least: 1 });
}

/** A rate counts only if the values are right. */
function mustBe(holds: boolean, what: string): void {
  if (!holds) throw new Error(`ordinary: ${what} is not what was written`);
}
