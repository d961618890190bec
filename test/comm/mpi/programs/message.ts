// What mpi() says when it cannot start: one line of JSON.
import { writeSync } from 'node:fs';
import { createRequire } from 'node:module';
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

if (how === 'elsewhere') {
  // Another platform has other names for the library, none of which is here. koffi must not notice.
  createRequire(import.meta.url)('koffi');
  Object.defineProperty(process, 'platform', { value: 'darwin' });
}
tell();
