// A user's project: h5log from the packed tarball, compiled, run, required from CommonJS, bundled for a browser.
// Usage: tsx scripts/consumer.ts [tarball]
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { browserBundle, runWithoutNode } from './browser.ts';
import { packedProject } from './packed.ts';
import { execute, root, tsc } from './root.ts';

const project = packedProject(process.argv[2]);
try {
  const { folder } = project;
  cpSync(join(root, 'scripts', 'consumer'), folder, { recursive: true });

  for (const target of ['node', 'web']) {
    const { ok, output } = tsc(['-p', `tsconfig.${target}.json`], folder);
    if (!ok) throw new Error(`the ${target} consumer does not compile:\n${output}`);
    say(`compiled for ${target}, strict, declarations checked`);
  }

  execute('node', [join('out', 'node.js'), 'consumer.h5'], { cwd: folder });
  say('ran from the tarball');

  execute('node', ['require.cjs'], { cwd: folder });
  say("require('h5log') from CommonJS");

  const { raw, gzip, limit } = await browserBundle(folder);
  say(`browser bundle of h5log: ${raw} bytes, ${gzip} gzip (at most ${limit})`);
  if (gzip > limit) throw new Error(`the browser bundle has ${gzip} bytes gzip, more than ${limit}`);

  const { lines, code } = await runWithoutNode(folder, readFileSync(join(folder, 'consumer.h5')));
  const expected = ['/run/first: title, step', '/run/second: weights'];
  if (lines.join('\n') !== expected.join('\n')) throw new Error(`the browser bundle listed:\n${lines.join('\n')}`);
  if (code !== 'FORMAT') throw new Error(`the browser bundle gave ${String(code)} for a bad file, not FORMAT`);
  say('browser bundle reads a file from a Blob, without any global of Node');
} finally {
  project.discard();
}

function say(line: string): void {
  process.stdout.write(`consumer: ${line}\n`);
}
