import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Those that take longest and need a core for themselves: the run should not end with one worker busy and the others idle. */
const longest = ['hostile/flip', 'interop/append', 'parallel/model', 'log/format/oracle', 'crash/every-operation'];

/** The order in which test files are started. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const found = longest.findIndex((name) => moduleId.includes(`/test/${name}`));
      return found < 0 ? longest.length : found;
    };
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}
