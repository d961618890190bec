import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { SCALAR_SPACE } from '../../src/hdf5/messages/dataspace.ts';
import { h5dump, runSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';
import { h5pyDescribes, withoutData } from './describe.ts';
import { Draft, ourDescribe } from './driver.ts';

const SCRIPT = fileURLToPath(new URL('routes.py', import.meta.url));

interface Seen {
  /** For each object, the marks on it as seen by every route that leads to it. */
  readonly routes: Record<string, string[][]>;
  readonly counts: Record<string, number>;
  readonly both: boolean;
  readonly selected: number[];
  readonly dims: number[];
}

withOracle(['h5dump', 'python'], 'every route to a changed object', () => {
  const folder = temporaryDirectory();
  const see = (...paths: string[]): Seen[] => JSON.parse(runSync('python', [SCRIPT, 'see', ...paths])) as Seen[];

  test.each(['earliest', 'latest'])(
    'dimension scales, aliases, cycles, references, a committed type (%s): h5py sees each change by each route',
    (libver) => {
      const path = join(folder, `routes-${libver}.h5`);
      runSync('python', [SCRIPT, 'make', path, libver]);
      const [before] = see(path) as [Seen];
      const objects = Object.keys(before.routes);
      const copies = objects.map((object, i) => {
        const copy = join(folder, `${libver}-${i}.h5`);
        copyFileSync(path, copy);
        const draft = Draft.open(copy);
        draft.attribute(object, 'mark', 'int32', SCALAR_SPACE, i);
        draft.close();
        return copy;
      });
      // One after the other on one file, each in a session of its own, then all of them in one commit.
      const chain = join(folder, `${libver}-chain.h5`);
      copyFileSync(path, chain);
      for (const object of objects) {
        const draft = Draft.open(chain);
        draft.attribute(object, 'mark', 'int32', SCALAR_SPACE, 1);
        draft.commit();
        draft.attribute(object, 'mark 2', 'int32', SCALAR_SPACE, 1);
        draft.close();
      }
      const [all, ...each] = see(chain, ...copies) as [Seen, ...Seen[]];
      let routes = 0;
      for (const [i, object] of objects.entries()) {
        for (const [other, marks] of Object.entries(each[i]?.routes ?? {})) {
          for (const mark of marks)
            expect(mark, `${object} was changed, ${other} is looked at`).toEqual(other === object ? ['mark'] : []);
          routes += marks.length;
        }
        for (const mark of all.routes[object] ?? []) expect(mark).toEqual(['mark', 'mark 2']);
      }
      for (const seen of [all, ...each]) {
        expect(seen.counts).toEqual(before.counts);
        expect([seen.both, seen.selected, seen.dims]).toEqual([true, before.selected, before.dims]);
      }
      for (const file of [chain, ...copies]) h5dump(file);
      const theirs = h5pyDescribes([chain, ...copies]);
      for (const [i, file] of [chain, ...copies].entries())
        expect(ourDescribe(file)).toEqual(withoutData(theirs[i] ?? {}));
      process.stdout.write(
        `interop: ${objects.length} objects changed in ${copies.length + 1} files of ${libver}, seen by ${routes} routes\n`,
      );
    },
  );
});
