// Runs every code block of README.md in a user's project with h5log from the packed tarball, one after the other.
// Usage: tsx scripts/readme.ts [tarball] [document]
//
// ts      type checked, and run as a module of its own
// js      run as a module of its own
// sh      run by bash; the two commands for newcomers are what continuous integration itself consists of
// text, json, mermaid   nothing to run
//
// A block is exempt only by a comment directly above it: <!-- not run: why -->
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { transformSync } from 'esbuild';
import { packedProject } from './packed.ts';
import { execute, root, tsc } from './root.ts';

interface Block {
  readonly line: number;
  readonly language: string;
  readonly code: string;
  /** Why it is not run, if a comment says so. */
  readonly exempt: string | undefined;
}

const newcomers = ['npm ci && npm run demo', 'npm ci && npm run oracles && npm test'];
const inert = ['text', 'json', 'mermaid'];

const [, , tarball, document = join(root, 'README.md')] = process.argv;
const blocks = codeBlocks(readFileSync(resolve(document), 'utf8'));
const project = packedProject(tarball);
const counts = { run: 0, exempt: 0 };
try {
  for (const block of blocks) {
    const started = performance.now();
    const outcome = runBlock(block, project.folder);
    const seconds = ((performance.now() - started) / 1000).toFixed(2);
    process.stdout.write(`readme: line ${block.line}, ${block.language}: ${outcome} (${seconds} s)\n`);
  }
  process.stdout.write(`readme: ${blocks.length} code blocks, ${counts.run} run, ${counts.exempt} exempt\n`);
} finally {
  project.discard();
}

function runBlock({ line, language, code, exempt }: Block, folder: string): string {
  if (exempt !== undefined) {
    counts.exempt++;
    return `not run: ${exempt}`;
  }
  if (inert.includes(language)) return 'nothing to run';
  counts.run++;
  const name = `line-${line}`;
  switch (language) {
    case 'ts':
      check(name, code, folder);
      writeFileSync(join(folder, `${name}.mjs`), transformSync(code, { loader: 'ts', target: 'es2022' }).code);
      execute('node', [`${name}.mjs`], { cwd: folder });
      return 'type checked and run';
    case 'js':
      writeFileSync(join(folder, `${name}.mjs`), code);
      execute('node', [`${name}.mjs`], { cwd: folder });
      return 'run';
    case 'sh':
      if (commands(code).every((command) => newcomers.includes(command))) return 'run by continuous integration itself';
      execute('bash', ['-euo', 'pipefail', '-c', code], { cwd: folder });
      return 'run';
    default:
      throw new Error(
        `line ${line}: a code block in ${language || 'no language'}; use ts, js, sh, ${inert.join(', ')}`,
      );
  }
}

function check(name: string, code: string, folder: string): void {
  // `export {}` keeps a block without imports a module, so that it may await.
  writeFileSync(join(folder, `${name}.ts`), `${code}\nexport {};\n`);
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2023', 'esnext.disposable'],
    module: 'nodenext',
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [`${name}.ts`] }));
  const { ok, output } = tsc(['-p', folder], folder);
  if (!ok) throw new Error(`README, ${name.replace('-', ' ')}: the block does not compile:\n${output}`);
}

function commands(code: string): string[] {
  return code
    .split('\n')
    .map((line) => line.replace(/(^|\s)#.*$/, '').trim())
    .filter((line) => line !== '');
}

function codeBlocks(text: string): Block[] {
  const lines = text.split('\n');
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; at++) {
    const [, indent = '', fence, info = ''] = /^(\s*)(```+|~~~+)\s*(.*)$/.exec(lines[at] ?? '') ?? [];
    if (fence === undefined) continue;
    const end = lines.findIndex((line, number) => number > at && line.trim() === fence);
    if (end < 0) throw new Error(`line ${at + 1}: the code block is not closed`);
    const code = lines.slice(at + 1, end).map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line));
    const [, exempt] = /^\s*<!-- not run: (.+) -->\s*$/.exec(lines[at - 1] ?? '') ?? [];
    const [language = ''] = info.split(/\s/);
    blocks.push({ line: at + 1, language, code: code.join('\n'), exempt });
    at = end;
  }
  return blocks;
}
