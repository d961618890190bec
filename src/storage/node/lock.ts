import { randomBytes } from 'node:crypto';
import { linkSync, readdirSync, readFileSync, readlinkSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { type ErrorDetails, H5LogError } from '../../base/errors.ts';
import { storageFailure } from '../storage.ts';
import { errno, realFile } from './path.ts';

/** The right to write a file, held until released or until the process is gone. */
export interface Lock {
  /** The lock file. */
  readonly path: string;
  /** Random, and in the lock file as long as the lock is held. */
  readonly token: string;
  /** The token of the process that is gone, if its lock was taken over. */
  readonly former: string | undefined;
  /** Removes the lock file if it is still ours. Doing it again does nothing. */
  release(): void;
}

/** The lock file of a file: the same for every spelling of its path and for symbolic links to it. */
export function lockPathFor(path: string | URL): string {
  return `${realFile(path)}.lock`;
}

/**
 * Takes the writer's lock of a file, which need not exist, or throws LOCKED. The lock of a process that is gone is taken over.
 *
 * How two processes cannot take over the same stale lock: only the holder of the *claim* `<lock>.<token>`, named after the
 * stale lock's random token, may replace a lock with that token. The claim is made by link(), which fails if it exists. Its
 * holder looks again whether the lock still has that token, and only then renames the claim onto the lock, which takes the
 * lock and gives up the claim in one step. The lock cannot change in between: its holder is gone, everybody else needs the
 * claim. One who comes late gets a claim, sees another token, and gives it up. A claim whose holder is gone is a stale lock
 * like any other and is taken over in the same way, by a claim named after the token in it.
 */
export function acquireLock(path: string | URL): Lock {
  const attempt = new Attempt(lockPathFor(path), { ...here(), token: randomBytes(8).toString('hex') });
  attempt.run();
  const { lock, token, former } = attempt;
  return { path: lock, token, former, release: () => release(lock, token) };
}

/** A takeover by another process ends in well under a millisecond; one that is stopped in the middle is not waited for. */
const PATIENCE_MS = 2000;
const PAUSE_MS = 1;

class Attempt {
  readonly lock: string;
  readonly token: string;
  readonly #text: string;
  readonly #aside: string;
  former: string | undefined;

  constructor(lock: string, self: Holder) {
    this.lock = lock;
    this.token = self.token;
    this.#text = `${JSON.stringify(self)}\n`;
    this.#aside = `${lock}.${self.token}.new`;
  }

  run(): void {
    try {
      // Complete before it has its name, so that nobody ever reads half a lock.
      writeFileSync(this.#aside, this.#text, { flag: 'wx' });
      const deadline = Date.now() + PATIENCE_MS;
      for (let claimer = this.#take(this.lock); claimer !== undefined; claimer = this.#take(this.lock)) {
        if (Date.now() > deadline) {
          const who = claimer === 'changed' ? 'keeps changing' : `is being taken over by process ${claimer.pid}`;
          throw this.#locked(`its lock ${who}; if no process writes it, remove ${this.lock}`);
        }
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
      }
      if (this.former !== undefined) this.#sweep();
    } catch (cause) {
      throw lockError(this.lock, cause);
    } finally {
      remove(this.#aside);
    }
  }

  /** Makes `path` (the lock or a claim) ours. Gives who is in the way if it is worth another try; LOCKED if not. */
  #take(path: string): Holder | 'changed' | undefined {
    if (this.#place(path)) return undefined;
    const text = this.#read(path);
    if (text === undefined) return 'changed';
    const holder = holderOf(text);
    if (!holder) throw this.#locked(`${path} is not a lock of h5log; if no process writes the file, remove it`);
    // Over NFS a link that was made can be reported as failed.
    if (holder.token === this.token) return undefined;
    if (!isGone(holder)) {
      // Whoever holds a claim is about to hold the lock or to give up.
      if (path !== this.lock) return holder;
      throw this.#locked(whyNotTaken(holder, this.lock));
    }
    const claim = `${this.lock}.${holder.token}`;
    const inTheWay = this.#take(claim);
    if (inTheWay) return inTheWay;
    if (this.#read(path) !== text) {
      remove(claim);
      return 'changed';
    }
    try {
      renameSync(claim, path);
    } catch (error) {
      // The claim of a claim can be swept away by who has got the lock meanwhile; then it was worth nothing.
      if (errno(error) === 'ENOENT') return 'changed';
      throw error;
    }
    this.former = holder.token;
    return undefined;
  }

  /** False if there is such a file already. */
  #place(path: string): boolean {
    try {
      try {
        linkSync(this.#aside, path);
      } catch (error) {
        // No hard links here (exFAT, some network file systems): as exclusive, but for a moment incomplete, which reads as LOCKED.
        if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(errno(error))) throw error;
        writeFileSync(path, this.#text, { flag: 'wx' });
      }
      return true;
    } catch (error) {
      if (errno(error) === 'EEXIST') return false;
      throw error;
    }
  }

  #read(path: string): string | undefined {
    try {
      return readFileSync(path, 'utf8');
    } catch (cause) {
      if (errno(cause) === 'ENOENT') return undefined;
      throw this.#locked(`${path} cannot be read (${errno(cause)}); if no process writes the file, remove it`, {
        cause,
      });
    }
  }

  /** Removes what processes left that were killed in the middle of this. With the lock in hand no old claim means anything. */
  #sweep(): void {
    try {
      this.#sweepAll();
    } catch {
      // The lock is ours; a directory that cannot be listed or a leftover that cannot be read is no reason to give it up.
    }
  }

  #sweepAll(): void {
    const prefix = `${basename(this.lock)}.`;
    for (const name of readdirSync(dirname(this.lock))) {
      if (!name.startsWith(prefix) || !/^[0-9a-f]{16}(\.new)?$/.test(name.slice(prefix.length))) continue;
      const path = join(dirname(this.lock), name);
      const holder = holderOf(this.#read(path) ?? '');
      if (holder && isGone(holder)) remove(path);
    }
  }

  #locked(why: string, details: ErrorDetails = {}): H5LogError {
    const file = this.lock.slice(0, -'.lock'.length);
    return new H5LogError('LOCKED', `${file} is locked: ${why}`, { file, ...details });
  }
}

