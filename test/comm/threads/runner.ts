// Calls runThreads with the arguments in JSON, in a process of its own, and prints what came of it; `loud` leaves an error uncaught.
import { runThreads } from '../../../src/comm/threads/run.ts';

const [manner, text = ''] = process.argv.slice(2);
const run = runThreads(...(JSON.parse(text) as Parameters<typeof runThreads>));
if (manner === 'loud') {
  await run;
} else {
  const outcome = await run.then(
    (results) => ({ results }),
    (error: Error) => ({ error: { ...error, message: error.message } }),
  );
  process.stdout.write(`${JSON.stringify(outcome)}\n`);
}
