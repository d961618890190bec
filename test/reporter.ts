import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';
import { listed, readCounts } from './counts.ts';
import { LEFT_OUT, quick } from './quick.ts';

/** After the run: what suites counted, and the seconds of every test file and of its suites, the slowest file first; of a quick run what it left out. */
export default class SumsReporter implements Reporter {
  #counts = process.env.H5LOG_COUNTS;

  /** Before the first test file is started: its process inherits the variable. */
  onInit(): void {
    if (this.#counts !== undefined) return;
    const folder = mkdtempSync(join(tmpdir(), 'h5log-counts-'));
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
    this.#counts = join(folder, 'counts.jsonl');
    process.env.H5LOG_COUNTS = this.#counts;
  }

  onTestRunStart(): void {
    rmSync(this.#counts as string, { force: true });
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    if (quick) {
      process.stdout.write(`Left out, and a fiftieth of the repetitions done of the rest: ${LEFT_OUT.join(', ')}\n`);
      return;
    }
    printCounts(this.#counts as string);
    printSeconds(modules);
  }
}

function printCounts(file: string): void {
  const counts = [...readCounts(file)].sort(([a], [b]) => a.localeCompare(b));
  if (counts.length === 0) return;
  const lines = counts.map(([suite, figures]) => `${suite}: ${listed(figures)}`);
  process.stdout.write(`\nCounts\n${lines.join('\n')}\n`);
}

function printSeconds(modules: readonly TestModule[]): void {
  const files = modules.map((module) => ({ module, seconds: module.diagnostic().duration / 1000 }));
  files.sort((a, b) => b.seconds - a.seconds);
  const lines = ['', 'Seconds of each suite'];
  for (const { module, seconds } of files) {
    lines.push(line(seconds, module.relativeModuleId, outcomes(module.children.allTests())));
    for (const suite of module.children.suites()) {
      lines.push(line(total(suite.children.allTests()), `  ${suite.name}`, outcomes(suite.children.allTests())));
    }
  }
  process.stdout.write(`${lines.join('\n')}\n`);
}

type Tests = ReturnType<TestModule['children']['allTests']>;

function line(seconds: number, name: string, outcome: string): string {
  return `${seconds.toFixed(2).padStart(8)} s  ${name} (${outcome})`;
}

function total(tests: Tests): number {
  let seconds = 0;
  for (const test of tests) seconds += (test.diagnostic()?.duration ?? 0) / 1000;
  return seconds;
}

function outcomes(tests: Tests): string {
  const of = { passed: 0, failed: 0, skipped: 0, pending: 0 };
  for (const test of tests) of[test.result().state]++;
  return [`${of.passed} passed`, `${of.failed} failed`, ...(of.skipped ? [`${of.skipped} skipped`] : [])].join(', ');
}