function release(lock: string, token: string): void {
  try {
    if (holderOf(readFileSync(lock, 'utf8'))?.token === token) unlinkSync(lock);
  } catch (cause) {
    if (errno(cause) !== 'ENOENT') throw lockError(lock, cause);
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // Gone already, or never made. A leftover does no harm: its name is used by nobody else.
  }
}

function lockError(lock: string, cause: unknown): H5LogError {
  if (!['EACCES', 'EROFS', 'EPERM'].includes(errno(cause))) return storageFailure(lock, 'locking', cause);
  const message = `${lock} cannot be made, and without a lock nothing is written: ${errno(cause)}`;
  return new H5LogError('READ_ONLY', message, { file: lock.slice(0, -'.lock'.length), cause });
}

/** Which process holds a lock, as it stands in the lock file. What the system does not tell is ''. */
export interface Holder {
  readonly host: string;
  /** Differs after each start of the machine. */
  readonly boot: string;
  readonly pid: number;
  /** When the process began, in clock ticks since boot: tells it from a later one with the same pid. */
  readonly started: string;
  readonly token: string;
  /** The pid namespace: in another container the same pid is another process. */
  readonly pids?: string;
  /** Of a worker thread, its number in the system and when it began: it can be gone while its process goes on. */
  readonly thread?: string;
}

/** This process, without a token. */
export function here(): Omit<Holder, 'token'> {
  return {
    host: hostname(),
    boot: read('/proc/sys/kernel/random/boot_id'),
    pid: process.pid,
    started: statOf(process.pid)?.started ?? '',
    pids: pidNamespace(),
    ...workerThread(),
  };
}

/** What a lock file says, or undefined if it is none of ours. */
export function holderOf(text: string): Holder | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { host, boot, pid, started, token, pids, thread } = value as Record<string, unknown>;
  if (typeof host !== 'string' || typeof boot !== 'string' || typeof started !== 'string') return undefined;
  if (typeof pid !== 'number' || !Number.isInteger(pid) || pid <= 0) return undefined;
  // The token becomes part of a file name.
  if (typeof token !== 'string' || !/^[0-9A-Za-z-]{1,64}$/.test(token)) return undefined;
  return {
    ...{ host, boot, pid, started, token },
    ...(typeof pids === 'string' ? { pids } : {}),
    ...(typeof thread === 'string' ? { thread } : {}),
  };
}

/** True only if it is certain: the holder belongs to this start of this machine, and its process has ended. */
export function isGone(holder: Holder): boolean {
  return isFromHere(holder) && !isRunning(holder);
}

/** For the message of a lock that is not taken over. */
export function whyNotTaken(holder: Holder, lock: string): string {
  const who = `process ${holder.pid} on ${holder.host}`;
  if (isFromHere(holder)) return `${who} has it open for writing`;
  const self = here();
  const why =
    holder.host !== self.host
      ? `${who}, another machine, had it open for writing`
      : holder.boot !== self.boot
        ? `${who} had it open for writing before the machine was started anew`
        : `${who} had it open for writing in another container`;
  return `${why}; if that process is gone, remove ${lock}`;
}

function isFromHere(holder: Holder): boolean {
  const self = here();
  const sameProcesses = holder.pids === undefined || holder.pids === self.pids;
  return holder.host === self.host && holder.boot === self.boot && sameProcesses;
}

function isRunning(holder: Holder): boolean {
  if (holder.started !== '') {
    const stat = statOf(holder.pid);
    if (stat) return stat.started === holder.started && !stat.ended && hasThread(holder);
  }
  try {
    process.kill(holder.pid, 0);
    return true;
  } catch (error) {
    // EPERM: it runs, as another user.
    return errno(error) !== 'ESRCH';
  }
}

/** A worker that was ended from outside has no chance to give a lock up. */
function hasThread({ pid, thread }: Holder): boolean {
  if (thread === undefined) return true;
  const [id = '', began] = thread.split(' ');
  const stat = statOf(`${pid}/task/${id}`);
  return stat !== undefined && stat.started === began;
}

/** Nothing for the main thread, which lives as long as the process, and where the system does not tell. */
function workerThread(): { thread?: string } {
  const id = /^\d+\/task\/(\d+)$/.exec(linkAt('/proc/thread-self'))?.[1];
  const began =
    id === undefined || id === String(process.pid) ? undefined : statOf(`${process.pid}/task/${id}`)?.started;
  return began === undefined ? {} : { thread: `${id} ${began}` };
}

/** From /proc/pid/stat, see proc(5): the name in parentheses may itself hold spaces and parentheses. */
function statOf(pid: number | string): { started: string; ended: boolean } | undefined {
  const text = read(`/proc/${pid}/stat`);
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, threads, started] = [fields[0], fields[17], fields[19]];
  if (started === undefined) return undefined;
  // A zombie has ended unless some of its threads have not: those may be in the middle of a write.
  return { started, ended: (state === 'Z' || state === 'X') && Number(threads) <= 1 };
}

const pidNamespace = (): string => linkAt('/proc/self/ns/pid');

function linkAt(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}
