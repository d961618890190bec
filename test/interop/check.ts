import { expect } from 'vitest';
import { h5dump, h5ls, ncdump } from '../oracles.ts';
import { type Description, expectSame, h5pyDescribe, Tally, withoutData } from './describe.ts';
import { type Draft, ourDescribe } from './driver.ts';
import { wasmCheck } from './wasm.ts';

/** What was checked so far in this test file. */
export const tally = new Tally();
export const wasmTally = { values: 0, skipped: 0 };

export interface CheckOptions {
  /** Why ncdump cannot list this file. */
  readonly noNetcdf?: string;
  /** Leave the data out: datasets too large to be read. */
  readonly noData?: boolean;
}

/** Shows a file to every tool: all accept it, all see the same, and that is what was meant to be written. */
export async function checkFile(path: string, draft?: Draft, options: CheckOptions = {}): Promise<Description> {
  if (options.noData) h5dump('-H', path);
  else h5dump(path);
  h5ls('-r', path);
  if (!options.noNetcdf) ncdump('-h', path);
  const seen = h5pyDescribe(path, !options.noData);
  expectSame(ourDescribe(path), withoutData(seen), 'our reader against h5py');
  if (draft) checkMeant(seen, draft);
  const wasm = await wasmCheck(path, seen);
  wasmTally.values += wasm.values;
  wasmTally.skipped += wasm.skipped;
  tally.add(seen);
  return seen;
}

/** Every attribute and every dataset has what it was given, and there is nothing else. */
function checkMeant(seen: Description, draft: Draft): void {
  const attributes = new Map<string, unknown>();
  const data = new Map<string, unknown>();
  for (const [path, facts] of Object.entries(seen)) {
    for (const attribute of facts.attributes ?? []) attributes.set(`${path} ${attribute[0]}`, attribute);
    if (facts.dataset?.values) data.set(path, facts.dataset.values);
  }
  expect([...attributes.keys()].sort()).toEqual([...draft.attributes.keys()].sort());
  for (const [key, meant] of draft.attributes) expectSame(attributes.get(key), meant, key);
  for (const [key, meant] of draft.data) if (data.has(key)) expectSame(data.get(key), meant, key);
}

/** One line for the run's log. */
export function printTally(suite: string): void {
  process.stdout.write(
    `${suite}: ${tally}; by h5wasm ${wasmTally.values} values (${wasmTally.skipped} it cannot represent)\n`,
  );
}
