import { type Communicator, type CreateOptions, File, select, T } from 'h5log';

/** So many workers' posts are made, whoever makes them: on fewer ranks one rank makes those of several, in order. */
export const WORKERS = 4;
const STEPS = 6;

/** A program whose result does not depend on the number of ranks: inside a flush the posts of a higher worker win. */
export default function scripted(comm: Communicator, options: CreateOptions & { path: string }): number {
  const { path, ...rest } = options;
  const file = File.createSync(path, { ...rest, comm });
  file.attributes.set('title', 'the same on every communicator');
  const field = file.createDataset('/run/field', {
    dtype: 'float64',
    shape: [0, 24, 40],
    maxShape: [null, 24, 40],
    fill: -1,
  });
  const packed = file.createDataset('/run/packed', {
    dtype: 'int32',
    shape: [64, 64],
    chunks: [16, 16],
    filters: ['shuffle', { deflate: 4 }],
  });
  const names = file.createDataset('/run/_names', { dtype: T.string({ length: 12 }), shape: [WORKERS, 3] });
  const scattered = file.createDataset('/run/scattered', { dtype: 'uint16', shape: [5000], fill: 7 });
  const total = file.createDataset('/total', { dtype: 'float32', shape: [] });
  const pair = T.compound({ step: 'int16', value: 'float64' });
  const pairs = file.createDataset('/pairs', { dtype: pair, shape: [STEPS, WORKERS] });
  field.attributes.set('units', 'K');
  for (let step = 0; step < STEPS; step++) {
    field.resize([step + 1, 24, 40]);
    if (step === 2) {
      file.createSoftLink('/latest', '/run/field');
      file.createGroup('/late');
      file.createDataset('/late/d', { dtype: 'int8', shape: [WORKERS] });
    }
    if (step === 4) scattered.resize([5000]);
    for (let worker = 0; worker < WORKERS; worker++) {
      if (Math.floor((worker * comm.size) / WORKERS) !== comm.rank) continue;
      post(worker, step);
    }
    file.flushSync();
  }
  file.dataset('/run/field').attributes.set('steps', STEPS);
  file.closeSync();
  return file.sequence;

  function post(worker: number, step: number): void {
    const value = (i: number): number => step * 1000 + worker * 100 + i;
    // Tiles with a halo: neighbours overlap.
    const [from, to] = [Math.max(0, worker * 6 - 2), Math.min(24, worker * 6 + 8)];
    const tile = Float64Array.from({ length: (to - from) * 40 }, (_, i) => value(i));
    field.write(tile, { start: [step, from, 0], count: [1, to - from, 40] });
    if (step % 2 === 0) {
      const where = { start: [worker * 8, step * 4], count: [24, 20] };
      packed.write(
        Int32Array.from({ length: 480 }, (_, i) => value(i)),
        where,
      );
    }
    if (worker === step % WORKERS) names.write([`w${worker}`, `s${step}`, 'x'], { start: [worker, 0], count: [1, 3] });
    const points = Array.from({ length: 20 }, (_, i) => [(worker * 997 + step * 131 + i * 241) % 5000]);
    scattered.write(
      Uint16Array.from({ length: 20 }, (_, i) => value(i)),
      select.points(points),
    );
    const every = { start: [worker], stride: [WORKERS * 3], count: [40] };
    scattered.write(new Uint16Array(40).fill(value(0)), select.hyperslab(every));
    if (step !== 3) pairs.write([{ step, value: value(1) }], { start: [step, worker], count: [1, 1] });
    total.write([value(2)]);
    if (step > 2) file.dataset('/late/d', 'int8').write(Int8Array.of(step), { start: [worker], count: [1] });
  }
}
