import { afterAll, expect, test } from 'vitest';
import { Cases, type Ending } from './outcome.ts';

/** Gives a function that makes a test of a crafted file: it is read and appended to; `ending` is how reading must end. */
export function craftedFiles(title: string): (what: string, ending: Ending, make: () => Uint8Array) => void {
  const all = new Cases();
  afterAll(() => {
    all.report(title);
  });
  return (what, ending, make) => {
    test(`${what}: ${ending}`, () => {
      const bytes = make();
      const before = all.problems.length;
      all.expect(all.run(what, 'crafted', bytes), ending, what);
      all.run(what, 'crafted', bytes, 'append');
      expect(all.problems.slice(before)).toEqual([]);
    });
  };
}
