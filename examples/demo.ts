// Creates a file, commits a few times, and lists what is in it. Run with `npm run demo`.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { File, Group } from 'h5log';

const folder = mkdtempSync(join(tmpdir(), 'h5log-demo-'));
const path = join(folder, 'run.h5');
const file = await File.create(path);
file.attributes.set('title', 'a run of three steps');

for (let step = 0; step < 3; step++) {
  const group = file.createGroup(`/steps/${step}`);
  group.attributes.set('time', step * 0.5);
  const temperature = group.createDataset('temperature', {
    dtype: 'float64',
    shape: [step + 1, 72],
    maxShape: [null, 72],
    fill: -999,
  });
  temperature.attributes.set('units', 'K');
  // Everything since the last flush becomes part of the file at once, or, if the machine stops here, not at all.
  const commit = await file.flush();
  console.log(`commit ${commit.sequence}: ${commit.bytes} bytes`);
}
file.createSoftLink('/latest', '/steps/2');
await file.close();

console.log(`\n${statSync(path).size} bytes of HDF5, readable by h5dump, h5py and every other tool:\n`);
const again = await File.open(path);
list(again, '');
await again.close();
rmSync(folder, { recursive: true });

function list(group: Group, indent: string): void {
  for (const [name, child] of group.children()) {
    if (!child) continue;
    const attributes = [...child.attributes].map(([key, value]) => `${key} = ${String(value)}`).join(', ');
    const what = child instanceof Group ? 'group' : `${String(child.dtype)} [${child.shape.join(', ')}]`;
    console.log(`${indent}${name}  ${what}${attributes === '' ? '' : `  (${attributes})`}`);
    if (child instanceof Group && name !== 'latest') list(child, `${indent}  `);
  }
}
