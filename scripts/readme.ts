// Runs every code block of README.md and docs/api.md in a user's project with h5log from the packed tarball, one after the other.
// Usage: tsx scripts/readme.ts [tarball] [document ...]
//
// ts      type checked, and run as a module of its own
// js      run as a module of its own
//         a comment behind `console.log(...);` is what it must print, up to a colon or semicolon
// python  run by python3; a comment behind `print(...)` is what it must print
// sh      run by bash; the two commands for newcomers are what continuous integration itself consists of
// text, json, mermaid   nothing to run
//
// A block is exempt only by a comment directly above it, <!-- not run: why -->; ts is type checked all the same. With
// <!-- needs: tool ... --> it is exempt where a tool (or h5py) is missing, but not in continuous integration (CI=true).
// A table below <!-- run: the last column, as one program --> is a block of ts: the code in its last column, line by line.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { transformSync } from 'esbuild';
import { packedProject } from './packed.ts';
import { execute, root, tsc } from './root.ts';

interface Block {
  readonly document: string;
  readonly line: number;
  readonly language: string;
  readonly code: string;
  /** Why it is not run, if a comment says so. */
  readonly exempt: string | undefined;
  /** Tools that it runs. */
  readonly needs: readonly string[];
}

const newcomers = ['npm ci && npm run demo', 'npm ci && npm run oracles && npm test'];
const inert = ['text', 'json', 'mermaid'];
// The system's Python, for which apt installs h5py.
const python = process.env.H5LOG_PYTHON ?? '/usr/bin/python3';

const [, , tarball, ...named] = process.argv;
const documents = named.length > 0 ? named : [join(root, 'README.md'), join(root, 'docs', 'api.md')];
const blocks = documents.flatMap((path) => codeBlocks(basename(path), readFileSync(resolve(path), 'utf8')));
const project = packedProject(tarball);
const counts = { run: 0, exempt: 0 };
try {
  checkTypes(project.folder);
  for (const block of blocks) {
    const started = performance.now();
    const outcome = runBlock(block, project.folder);
    const seconds = ((performance.now() - started) / 1000).toFixed(2);
    process.stdout.write(
      `readme: ${block.document}, line ${block.line}, ${block.language}: ${outcome} (${seconds} s)\n`,
    );
  }
  process.stdout.write(`readme: ${blocks.length} code blocks, ${counts.run} run, ${counts.exempt} exempt\n`);
} finally {
  project.discard();
}

