// Starts the command line through another process of Node, as npx does.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('../../../../src/cli/main.ts', import.meta.url));
const args = [...process.execArgv, program, ...process.argv.slice(2)];
process.exitCode = spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1;
