import type { VerifyResult } from '../../tools/verify/verify.ts';
import { command, json } from '../command.ts';
import { counted, scaled, seconds, several } from '../print.ts';

/** Longer lists are cut, and say how many lines are left out. */
const MAX_LINES = 20;

export default command({
  name: 'verify',
  summary: 'check every committed byte: structure, tables, checksums',
  details: [
    'Compares the checksums of all commits with the file, checks every object and every table of the newest commit, and reports what is damaged and which commits are intact. ' +
      'Without checksums only structure and tables are checked. Of ordinary datasets the checksums of their chunks are compared, if they have any: those of fletcher32 and of deflate. The exit code is 1 if anything is damaged.',
    '--repair-to writes the newest commit whose data is intact to another file. Structure that does not match its checksum but can be read is kept: other programs change attributes in place. With --strict it goes back to the newest commit without any. If the superblock is lost, commits are found by searching the whole file.',
  ],
  positionals: [{ name: 'FILE', help: 'the file; its subfiles are found automatically' }],
  options: {
    'repair-to': { type: 'text', value: 'OUT', help: 'write the newest commit whose data is intact to this file' },
    strict: { type: 'flag', help: 'with --repair-to: only a commit all of whose bytes match their checksums' },
    force: { type: 'flag', short: 'f', help: 'replace OUT if it exists' },
    all: { type: 'flag', short: 'a', help: 'list every commit and every problem' },
    json,
  },
  examples: [
    { command: 'verify run.h5', says: 'is it intact?' },
    { command: 'verify run.h5 --repair-to repaired.h5', says: 'save the newest commit whose data is intact' },
  ],
  async run({ values, positionals, context }) {
    // One rank is enough: the disk is the limit.
    if (context.comm.rank > 0) return 0;
    const { verify } = await import('../../tools/verify/verify.ts');
    const { 'repair-to': repairTo, strict, force, all } = values;
    const result = await verify(positionals[0] as string, {
      ...(repairTo !== undefined && { repairTo }),
      strict,
      force,
      progress: ({ bytes, total }) => {
        if (total > 0) context.progress.show(bytes / total, `${scaled(bytes, 'B')} of ${scaled(total, 'B')}`);
      },
    });
    if (values.json) context.printJson(result);
    else for (const line of lines(result, all)) context.print(line);
    return result.sound ? 0 : 1;
  },
});

function* lines(result: VerifyResult, all: boolean): Iterable<string> {
  const { path, sound, checksums, chunkSums, commits, problems, newestSound, bytes, repaired } = result;
  const rate = `${scaled(bytes, 'B')} in ${seconds(result.seconds)}`;
  yield `${path}: ${sound ? 'sound' : `DAMAGED, ${several(problems.length, 'problem')}`} (${rate})`;
  const good = commits.filter((commit) => commit.good).length;
  const chunks = `the checksums of ${several(chunkSums, 'chunk')}`;
  if (commits.length === 0 && chunkSums === 0)
    yield '  no log, and no checksums of chunks to compare: only the structure was checked';
  else if (commits.length === 0) yield `  no log: the structure and ${chunks} were checked`;
  else
    yield `  ${several(commits.length, 'commit')}, ${checksums ? 'with checksums' : 'without checksums: only structure and tables were checked'}`;
  if (commits.length > 0 && chunkSums > 0) yield `  ${chunks} of ordinary datasets were checked as well`;
  if (!sound && commits.length > 0) {
    const last =
      newestSound === null ? 'none of them is good' : `${counted(good)} of them good, the newest is ${newestSound}`;
    yield `  ${last}`;
  }
  if (!sound || all) {
    const listed = all ? commits : commits.filter((commit) => !commit.good);
    const shown = all ? listed : listed.slice(-MAX_LINES);
    if (shown.length < listed.length)
      yield `  ${several(listed.length - shown.length, 'earlier commit')} damaged as well`;
    for (const { sequence, time, good: isGood } of shown)
      yield `  commit ${sequence} of ${time ? time.toISOString() : 'other software'}: ${isGood ? 'good' : 'damaged'}`;
  }
  const shown = all ? problems : problems.slice(0, MAX_LINES);
  for (const { offset, what } of shown) yield `  ${offset === undefined ? '' : `at byte ${offset}: `}${what}`;
  if (shown.length < problems.length)
    yield `  and ${several(problems.length - shown.length, 'problem')} more (--all lists them)`;
  if (!repaired) return;
  yield `commit ${repaired.sequence} was written to ${repaired.path} (${scaled(repaired.bytes, 'B')})`;
  if (repaired.sequence !== newestSound)
    yield `  with structure that does not match its checksum; --strict goes back to ${newestSound === null ? 'a commit without any, of which there is none' : `commit ${newestSound}`}`;
}
