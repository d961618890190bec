import { type Dataset, type File, Group } from 'h5log';
import { compareValues, Difference, type ModelDataset, type ModelFile } from './state.ts';
import { shown } from './types.ts';

/** Figures of a whole test run. */
export const figures = { programs: 0, steps: 0, compared: 0, commits: 0, failures: 0, refused: 0, numbered: 0 };

function* datasetsOf(group: Group): Generator<Dataset> {
  for (const [, child] of group.children()) {
    if (child instanceof Group) yield* datasetsOf(child);
    else if (child) yield child;
  }
}

/** Everything in the file is as in the model. */
export async function compareFile(file: File, model: ModelFile, what: string): Promise<void> {
  const found = new Map([...datasetsOf(file)].map((dataset) => [dataset.path.slice(1), dataset]));
  const names = (paths: Iterable<string>): string => [...paths].sort().join(' ');
  if (names(found.keys()) !== names(model.datasets.keys())) {
    throw new Difference(`${what}: datasets ${names(found.keys())}, expected ${names(model.datasets.keys())}`);
  }
  compareAttributes(file, model.attributes, what);
  for (const [path, dataset] of found) {
    const { shape, maxShape, type, values, attributes } = model.datasets.get(path) as ModelDataset;
    if (shown([dataset.shape, dataset.maxShape]) !== shown([shape, maxShape]))
      throw new Difference(`${what}: ${path} has shape ${shown(dataset.shape)}, expected ${shown(shape)}`);
    figures.compared += values.length;
    compareValues(`${what}: ${path} ${type.name}`, type, await dataset.read(), values);
    compareAttributes(dataset, attributes, `${what}: ${path}`);
  }
}

export function compareAttributes(object: Group | Dataset, expected: ReadonlyMap<string, unknown>, what: string): void {
  const sorted = (entries: Iterable<[string, unknown]>): string =>
    shown([...entries].sort(([a], [b]) => (a < b ? -1 : 1)));
  if (sorted(object.attributes) !== sorted(expected)) {
    throw new Difference(`${what}: attributes ${sorted(object.attributes)}, expected ${sorted(expected)}`);
  }
}
