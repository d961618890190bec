import { fileURLToPath } from 'node:url';
import { File } from 'h5log';
import { replay } from 'h5log/tools';
import { expect } from 'vitest';
import { handleOf, sessionOf } from '../../../src/api/handle.ts';
import { committedType } from '../../../src/hdf5/graph/dataset-header.ts';
import type { ObjectNode } from '../../../src/hdf5/graph/object-node.ts';
import {
  type DatasetFacts,
  type Description,
  expectSame,
  type Facts,
  h5pyDescribes,
  type Plain,
  plainElements,
  plainType,
  plainValue,
  Tally,
} from '../../interop/describe.ts';
import { h5dump, runSync } from '../../oracles.ts';

export const tally = new Tally();

const OWN = new Set(['_dims', '_mdims', '_ID', '_chunks', '_filters', '_reach', '_token', '_view', '_note']);
const OWN_OF_ROOT = new Set(['_int_att', '_token', '_numbers', '_publish']);
/** Of objects that logged data refers to, and of datasets in a log. */
const NUMBERED = new Set(['_number', '_at']);

/** What was declared of a dataset and is not in the description: '' for a fill value that nobody set. */
interface Declared {
  readonly chunks: readonly number[] | null;
  readonly mayGrow: boolean;
  readonly fill: string;
}

export interface Expected {
  readonly objects: Description;
  readonly declared: Record<string, Declared>;
}

const shown = (name: string): string => (name.startsWith('__') ? name.slice(1) : name);

/** What our reader sees in a log file: what ordinary HDF5 made of it must hold. */
export function expectedOf(path: string, withData = true): Expected {
  const file = File.openSync(path);
  const { structure } = sessionOf(file);
  const objects: Description = {};
  const declared: Record<string, Declared> = {};
  const seen = new Map<ObjectNode, string>();
  const counts = new Map<ObjectNode, Facts>();
  const todo: [string, ObjectNode][] = [['/', structure.root]];
  for (const [where, node] of todo) {
    const facts = counts.get(node);
    if (facts) {
      facts.count = (facts.count ?? 0) + 1;
      objects[where] = { same: seen.get(node) as string };
      continue;
    }
    seen.set(node, where);
    const made: Facts = { count: 1, kind: node.kind };
    counts.set(node, made);
    objects[where] = made;
    if (node.kind === 'group') {
      made.links = [];
      for (const link of node.links.values()) {
        if (link.name === '_LOG' && node === structure.root) continue;
        const { target } = link;
        const name = shown(link.name);
        if (target.kind === 'soft') made.links.push([name, 'soft', target.path.split('/').map(shown).join('/')]);
        else if (target.kind === 'external') made.links.push([name, 'external', target.file, target.path]);
        else made.links.push([name, 'hard']);
        const child = sessionOf(file).now(structure.loader.follow(link));
        if (child) todo.push([`${where === '/' ? '' : where}/${name}`, child]);
      }
    }
    made.attributes = [];
    for (const name of node.attributes.keys()) {
      if (
        NUMBERED.has(name) ||
        (node === structure.root ? OWN_OF_ROOT.has(name) : node.kind === 'dataset' && OWN.has(name))
      )
        continue;
      // Other programs know a name with an underscore as it is, too.
      if (name.startsWith('_') && node.attributes.has(`_${name}`)) continue;
      const parts = structure.describeAttribute(node, name);
      if (!parts) continue;
      const { space, dtype } = parts;
      const values = plainElements(dtype, space, sessionOf(file).now(structure.attribute(node, name)));
      const shape = space.kind === 'simple' ? space.shape : space.kind === 'null' ? null : [];
      made.attributes.push([shown(name), plainType(dtype), shape, values]);
    }
    if (node.kind === 'dataset') made.dataset = datasetFacts(file, where, withData, declared);
    if (node.kind === 'datatype') made.type = plainType(committedType(node));
  }
  // libhdf5 counts every use of a committed datatype as a link.
  for (const [node, facts] of counts) if (node.kind === 'datatype') facts.count = node.linkCount;
  file.closeSync();
  return { objects, declared };
}

function datasetFacts(file: File, where: string, withData: boolean, declared: Record<string, Declared>): DatasetFacts {
  const dataset = file.dataset(where);
  const { dtype, shape, maxShape, chunks, filters } = dataset;
  const { fill } = sessionOf(file).structure.dataset(handleOf(dataset).node);
  declared[where] = {
    chunks,
    mayGrow: shape.some((size, d) => size !== maxShape[d]),
    fill: fill.value instanceof Uint8Array ? Buffer.from(fill.value).toString('hex') : '',
  };
  const values = withData ? (dataset.readSync() as ArrayLike<unknown>) : [];
  return {
    type: plainType(dtype),
    shape,
    max: shape.length === 0 ? null : maxShape,
    chunk: null, // judged by itself
    filters: filters.map((filter) => (filter === 'shuffle' ? 2 : filter === 'fletcher32' ? 3 : 1)),
    values: withData ? Array.from(values, (value): Plain => plainValue(dtype, value)) : null,
  };
}

const FILLS = fileURLToPath(new URL('fills.py', import.meta.url));

/** Compares replayed files with what was expected of them; h5dump must accept each. */
export function checkReplayed(
  files: readonly { readonly output: string; readonly expected: Expected }[],
  withData = true,
): Description[] {
  const outputs = files.map(({ output }) => output);
  h5dump(...(withData ? [] : ['-H']), ...outputs);
  const seen = h5pyDescribes(outputs, withData);
  const fills = JSON.parse(runSync('python', [FILLS, ...outputs])) as Record<string, string>[];
  files.forEach(({ output, expected }, i) => {
    const found = structuredClone(seen[i] as Description);
    for (const [path, facts] of Object.entries(found)) {
      const declared = expected.declared[path];
      if (!facts.dataset || !declared) continue;
      judgeChunks(`${output} ${path}`, facts.dataset, declared);
      // A scalar, or what can never hold anything, has no chunks to filter.
      if (facts.dataset.chunk === null) facts.dataset.filters = expected.objects[path]?.dataset?.filters ?? [];
      facts.dataset.chunk = null;
      // h5py visits an object under one of its names only.
      if (fills[i]?.[path] !== undefined)
        expect(fills[i]?.[path], `fill value of ${output} ${path}`).toBe(declared.fill);
    }
    expectSame(found, expected.objects, output);
    tally.add(seen[i] as Description);
  });
  return seen;
}

/** Declared chunks are kept within the limits of HDF5; where none were declared there are some if there must be. */
function judgeChunks(what: string, { chunk, shape, max, filters }: DatasetFacts, declared: Declared): void {
  const rank = shape?.length ?? 0;
  const empty = !declared.mayGrow && (shape ?? []).includes(0);
  const wanted = rank > 0 && !empty && (declared.chunks !== null || declared.mayGrow || filters.length > 0);
  if (!wanted) expect(chunk, `chunks of ${what}`).toBeNull();
  else if (declared.chunks) {
    const limited = declared.chunks.map((size, d) => Math.max(1, Math.min(size, max?.[d] ?? size)));
    expect(chunk, `chunks of ${what}`).toEqual(limited);
  } else expect(chunk, `chunks of ${what}`).not.toBeNull();
}

/** Replays a file and compares what others see with what we see. */
export async function checkReplay(
  input: string,
  output: string,
  options: Parameters<typeof replay>[2] = {},
): Promise<Description> {
  const expected = expectedOf(input);
  await replay(input, output, options);
  return checkReplayed([{ output, expected }])[0] as Description;
}
