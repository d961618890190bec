import { createHash } from 'node:crypto';
import { type Dataset, File, Group, type OpenOptions } from 'h5log';
import { pointersOf } from '../../src/dtype/heap-ids.ts';

/** All that users can see in a file, as text that can be compared: order, types, shapes, fill, filters, data, attributes, links. */
export function factsOf(path: string, options: OpenOptions = {}): Record<string, unknown> {
  const file = File.openSync(path, options);
  const facts: Record<string, unknown> = {};
  const seen = new Map<unknown, string>();
  const note = (object: Group | Dataset): void => {
    for (const name of object.attributes.keys())
      facts[`${object.path} @${name}`] = text([object.attributes.describe(name), object.attributes.get(name)]);
  };
  const visit = (group: Group): void => {
    note(group);
    facts[`${group.path} order`] = [...group.keys()].join(' ');
    for (const [name, child] of group.children()) {
      const path = `${group.path === '/' ? '' : group.path}/${name}`;
      if (!child) facts[path] = 'leads nowhere';
      else if (seen.has(child.path) && child.path !== path) facts[path] = `the same as ${seen.get(child.path)}`;
      else {
        seen.set(child.path, path);
        if (child instanceof Group) visit(child);
        else {
          note(child);
          facts[path] = datasetFacts(child);
        }
      }
    }
  };
  visit(file);
  file.closeSync();
  return facts;
}

function datasetFacts(dataset: Dataset): string {
  const { dtype, shape, maxShape, fill, chunks, filters } = dataset;
  // Elements that point elsewhere hold other addresses in every file.
  const data = pointersOf(dtype).length > 0 ? text(dataset.readSync()) : dataset.readSync(undefined, { raw: true });
  return text([dtype, shape, maxShape, fill, chunks, filters, createHash('sha256').update(data).digest('hex')]);
}

const text = (value: unknown): string =>
  JSON.stringify(value, (_key, item) =>
    typeof item === 'bigint'
      ? `${item}n`
      : ArrayBuffer.isView(item)
        ? [item.constructor.name, ...(item as never)]
        : item,
  );
