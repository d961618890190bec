import { formatError } from '../base/errors.ts';
import { extended } from '../comm/calls.ts';
import { openStructure } from '../hdf5/open.ts';
import { prepareWriting } from '../hdf5/prepare-writing.ts';
import { Committer } from '../hdf5/write/commit.ts';
import type { PublishRequest } from '../log/flush/publish.ts';
import { publishTogether } from '../log/flush/publish-ranks.ts';
import { readCounts } from '../log/format/log-group.ts';
import { movePosts } from '../log/post/restore.ts';
import type { Io } from '../storage/io.ts';
import type { FileState, SessionOptions } from './state.ts';
import { mainStore, numbered } from './state.ts';

/*
 * Ranks whose calls differ have different structures in memory. All of them read that of the last commit again, and keep what
 * they have posted to its datasets. Before they publish they do so as well: they must plan the same.
 */

/** Collective: the state of the last commit, and the error for all ranks, which says what became of their posts. */
export function* restore(
  options: SessionOptions,
  known: FileState,
  error: Error,
): Io<{ state: FileState; error: Error }> {
  const { ranks } = options;
  // If a rank cannot read the file, all throw that, and everything stays as it is until the next collective.
  const state = yield* ranks.collectiveIo(restoredState(options, known));
  const dropped = known.log && state.log ? movePosts(known.log.log, state.log.log) : [];
  ranks.forgetCalls();
  const told = ranks.comm.allgather(new TextEncoder().encode(JSON.stringify(dropped)));
  const lost = new Set(told.flatMap((bytes) => JSON.parse(new TextDecoder().decode(bytes)) as string[]));
  const posts = lost.size === 0 ? '' : `; posts were dropped: ${[...lost].join(', ')}`;
  return {
    state,
    error: extended(error, '', `; the structure is again that of commit ${state.last.sequence}${posts}`),
  };
}

/** Collective, when nothing is pending: makes other programs see the last commit. Every rank has the new state then. */
export function* publishOnRanks(options: SessionOptions, known: FileState, request: PublishRequest): Io<FileState> {
  const { ranks, power } = options;
  const state = yield* ranks.collectiveIo(restoredState(options, known));
  if (!state.log) throw formatError('the log is missing');
  state.log.log.committed(false);
  const { next: sequence } = known;
  const isCommitted = yield* publishTogether(state.log.log, ranks.comm, request, { sequence, power });
  if (!isCommitted) return state;
  return numbered(yield* ranks.collectiveIo(restoredState(options, state)));
}

/** Reads the structure of the last commit. The stores of subfiles stay: calls of users change the main file alone. */
function* restoredState(options: SessionOptions, known: FileState): Io<FileState> {
  const opened = yield* openStructure();
  yield* prepareWriting(opened, options.storage);
  const { structure, extension, superblock } = opened;
  const counts = yield* readCounts(structure);
  if (!counts || !known.log) throw formatError('the counts of the log are missing');
  const committer = known.committer && new Committer(structure, known.committer.appender, extension);
  const main = mainStore(options, structure, committer, counts, known.log.log.main);
  yield* main.load();
  return { ...known, structure, committer, log: known.log.restored(structure, main), superblock: superblock.bytes };
}
