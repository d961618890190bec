#!/usr/bin/env node
import module from 'node:module';

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader has closed the pipe, as in `h5log ls file | head`.
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

const args = process.argv.slice(2);
// Stack traces then name lines of src/. This applies only to modules that are loaded later.
if (args.includes('--debug')) process.setSourceMapsEnabled(true);
// Node 22.8 and newer keep what they have compiled: the next command starts faster.
(module as { enableCompileCache?: () => unknown }).enableCompileCache?.();
const { run } = await import('./run.ts');

// Not process.exit: output that is queued for a pipe must still be written.
process.exitCode = await run(args);
