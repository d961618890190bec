// Gather and scatter of boxes from a 2-d array: where `set(subarray)` overtakes a loop, and what views of 4 bytes bring.
// node --import tsx bench/copy.ts
import { gather, scatter } from '../src/space/copy.ts';

const BYTES = 64 * 2 ** 20;

function seconds(run: () => void): number {
  let best = Infinity;
  for (let i = 0; i < 5; i++) {
    const begin = performance.now();
    run();
    best = Math.min(best, performance.now() - begin);
  }
  return best / 1000;
}

function line(name: string, bytes: number, calls: number, time: number): void {
  const rate = (bytes / time / 2 ** 30).toFixed(2).padStart(6);
  console.log(`${name.padEnd(44)} ${rate} GiB/s ${((time / calls) * 1e9).toFixed(1).padStart(8)} ns a row`);
}

/** Every box is `rows` rows of `run` elements from the middle of an array with rows twice as long. */
function boxes(elementSize: number, run: number, rows: number, offset: number): void {
  const shape = [Math.floor(BYTES / 2 / (run * elementSize)), run * 2];
  const source = new Uint8Array(new ArrayBuffer(BYTES + 16), offset);
  const packed = new Uint8Array(new ArrayBuffer(BYTES / 2 + 16), offset);
  const n = Math.floor((shape[0] as number) / 2 / rows);
  const start = new Float64Array(n * 2);
  const count = new Float64Array(n * 2);
  for (let i = 0; i < n; i++) {
    start.set([i * rows, run >> 1], i * 2);
    count.set([rows, run], i * 2);
  }
  const bytes = n * rows * run * elementSize;
  const name = `${rows} x ${run} of ${elementSize} bytes${offset ? ', odd' : ''}`;
  const gathered = seconds(() => {
    let at = 0;
    for (let i = 0; i < n; i++) at = gather(source, 0, shape, start, count, elementSize, packed, at, i * 2);
  });
  line(`gather  ${name}`, bytes, n * rows, gathered);
  const scattered = seconds(() => {
    let at = 0;
    for (let i = 0; i < n; i++) at = scatter(packed, at, source, 0, shape, start, count, elementSize, i * 2);
  });
  line(`scatter ${name}`, bytes, n * rows, scattered);
}

for (const run of [1, 3, 8, 16, 24, 32, 48, 64, 128, 1024]) boxes(8, run, 1000, 0);
for (const run of [1, 3, 24, 48, 128]) boxes(4, run, 1000, 0);
for (const run of [3, 24, 48]) boxes(8, run, 1000, 1);
for (const rows of [1, 10]) boxes(8, 3, rows, 0);
