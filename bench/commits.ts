import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { COMMAND } from './built.ts';
import { PYTHON, pythonLacks } from './peers/python.ts';
import { median, report } from './report.ts';

/** Flushes of a turn: as many as the workload `flushes` has. */
const FLUSHES = 100_000;
const TURNS = 15;
/** Of the time that h5py takes for the same rows, without any promise. */
const LIMIT = 0.9;

/** Seconds of the processor, with all threads, and of the clock. */
interface Turn {
  readonly cpu: number;
  readonly clock: number;
}

const OURS = `
const [entry, path, count] = process.argv.slice(1);
const { File } = await import(entry);
const row = new Float64Array(128);
const [cpu, clock] = [process.cpuUsage(), performance.now()];
const file = File.createSync(path, { publish: 'never' });
const rows = file.createDataset('x', { dtype: 'float64', shape: [0, 128], maxShape: [null, 128] });
for (let i = 0; i < Number(count); i++) {
  rows.resize([i + 1, 128]);
  rows.write(row.fill(i), { start: [i, 0], count: [1, 128] });
  file.flushSync();
}
file.closeSync();
const { user, system } = process.cpuUsage(cpu);
console.log(JSON.stringify({ cpu: (user + system) / 1e6, clock: (performance.now() - clock) / 1000 }));
`;

const THEIRS = `
import h5py, json, numpy, resource, sys, time
row = numpy.empty(128)
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
before, clock = cpu(), time.perf_counter()
with h5py.File(sys.argv[1], 'w') as file:
    rows = file.create_dataset('x', (0, 128), 'f8', maxshape=(None, 128), chunks=True)
    for i in range(int(sys.argv[2])):
        rows.resize(i + 1, axis=0)
        row.fill(i)
        rows[i] = row
        file.flush()
print(json.dumps({'cpu': cpu() - before, 'clock': time.perf_counter() - clock}))
`;

/** Small commits beside chunked appends of h5py, each in a process of its own, in turns: the processor's time and the clock's. */
export async function commits(): Promise<void> {
  const missing = await pythonLacks('h5py', 'python3-h5py');
  if (missing) {
    console.log(`skipped: ${missing}`);
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), 'h5log-bench-'));
  const count = String(FLUSHES);
  const [ours, theirs]: [Turn[], Turn[]] = [[], []];
  try {
    const entry = join(COMMAND, '..', 'index.js');
    for (let turn = 0; turn < TURNS; turn++) {
      const script = ['--input-type=module', '-e', OURS, entry, join(folder, 'ours.h5'), count];
      ours.push(timed(process.execPath, script));
      theirs.push(timed(PYTHON, ['-c', THEIRS, join(folder, 'theirs.h5'), count]));
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  for (const [of, what] of [
    ['cpu', 'time of the processor'],
    ['clock', 'elapsed'],
  ] as const) {
    const [mine, other] = [ours.map((turn) => turn[of]), theirs.map((turn) => turn[of])];
    const [least, usual] = [Math.min(...mine), median(mine)];
    const microseconds = 1e6 / FLUSHES;
    report(
      `${FLUSHES.toLocaleString('en')} flushes of 1 KiB, ${what} of each, best of ${TURNS}`,
      least * microseconds,
      'us',
    );
    report('  median', usual * microseconds, 'us');
    report('  h5py, chunked append and flush, best', Math.min(...other) * microseconds, 'us');
    report('  h5py, median', median(other) * microseconds, 'us');
    report('  best against best', least / Math.min(...other), 'x', { limit: LIMIT });
    report('  median against median', usual / median(other), 'x', { limit: LIMIT });
  }
}

function timed(program: string, args: readonly string[]): Turn {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as Turn;
}
