// What must work on every runtime: create, write, flush, read; a writer that is killed; threads; a tool. Throws at the first mistake.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { File, isH5LogError } from 'h5log';
import { runThreads } from 'h5log/threads';
import { verify } from 'h5log/tools';

const columns = 100;

function equal(found, expected, what) {
  const [a, b] = [found, expected].map((value) => JSON.stringify(value));
  if (a !== b) throw new Error(`${what}: ${a}, not ${b}`);
}

// Create, write, flush, read.
const file = await File.create('smoke.h5');
const numbers = file.createDataset('run/numbers', {
  dtype: 'float64',
  shape: [2, 3],
  filters: ['shuffle', { deflate: 6 }],
});
numbers.attributes.set('units', 'K');
numbers.write(Float64Array.of(1, 2, 3, 4, 5, 6));
await file.flush();
numbers.write([20], { start: [0, 1], count: [1, 1] });
await file.close();
const again = File.openSync('smoke.h5');
equal([...again.dataset('run/numbers').readSync()], [1, 20, 3, 4, 5, 6], 'what was written');
equal(again.dataset('run/numbers').attributes.get('units'), 'K', 'an attribute');
again.closeSync();

// A writer that is killed: what it has flushed is there, and the file can be written on.
const writer = fileURLToPath(new URL('writer.mjs', import.meta.url));
// With the rights of this process: with more it would see more of the machine, and its lock would look foreign.
const rights = ['run', ...['read', 'write', 'env', 'sys', 'run'].map((name) => `--allow-${name}`)];
const child = spawn(process.execPath, [...('Deno' in globalThis ? rights : []), writer, 'killed.h5'], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const exit = once(child, 'exit');
let flushed = 0;
for await (const line of createInterface({ input: child.stdout })) {
  flushed = Number(line);
  if (flushed === 20) child.kill('SIGKILL');
}
equal((await exit)[1], 'SIGKILL', 'how the writer ended');
if (flushed < 20) throw new Error(`the writer flushed ${flushed} rows`);
const killed = await File.open('killed.h5', { mode: 'r+' });
const rows = killed.dataset('rows');
const [count] = rows.shape;
if (count < flushed) throw new Error(`${count} rows are left of ${flushed}`);
equal(
  [...(await rows.read())],
  Array.from({ length: count * columns }, (_, i) => Math.floor(i / columns)),
  'rows',
);
rows.resize([count + 1, columns]);
rows.write(new Int32Array(columns).fill(count), { start: [count, 0], count: [1, columns] });
await killed.close();
equal((await verify('killed.h5')).problems, [], 'problems of the file of the killed writer');

// Threads.
const ranks = 3;
equal(await runThreads(ranks, new URL('rank.mjs', import.meta.url), 'threads.h5'), [0, 1, 2], 'results of the threads');
const shared = await File.open('threads.h5');
equal([...(await shared.dataset('x').read())], [0, 0, 1, 1, 2, 2], 'what the threads wrote');
await shared.close();

// Errors are of one class, also those of threads and tools.
for (const failing of [() => File.open('missing.h5'), () => verify('missing.h5'), () => runThreads(0, 'rank.mjs')]) {
  const error = await failing().catch((thrown) => thrown);
  if (!isH5LogError(error)) throw new Error(`not an error of h5log: ${error}`);
}
console.log(`ok, ${count} rows of the killed writer`);
