// Runs the commands that docs/cli.md shows and puts their current output below them. Usage: tsx scripts/cli-docs.ts
//
// A block that begins with ```console consists of lines `$ command`, each followed by its output. Commands are run by bash, one after the
// other in one folder, with h5log as it was built.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { File } from 'h5log';
import { runThreads } from 'h5log/threads';
import { replay } from 'h5log/tools';
import { builtCommand, root } from './root.ts';

export const document = join(root, 'docs', 'cli.md');

/** The document with the output of today. */
export async function withOutput(text: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'h5log-docs-'));
  try {
    await makeSamples(folder);
    return text.replace(/^```console\n([\s\S]*?)^```$/gm, (_, block: string) => {
      const commands = block.split('\n').filter((line) => line.startsWith('$ '));
      return `\`\`\`console\n${commands.map((line) => `${line}\n${output(line.slice(2), folder)}`).join('')}\`\`\``;
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** run.h5 is a log, plain.h5 the regular file with the same contents, other.h5 a log in which a little differs. */
async function makeSamples(folder: string): Promise<void> {
  const path = (name: string): string => join(folder, name);
  const module = new URL('./cli-sample.ts', import.meta.url);
  for (const name of ['run.h5', 'other.h5']) await runThreads(2, module, { path: path(name) });
  await replay(path('run.h5'), path('plain.h5'));
  const file = await File.open(path('other.h5'), { mode: 'r+' });
  file.dataset('/air/temperature').write([3.5, 4], { start: [0, 2, 1], count: [1, 1, 2] });
  file.dataset('/air/temperature').attributes.set('units', 'kelvin');
  file.createGroup('/notes');
  await file.close();
}

function output(command: string, folder: string): string {
  const program = [process.execPath, builtCommand];
  const script = `h5log() { ${program.map((word) => `'${word}'`).join(' ')} "$@"; }\n${command}`;
  const { stdout, stderr } = spawnSync('bash', ['-c', script], { cwd: folder, encoding: 'utf8' });
  // When it was run is the only thing that changes from run to run.
  return `${stdout}${stderr}`.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '2026-01-31T12:00:00.000Z');
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const before = readFileSync(document, 'utf8');
  const after = await withOutput(before);
  writeFileSync(document, after);
  process.stdout.write(after === before ? 'docs/cli.md: nothing has changed\n' : 'docs/cli.md: updated\n');
}
