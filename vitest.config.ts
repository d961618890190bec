import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/longest-first.ts';
import { LEFT_OUT, quick } from './test/quick.ts';

// Tests run against the sources: `h5log` and `#platform` resolve through this condition of the package's own maps.
const conditions = ['h5log-source', 'module', 'node', 'development|production'];

// The packages import h5log by its name, which only files of the package itself resolve.
const source = (name: string): string => fileURLToPath(new URL(`./src/${name}.ts`, import.meta.url));
const alias = [
  { find: /^h5log$/, replacement: source('index') },
  { find: /^h5log\/(\w+)$/, replacement: source('$1') },
];

export default defineConfig({
  resolve: { conditions, alias },
  ssr: { resolve: { conditions } },
  test: {
    include: ['test/**/*.test.ts', 'packages/*/test/**/*.test.ts'],
    exclude: quick
      ? ['packages/**', ...LEFT_OUT.map((pattern) => `test/${pattern}${pattern.endsWith('**') ? '' : '.test.ts'}`)]
      : [],
    // A process a file: tests kill children, exhaust memory limits and hold locks.
    pool: 'forks',
    // Some of the time goes by waiting for processes, threads and disks of others: two at a time even on two cores.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    sequence: { sequencer: LongestFirst },
    globalSetup: './test/build.ts',
    execArgv: ['--conditions=h5log-source'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // What a test prints (seeds, skipped checks, measured numbers) appears as it is, one line each.
    disableConsoleIntercept: true,
    reporters: [process.env.CI ? ['default', { summary: false }] : 'default', './test/reporter.ts'],
  },
});
