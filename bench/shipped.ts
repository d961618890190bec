import type { Workload } from '../src/bench/workload.ts';
import { report } from './report.ts';

/** What a figure should not exceed, or should reach. */
export type Bounds = Readonly<Record<string, { limit?: number; least?: number }>>;

/** Runs a workload of the package, whose files stay in `folder`, and reports its figures beside their bounds. Gives the value of each. */
export async function shipped(
  workload: Workload,
  folder: string,
  repeat: number,
  bounds: Bounds = {},
): Promise<(id: string) => number> {
  const values = new Map<string, number>();
  for await (const { id, what, value, unit } of workload.run({ folder, scale: 1, repeat })) {
    values.set(id, value);
    // One that belongs to the figure before it says little by itself.
    const isPart = /\/(ratio|rate)$/.test(id);
    report(isPart ? `    that is (${unit} ${what})` : what, value, unit, bounds[id]);
  }
  const unknown = Object.keys(bounds).filter((id) => !values.has(id));
  if (unknown.length > 0) throw new Error(`${workload.name} has no ${unknown.join()}`);
  return (id) => values.get(id) as number;
}