function runBlock({ document, line, language, code, exempt, needs }: Block, folder: string): string {
  const missing = process.env.CI === 'true' ? [] : needs.filter((tool) => !isInstalled(tool));
  const reason = missing.length > 0 ? `${missing.join(', ')} not found` : exempt;
  if (reason !== undefined) {
    counts.exempt++;
    return `not run: ${reason}`;
  }
  if (inert.includes(language)) return 'nothing to run';
  counts.run++;
  const name = nameOf({ document, line });
  switch (language) {
    case 'ts':
      writeFileSync(join(folder, `${name}.mjs`), transformSync(code, { loader: 'ts', target: 'es2022' }).code);
      compare(name, code, execute('node', [`${name}.mjs`], { cwd: folder }));
      return 'type checked and run';
    case 'js':
      writeFileSync(join(folder, `${name}.mjs`), code);
      compare(name, code, execute('node', [`${name}.mjs`], { cwd: folder }));
      return 'run';
    case 'python':
      compare(name, code, execute(python, ['-c', code], { cwd: folder }), /print\(.*\)\s*# (.+)$/gm);
      return 'run';
    case 'sh':
      if (commands(code).every((command) => newcomers.includes(command))) return 'run by continuous integration itself';
      execute('bash', ['-euo', 'pipefail', '-c', code], { cwd: folder });
      return 'run';
    default:
      throw new Error(
        `${document}, line ${line}: a code block in ${language || 'no language'}; use ts, js, sh, ${inert.join(', ')}`,
      );
  }
}

/** All blocks at once: most of the time goes into the declarations that they have in common. */
function checkTypes(folder: string): void {
  const files: string[] = [];
  for (const block of blocks.filter(({ language }) => language === 'ts')) {
    const file = `${nameOf(block)}.ts`;
    files.push(file);
    // `export {}` keeps a block without imports a module, so that it may await. Lines have the numbers of the document.
    writeFileSync(join(folder, file), `${'\n'.repeat(block.line)}${block.code}\nexport {};\n`);
  }
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
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  const { ok, output } = tsc(['-p', folder], folder);
  if (!ok) throw new Error(`a block does not compile:\n${output}`);
}

function compare(name: string, code: string, output: string, printed = /console\.log\(.*\);\s*\/\/ (.+)$/gm): void {
  const lines = output.split('\n').map((line) => line.trim());
  for (const [, comment = ''] of code.matchAll(printed)) {
    const [expected = ''] = comment.split(/[:;] /);
    if (!lines.includes(expected.trim()))
      throw new Error(`${name.replace('-', ', line ')}: the comment says ${expected}, the output is\n${output}`);
  }
}

function isInstalled(tool: string): boolean {
  const [command, ...args] = tool === 'h5py' ? [python, '-c', 'import h5py'] : [tool, '--version'];
  const { error, status } = spawnSync(command ?? '', args, { stdio: 'ignore' });
  return error === undefined && (tool !== 'h5py' || status === 0);
}

function nameOf({ document, line }: Pick<Block, 'document' | 'line'>): string {
  return `${document}-${line}`;
}

function commands(code: string): string[] {
  return code
    .split('\n')
    .map((line) => line.replace(/(^|\s)#.*$/, '').trim())
    .filter((line) => line !== '');
}

function codeBlocks(document: string, text: string): Block[] {
  const lines = text.split('\n');
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; at++) {
    if (lines[at] === '<!-- run: the last column, as one program -->') blocks.push(tableBlock(document, lines, at + 1));
    const [, indent = '', fence, info = ''] = /^(\s*)(```+|~~~+)\s*(.*)$/.exec(lines[at] ?? '') ?? [];
    if (fence === undefined) continue;
    const end = lines.findIndex((line, number) => number > at && line.trim() === fence);
    if (end < 0) throw new Error(`${document}, line ${at + 1}: the code block is not closed`);
    const code = lines.slice(at + 1, end).map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line));
    const [, exempt] = /^\s*<!-- not run: (.+) -->\s*$/.exec(lines[at - 1] ?? '') ?? [];
    const [, needs = ''] = /^\s*<!-- needs: (.+) -->\s*$/.exec(lines[at - 1] ?? '') ?? [];
    const [language = ''] = info.split(/\s/);
    const tools = needs.split(' ').filter((tool) => tool !== '');
    blocks.push({ document, line: at + 1, language, code: code.join('\n'), exempt, needs: tools });
    at = end;
  }
  return blocks;
}

/** The program in the last column of the table at `at`: in each cell the first codes, up to other words than a comma. */
function tableBlock(document: string, lines: readonly string[], at: number): Block {
  const code = ["import { File } from 'h5log';"];
  for (const line of lines.slice(at + 2, at + lines.slice(at).findIndex((text) => !text.startsWith('|')))) {
    const [cell = ''] = / \| (`[^|]*)\|$/.exec(line)?.slice(1) ?? [];
    const [statements = ''] = /^(?:`[^`]+`(?:, (?=`))?)+/.exec(cell) ?? [];
    if (statements === '') throw new Error(`${document}: a line of the table has no code in its last column: ${line}`);
    code.push([...statements.matchAll(/`([^`]+)`/g)].map(([, statement]) => `${statement};`).join(' '));
  }
  return { document, line: at + 1, language: 'ts', code: code.join('\n'), exempt: undefined, needs: [] };
}
