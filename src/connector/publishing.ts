import { H5LogError } from '../base/errors.ts';
import { isTooMuch, type PublishRequest } from '../log/flush/publish.ts';
import type { Publish } from '../log/format/log-group.ts';
import { writePublish } from '../log/format/log-group-write.ts';
import type { Log } from '../log/log.ts';
import { attemptIo, type Io } from '../storage/io.ts';
import type { SessionOptions } from './state.ts';

/** When a session makes other programs see what it commits: as it was told, or as the file remembers. */
export class Publishing {
  readonly #policy: Publish;
  readonly #isAlone: boolean;
  /** The time of the state that others see, in milliseconds since 1970, and how long it took to show it. */
  #last = 0;
  #took = 0;

  /** What the session was told replaces what the file remembers. */
  constructor({ publish, target, ranks }: SessionOptions, log: Log | null) {
    this.#isAlone = ranks.comm.size === 1;
    const remembered = log?.publishState?.policy ?? 'never';
    const isPossible = this.#isAlone || remembered === 'close';
    this.#policy = !log || !target ? 'never' : (publish ?? (isPossible ? remembered : 'never'));
    if (!log || !target || JSON.stringify(this.#policy) === JSON.stringify(remembered) || publish === undefined) return;
    const { structure, published, publishState } = log;
    const { isTree } = structure;
    log.publishState = { policy: publish, sequence: published, copied: publishState?.copied ?? 0, isTree };
    writePublish(structure, log.publishState);
  }

  /** What a commit is to publish by itself. */
  now(): PublishRequest | null {
    const policy = this.#policy;
    if (policy === 'flush') return { auto: false };
    return typeof policy !== 'string' && this.due === 0 ? { auto: false } : null;
  }

  /** What the last commit of the session is to publish, if others do not see everything. */
  closing(): PublishRequest | null {
    return this.#policy === 'never' ? null : { auto: this.#policy === 'auto' };
  }

  /** Milliseconds until others must see what they do not; null: no time is set. */
  get due(): number | null {
    const policy = this.#policy;
    if (typeof policy === 'string') return null;
    // Begun so early that it is done in time.
    const early = Math.min(this.#took, policy.interval / 2);
    return Math.max(0, this.#last + policy.interval - early - Date.now());
  }

  /** Others see everything up to a commit of this time. */
  done(time: Date): void {
    this.#last = time.getTime();
    this.#took = Date.now() - this.#last;
  }
}

/**
 * Whether a file to which nothing is to be committed stays as it is, although it publishes by itself: one that another program has changed
 * meanwhile is left to that; and one that costs too much, if nobody touched it.
 */
export function* isLeftAlone(log: Log): Io<boolean> {
  const { committer } = log.main;
  if (!committer) return false;
  if ('error' in (yield* attemptIo(committer.appender.check()))) return true;
  return !import.meta.page && log.touched.size === 0 && (yield* isTooMuch(log, 0, log.othersDiffer));
}

/** Throws if other programs cannot be made to see a log. */
export function mustPublish(log: Log): void {
  if (!log.hasSubfiles) return;
  throw new H5LogError(
    'UNSUPPORTED',
    'the data is in subfiles, which other programs cannot see; replay makes one file',
  );
}
