import type { Reporter, TestModule } from 'vitest/node';

/** After the run, the seconds of every test file and of its suites, the slowest file first. */
export default class SecondsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const files = modules.map((module) => ({ module, seconds: module.diagnostic().duration / 1000 }));
    files.sort((a, b) => b.seconds - a.seconds);
    const lines = ['', 'Seconds of each suite'];
    for (const { module, seconds } of files) {
      lines.push(line(seconds, module.relativeModuleId, counts(module.children.allTests())));
      for (const suite of module.children.suites()) {
        lines.push(line(total(suite.children.allTests()), `  ${suite.name}`, counts(suite.children.allTests())));
      }
    }
    process.stdout.write(`${lines.join('\n')}\n`);
  }
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

function counts(tests: Tests): string {
  const of = { passed: 0, failed: 0, skipped: 0, pending: 0 };
  for (const test of tests) of[test.result().state]++;
  return [`${of.passed} passed`, `${of.failed} failed`, ...(of.skipped ? [`${of.skipped} skipped`] : [])].join(', ');
}
