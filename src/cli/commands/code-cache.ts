import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { command, json } from '../command.ts';
import { counted } from '../print.ts';

export default command({
  name: 'code-cache',
  summary: 'compile h5log ahead for this Node, so that programs start faster',
  details: [
    "Runs what most programs do with h5log and keeps the code that V8 has compiled beside the installed package, in a file for this version of Node on this kind of machine. `import 'h5log'` takes half as long from then on, and so does what is called for the first time. " +
      'The package has such a file for the Node that built it; others make their own, in an image of a container for example. Nothing else changes: where no file fits, h5log is compiled as any other package.',
    'The folder of the package must be writable.',
  ],
  positionals: [],
  options: { json },
  examples: [{ command: 'code-cache', says: 'once, after npm install' }],
  async run({ values, context }) {
    if (context.comm.rank > 0) return 0;
    // Another thread, in which nothing of h5log was loaded.
    const worker = new Worker(fileURLToPath(new URL('./warm-up.js', import.meta.url)));
    const made = await new Promise<{ path: string; bytes: number }>((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
      worker.once('exit', () => reject(new Error('the thread ended without code')));
    });
    if (values.json) context.printJson(made);
    else context.print(`${made.path}: ${counted(made.bytes)} bytes for Node ${process.version}`);
    return 0;
  },
});
