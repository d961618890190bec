import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Dataset, File, Group } from 'h5log';
import { expect } from 'vitest';
import { type SealOptions, type SealResult, seal } from '../../../src/tools.ts';
import { h5dump, pythonSync } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';

/** Every dataset by its path, and the bytes that our reader gives for it. */
export function datasetsOf(path: string): Map<string, { dataset: Dataset; bytes: Uint8Array }> {
  const file = File.openSync(path);
  const found = new Map<string, { dataset: Dataset; bytes: Uint8Array }>();
  const visit = (group: Group): void => {
    for (const [, child] of group.children()) {
      if (child instanceof Group) visit(child);
      else if (child) found.set(child.path, { dataset: child, bytes: bytesOf(child) });
    }
  };
  visit(file);
  file.closeSync();
  return found;
}

/** The elements as they are in the file; of texts of variable length what they say, as the file has only where they are. */
function bytesOf(dataset: Dataset): Uint8Array {
  const { dtype } = dataset;
  const isVariable = typeof dtype === 'object' && 'variable' in dtype && dtype.variable;
  if (!isVariable) return dataset.readSync(undefined, { raw: true });
  return new TextEncoder().encode([...(dataset.readSync() as Iterable<string>)].map((text) => `${text}\0`).join(''));
}

const sha = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** What h5py finds in a file: shape, limits, chunks, filters, fill value, type and data of every dataset asked for. */
export interface Seen {
  readonly shape: number[];
  readonly maxShape: (number | null)[];
  readonly chunks: number[] | null;
  readonly filters: string[];
  readonly dtype: string;
  readonly fill: string;
  readonly sha: string;
  readonly attributes: string[];
  readonly isVirtual: boolean;
}

export function seenByH5py(path: string, datasets: readonly string[]): Record<string, Seen> {
  const script = `
import h5py, sys, json, hashlib, numpy
out = {}
with h5py.File(sys.argv[1], 'r') as f:
    for name in json.loads(sys.stdin.read()):
        d = f[name]
        data = numpy.asarray(d[()], dtype=d.dtype)
        said = b''.join(text + bytes(1) for text in numpy.ravel(data)) if d.dtype == object else data.tobytes()
        # h5py crashes when it is asked for the fill value of texts of variable length, also in files of its own.
        fill = '' if d.dtype == object else str(d.fillvalue)
        filters = [n for n, on in (('shuffle', d.shuffle), ('fletcher32', d.fletcher32), ('gzip', d.compression == 'gzip')) if on]
        out[name] = dict(shape=list(d.shape), maxShape=list(d.maxshape), chunks=d.chunks and list(d.chunks), filters=filters,
            dtype=str(d.dtype), fill=fill, sha=hashlib.sha256(said).hexdigest(), attributes=list(d.attrs), isVirtual=d.is_virtual)
print(json.dumps(out))`;
  return JSON.parse(pythonSync(script, [path], JSON.stringify(datasets)));
}

const scratch = temporaryDirectory();

/** The bytes that h5dump writes for a dataset, in the file's own type. */
export function dumped(path: string, dataset: string): Uint8Array {
  const out = join(scratch, 'dumped.bin');
  h5dump('-d', dataset, '-b', 'FILE', '-o', out, path);
  return readFileSync(out);
}

/** Seals a file and compares what h5py and (with `dump`) h5dump read with what our reader gave before. */
export async function sealAndCompare(
  path: string,
  options: SealOptions = {},
  dump = true,
): Promise<{ result: SealResult; seen: Record<string, Seen>; ways: Record<string, string> }> {
  const before = datasetsOf(path);
  const result = await seal(path, options);
  const seen = seenByH5py(result.path, [...before.keys()]);
  for (const [name, { dataset, bytes }] of before) {
    const { shape, maxShape, sha: sum } = seen[name] as Seen;
    expect({ name, shape, maxShape, sum }).toEqual({
      name,
      shape: [...dataset.shape],
      maxShape: [...dataset.maxShape],
      sum: sha(bytes),
    });
    // h5dump writes no file for data that is not there.
    if (dump && bytes.length > 0) expect(sha(dumped(result.path, name)), name).toBe(sha(bytes));
  }
  await readBack(result.path, before);
  expect(result.moved).toBe(result.datasets.reduce((sum, { moved }) => sum + moved, 0));
  const ways = Object.fromEntries(result.datasets.map(({ path: name, way, moved }) => [name, `${way} ${moved}`]));
  return { result, seen, ways };
}

/** What our own connector for ordinary files gives. */
async function readBack(path: string, before: ReturnType<typeof datasetsOf>): Promise<void> {
  const file = await File.open(path);
  expect(file.connector).toBe('native');
  for (const [name, { dataset, bytes }] of before) {
    const now = file.dataset(name);
    const { dtype, shape, maxShape } = dataset;
    expect({ name, dtype: now.dtype, shape: now.shape, maxShape: now.maxShape }).toEqual({
      name,
      dtype,
      shape,
      maxShape,
    });
    expect(sha(bytesOf(now)), name).toBe(sha(bytes));
  }
  await file.close();
}

/** Numbers that are different everywhere. */
export function counting<A extends { [i: number]: number; length: number }>(array: A, from = 0): A {
  for (let i = 0; i < array.length; i++) array[i] = from + i;
  return array;
}
