#!/usr/bin/env node
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // Whoever read our output has enough of it, as in `h5log ls file | head`.
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

const args = process.argv.slice(2);
// Stack traces then name lines of src/. It counts only for modules that are loaded later.
if (args.includes('--debug')) process.setSourceMapsEnabled(true);
const { run } = await import('./run.ts');

// Not process.exit: what was printed into a pipe still has to get there.
process.exitCode = await run(args);
