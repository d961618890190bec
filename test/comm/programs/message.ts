// What mpi() says when it cannot start: one line of JSON.
import { writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { isMainThread, Worker } from 'node:worker_threads';
import { mpi } from 'h5log/mpi';

const [how = '', library] = process.argv.slice(2);

function tell(): void {
  let answer: object;
  try {
    const comm = mpi(library === undefined ? {} : { library });
    if (how === 'twice') mpi({ library: 'libother.so' });
    answer = { size: comm.size };
  } catch (error) {
    const { code, message, rank } = error as { code?: string; message: string; rank?: number };
    answer = { code, message, rank };
  }
  writeSync(1, `${JSON.stringify(answer)}\n`);
}

const require = createRequire(import.meta.url);

if (how === 'worker' && isMainThread) {
  // A thread of Node 20 does not inherit the loader of TypeScript.
  const tsx = JSON.stringify(pathToFileURL(require.resolve('tsx/esm/api')).href);
  const start = `import(${tsx}).then(({ register }) => { register(); return import(${JSON.stringify(import.meta.url)}); });`;
  new Worker(start, { eval: true, argv: ['worker'] });
} else {
  if (how === 'elsewhere') {
    // Another platform has other names for the library, none of which is here. koffi must not notice.
    require('koffi');
    Object.defineProperty(process, 'platform', { value: 'darwin' });
  }
  tell();
}
