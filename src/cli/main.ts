#!/usr/bin/env node
import { run } from './run.ts';

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // Whoever read our output has enough of it, as in `h5log ls file | head`.
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

void run(process.argv.slice(2)).then((code) => {
  // Not process.exit: what was printed into a pipe still has to get there.
  process.exitCode = code;
});
