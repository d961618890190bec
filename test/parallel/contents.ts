import { createHash } from 'node:crypto';
import { type Dataset, File, Group } from 'h5log';
import { sessionOf } from '../../src/api/handle.ts';

/** Everything in a file, as text that can be compared: shapes, types, sums of the raw bytes and attributes of every object. */
export function contentsOf(path: string): Record<string, string> {
  const file = File.openSync(path);
  const found: Record<string, string> = {};
  const note = (object: Group | Dataset): void => {
    for (const [name, value] of object.attributes) found[`${object.path} @${name}`] = JSON.stringify(value);
  };
  const visit = (group: Group): void => {
    note(group);
    for (const [name, child] of group.children()) {
      if (!child) continue;
      if (child instanceof Group) visit(child);
      else {
        note(child);
        const sum = sumOf(child.readSync(undefined, { raw: true }));
        found[`${group.path} ${name}`] = `${JSON.stringify(child.dtype)} [${child.shape.join(', ')}] ${sum}`;
      }
    }
  };
  visit(file);
  file.closeSync();
  return found;
}

const sumOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** The bytes of log and tables, dataset by dataset. */
export function logOf(path: string): Record<string, string> {
  const file = File.openSync(path);
  const { storage, log } = sessionOf(file);
  const found: Record<string, string> = {};
  const { logs, tables } = log?.main.state ?? { logs: [], tables: [] };
  for (const [prefix, items] of [
    ['_ld_', logs],
    ['_md_', tables],
  ] as const) {
    items.forEach(({ address, size }, k) => {
      const bytes = new Uint8Array(size);
      storage.blocking?.read(bytes, address);
      found[`${prefix}${k} at ${address}`] = `${size} bytes, ${sumOf(bytes)}`;
    });
  }
  file.closeSync();
  return found;
}
