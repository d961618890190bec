import { join } from 'node:path';
import { type Dataset, type DType, File, T } from 'h5log';
import { expect, test } from 'vitest';
import { count } from '../../counts.ts';
import { withOracle } from '../../oracles.ts';
import { random, repeats, seed } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { sealAndCompare } from './sealed.ts';

const folder = temporaryDirectory();

/** Datasets of every kind, written in every manner, in a file of their own. */
class Program {
  readonly #next: () => number;
  #value = 1;
  /** Datasets of texts of variable length. */
  variable = 0;

  constructor(from: number) {
    this.#next = random(from);
  }

  pick(n: number): number {
    return Math.floor(this.#next() * n);
  }

  chance(part: number): boolean {
    return this.#next() < part;
  }

  #one<V>(list: readonly V[]): V {
    return list[this.pick(list.length)] as V;
  }

  /** A dataset, and a step that writes to it once more. */
  create(file: File, name: string): () => void {
    const rank = this.pick(5);
    const tile = Array.from({ length: rank }, () => 1 + this.pick(rank > 2 ? 5 : 12));
    const shape = tile.map((n) => (this.chance(0.6) ? n * (1 + this.pick(4)) : 1 + this.pick(30)));
    const canGrow = rank > 0 && this.chance(0.4);
    const maxShape = shape.map((n) => (canGrow ? this.#one([null, n, n + 7]) : n));
    const filters = this.chance(0.4)
      ? this.#one([[{ deflate: 1 }], ['shuffle', { deflate: 4 }], ['fletcher32']] as const)
      : [];
    const chunks =
      rank > 0 && this.chance(0.5) ? (this.chance(0.7) ? tile : tile.map((n) => 1 + this.pick(n + 3))) : undefined;
    const dtype: DType = this.#one([
      'float64',
      'int32',
      'uint8',
      'int16',
      T.bigEndian('float32'),
      T.string({ length: 3 }),
      T.string(),
    ] as const);
    const isText = typeof dtype === 'object' && 'class' in dtype && dtype.class === 'string';
    const isVariable = isText && 'variable' in dtype && dtype.variable === true;
    const fill = this.chance(0.5) && !isVariable ? { fill: isText ? 'x' : 5 } : {};
    const dataset = file.createDataset(name, {
      dtype,
      shape,
      maxShape,
      filters: [...filters],
      ...(chunks ? { chunks } : {}),
      ...fill,
    });
    const manner = this.#one(['tiles', 'boxes', 'rows', 'whole', 'mixed', 'nothing']);
    if (isVariable) this.variable++;
    return () => this.#step(dataset, manner, tile, isText);
  }

  #step(dataset: Dataset, manner: string, tile: readonly number[], isText: boolean): void {
    const { shape, maxShape } = dataset;
    const how = manner === 'mixed' ? this.#one(['tiles', 'boxes', 'rows', 'whole']) : manner;
    const put = (start: readonly number[], count: readonly number[]): void => {
      const size = count.reduce((product, n) => product * n, 1);
      if (size === 0) return;
      const values = Array.from({ length: size }, () => this.#value++ % 100);
      dataset.write(isText ? values.map(String) : Float64Array.from(values), { start, count });
    };
    if (how === 'whole' || shape.length === 0) {
      if (how !== 'nothing')
        put(
          shape.map(() => 0),
          shape,
        );
    } else if (how === 'tiles') {
      const per = shape.map((n, d) => Math.ceil(n / (tile[d] as number)));
      for (let k = this.pick(12); k >= 0; k--) {
        const start = per.map((n, d) => this.pick(n) * (tile[d] as number));
        put(
          start,
          start.map((s, d) => Math.max(0, Math.min(tile[d] as number, (shape[d] as number) - s))),
        );
      }
    } else if (how === 'rows') {
      const from = this.pick((shape[0] as number) + 1);
      const to = from + this.pick((shape[0] as number) - from + 1);
      for (let r = from; r < to; r++) put([r, ...shape.slice(1).map(() => 0)], [1, ...shape.slice(1)]);
    } else if (how === 'boxes' && shape.every((n) => n > 0)) {
      const start = shape.map((n) => this.pick(n));
      put(
        start,
        start.map((s, d) => 1 + this.pick((shape[d] as number) - s)),
      );
    }
    if (maxShape.some((n, d) => n !== shape[d]) && this.chance(0.3))
      dataset.resize(
        maxShape.map((n, d) =>
          n === null ? this.pick(35) : n > (shape[d] as number) ? this.pick(n + 1) : (shape[d] as number),
        ),
      );
  }
}

withOracle('python', 'whatever was written', () => {
  test('is the same after a seal', { timeout: 600_000 }, async () => {
    const chosen = seed('random seals');
    const ways: Record<string, number> = {};
    let moved = 0;
    let variable = 0;
    for (let run = 0; run < repeats(200); run++) {
      const program = new Program(chosen + run);
      const path = join(folder, `${run}.h5`);
      const file = await File.create(path, { publish: 'never' });
      const steps = Array.from({ length: 1 + program.pick(20) }, (_, i) =>
        program.create(file, program.chance(0.2) ? `_g/d${i}` : `d${i}`),
      );
      for (let k = program.pick(5); k >= 0; k--) {
        for (const step of steps) if (program.chance(0.7)) step();
        if (program.chance(0.8)) await file.flush();
      }
      await file.close();
      const { result } = await sealAndCompare(
        path,
        program.chance(0.3) ? { to: join(folder, `${run}.sealed.h5`) } : {},
        false,
      );
      for (const { way } of result.datasets) ways[way] = (ways[way] ?? 0) + 1;
      moved += result.moved;
      variable += program.variable;
    }
    expect(Object.keys(ways).sort()).toEqual(['chunked', 'contiguous', 'copied', 'empty', 'virtual']);
    expect(variable).toBeGreaterThan(0);
    count('random seals', { files: repeats(200), ...ways, 'of variable length': variable, 'bytes moved': moved });
  });
});
