import { log } from './log.ts';
import { memory } from './memory.ts';
import { parallel } from './parallel.ts';
import { replay } from './replay.ts';
import { figures } from './report.ts';
import { structure } from './structure.ts';

const suites: Readonly<Record<string, () => void | Promise<void>>> = { structure, log, memory, replay, parallel };

const [wanted] = process.argv.slice(2).filter((argument) => !argument.startsWith('-'));
for (const [name, run] of Object.entries(suites)) {
  if (wanted !== undefined && wanted !== name) continue;
  console.log(`\n${name}`);
  await run();
}
if (process.argv.includes('--json')) console.log(JSON.stringify(figures));
