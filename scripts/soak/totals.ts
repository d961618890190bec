import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { added, type Figures, listed } from '../../test/counts.ts';
import type { Turn } from './turn.ts';

/** What a suite did in all of its turns. */
interface SuiteTotals {
  readonly turns: number;
  readonly failures: number;
  readonly seconds: number;
  /** By the names that the tests count under. */
  readonly counts: Readonly<Record<string, Figures>>;
}

const NOTHING: SuiteTotals = { turns: 0, failures: 0, seconds: 0, counts: {} };

/** Sums over turns, by suite. With a file, over all runs that used the file. */
export class Totals {
  #suites: Record<string, SuiteTotals> = {};
  readonly #file: string | undefined;

  constructor(file?: string) {
    this.#file = file;
    this.#load();
  }

  add({ suite, outcome, seconds, counts }: Turn): void {
    // Another run may have written meanwhile.
    this.#load();
    const before = this.of(suite);
    const sums: Record<string, Figures> = { ...before.counts };
    for (const [name, figures] of counts) sums[name] = added(sums[name] ?? {}, figures);
    this.#suites[suite] = {
      turns: before.turns + 1,
      failures: before.failures + (outcome === 'failed' ? 1 : 0),
      seconds: Math.round((before.seconds + seconds) * 10) / 10,
      counts: sums,
    };
    this.#save();
  }

  of(suite: string): SuiteTotals {
    return this.#suites[suite] ?? NOTHING;
  }

  get failures(): number {
    return this.#sum(({ failures }) => failures);
  }

  /** One line a suite. */
  lines(): string[] {
    return Object.keys(this.#suites)
      .sort()
      .map((suite) => this.line(suite));
  }

  line(suite: string): string {
    const { turns, failures, counts } = this.of(suite);
    const parts = Object.entries(counts).map(([name, figures]) => `${name}: ${listed(figures)}`);
    return [`${suite}: ${turnsText(turns, failures)}`, ...parts].join('; ');
  }

  /** What all suites did together, in one line: figures of the same name are added. */
  sum(): string {
    const figures = Object.values(this.#suites)
      .flatMap(({ counts }) => Object.values(counts))
      .reduce(added, {});
    const turns = this.#sum((suite) => suite.turns);
    return [`all suites: ${turnsText(turns, this.failures)}`, ...(turns > 0 ? [listed(figures)] : [])].join('; ');
  }

  #sum(of: (suite: SuiteTotals) => number): number {
    return Object.values(this.#suites).reduce((sum, suite) => sum + of(suite), 0);
  }

  #load(): void {
    if (this.#file === undefined || !existsSync(this.#file)) return;
    this.#suites = JSON.parse(readFileSync(this.#file, 'utf8')) as Record<string, SuiteTotals>;
  }

  #save(): void {
    if (this.#file === undefined) return;
    // Replaced by rename: a run that is interrupted must not leave half a file.
    writeFileSync(`${this.#file}.new`, `${JSON.stringify(this.#suites, null, 1)}\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }
}

function turnsText(turns: number, failures: number): string {
  return `${turns} ${turns === 1 ? 'turn' : 'turns'}${failures > 0 ? `, ${failures} failed` : ''}`;
}
