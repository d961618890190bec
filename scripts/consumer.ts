// A user's project: h5log from the packed tarball, compiled, run, required from CommonJS, on threads, as a command, bundled for a
// browser.
// Usage: tsx scripts/consumer.ts [tarball]
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { transformSync } from 'esbuild';
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

  for (const name of ['threads', 'threads-rank']) compileExample(name, folder);
  const threads = execute('node', ['threads.js', 'threads.h5', '3'], { cwd: folder });
  if (!threads.includes('read back 3000 elements')) throw new Error(`the example of threads printed:\n${threads}`);
  say('the example of threads runs');

  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  const printed = execute('npx', ['h5log', '--version'], { cwd: folder }).trim();
  if (printed !== version) throw new Error(`npx h5log --version printed ${printed}, not ${version}`);
  const demo = execute('npx', ['h5log', 'demo', '--ranks', '2', '--size', '100', '--json'], { cwd: folder });
  const { verified, wrong } = JSON.parse(demo) as { verified: number; wrong: number };
  if (verified !== 100_000 || wrong !== 0) throw new Error(`npx h5log demo printed:\n${demo}`);
  say('npx h5log --version and npx h5log demo');

  const { reading, writing } = await browserBundle(folder);
  for (const [use, { raw, gzip, limit }] of Object.entries({ reading, writing })) {
    say(`browser bundle of h5log, for ${use}: ${raw} bytes, ${gzip} gzip (at most ${limit})`);
    if (gzip > limit) throw new Error(`the browser bundle for ${use} has ${gzip} bytes gzip, more than ${limit}`);
  }
  say(`both together: ${reading.gzip + writing.gzip} gzip`);

  const { lines, code, path, ranks } = await runWithoutNode(folder, readFileSync(join(folder, 'consumer.h5')));
  const expected = ['/run/first: title, step', '/run/second: weights'];
  if (lines.join('\n') !== expected.join('\n')) throw new Error(`the browser bundle listed:\n${lines.join('\n')}`);
  if (code !== 'FORMAT') throw new Error(`the browser bundle gave ${String(code)} for a bad file, not FORMAT`);
  if (!path.startsWith('1,2,3; UNSUPPORTED: a path needs Node.js'))
    throw new Error(`the browser bundle in memory, then with a path: ${path}`);
  if (ranks !== 'UNSUPPORTED') throw new Error(`the browser bundle gave ${String(ranks)} for two ranks`);
  say('browser bundle reads a file from a Blob and writes one in memory, without any global of Node');
} finally {
  project.discard();
}

/** As a user's build would: TypeScript to JavaScript, also in the name of the module for the threads. */
function compileExample(name: string, folder: string): void {
  const { code } = transformSync(readFileSync(join(root, 'examples', `${name}.ts`), 'utf8'), { loader: 'ts' });
  writeFileSync(join(folder, `${name}.js`), code.replace('./threads-rank.ts', './threads-rank.js'));
}

function say(line: string): void {
  process.stdout.write(`consumer: ${line}\n`);
}
