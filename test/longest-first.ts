import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Those that take longest, in that order; the run should not end with one worker busy and the others idle. */
const longest = [
  'hostile/flip',
  'parallel/model',
  'log/model',
  'interop/append',
  'comm/mpi-failure',
  'log/oracle',
  'tools/bench',
  'comm/mpi-conformance',
  'tools/verify',
  'crash/every-operation',
  'hostile/truncation',
  'tools/compact',
  'tools/diff',
  'parallel/crash',
  'parallel/endings',
  'comm/threads',
  'cli/demo',
  'parallel/kill-mpi',
  'parallel/same-program',
  'parallel/subfiles',
];

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
