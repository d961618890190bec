import { linkSync, readdirSync, readFileSync, readlinkSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { type ErrorDetails, H5LogError } from '../../base/errors.ts';
import { storageFailure } from '../storage.ts';
import { errno, realFile } from './path.ts';

/** The write lock of a file: held until it is released or the process has ended. */
export interface Lock {
  /** The lock file. */
  readonly path: string;
  /** Random; stored in the lock file while the lock is held. */
  readonly token: string;
  /** The token of the stale lock that this one replaced, if it did. */
  readonly takenOverFrom: string | undefined;
  /** Removes the lock file if it is still ours. A second call has no effect. */
  release(): void;
}

/** The path of a file's lock file: the same for every spelling of the file's path and for symbolic links to it. */
export function lockPathFor(path: string | URL): string {
  return `${realFile(path)}.lock`;
}

/**
 * Takes the write lock of a file, which need not exist, or throws LOCKED. A stale lock, whose process has ended, is taken over.
 *
 * Two processes cannot take over the same stale lock: only the holder of the *claim* `<lock>.<token>`, named after the stale
 * lock's random token, may replace a lock with that token. The claim is created by link(), which fails if it exists. Its
 * holder checks again that the lock still has that token, and only then renames the claim to the lock, which takes the lock
 * and gives up the claim in one step. The lock cannot change in between: its holder has ended, and everybody else needs the
 * claim. A process that comes late gets a claim, sees another token, and removes the claim. A claim whose holder has ended
 * is itself a stale lock and is taken over in the same way, by a claim named after the token in it.
 */
export function acquireLock(path: string | URL): Lock {
  const attempt = new Attempt(lockPathFor(path), { ...thisProcess(), token: randomToken() });
  attempt.run();
  const { lock, token, takenOverFrom } = attempt;
  return { path: lock, token, takenOverFrom, release: () => release(lock, token) };
}

function randomToken(): string {
  // Loaded here and not at the top: only writers need it, and it takes 4 ms.
  return process.getBuiltinModule('node:crypto').randomBytes(8).toString('hex');
}

/** A takeover by another process takes well under a millisecond; one that hangs is not waited for any longer than this. */
const TAKEOVER_TIMEOUT_MS = 2000;
const PAUSE_MS = 1;

/** One attempt to take a lock. */
class Attempt {
  readonly lock: string;
  readonly token: string;
  readonly #text: string;
  readonly #temporary: string;
  takenOverFrom: string | undefined;

  constructor(lock: string, self: Holder) {
    this.lock = lock;
    this.token = self.token;
    this.#text = `${JSON.stringify(self)}\n`;
    this.#temporary = `${lock}.${self.token}.new`;
  }

  run(): void {
    try {
      // Written completely before it gets its name, so that nobody ever reads half a lock.
      writeFileSync(this.#temporary, this.#text, { flag: 'wx' });
      const deadline = Date.now() + TAKEOVER_TIMEOUT_MS;
      for (let claimer = this.#take(this.lock); claimer !== undefined; claimer = this.#take(this.lock)) {
        if (Date.now() > deadline) {
          const who = claimer === 'changed' ? 'keeps changing' : `is being taken over by process ${claimer.pid}`;
          throw this.#locked(`its lock ${who}; if no process writes it, remove ${this.lock}`);
        }
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
      }
      if (this.takenOverFrom !== undefined) this.#sweep();
    } catch (cause) {
      throw lockError(this.lock, cause);
    } finally {
      remove(this.#temporary);
    }
  }

  /** Makes `path` (the lock or a claim) ours. Returns who is in the way if another try may succeed; throws LOCKED if not. */
  #take(path: string): Holder | 'changed' | undefined {
    if (this.#create(path)) return undefined;
    const text = this.#read(path);
    if (text === undefined) return 'changed';
    const holder = holderOf(text);
    if (!holder) throw this.#locked(`${path} is not a lock of h5log; if no process writes the file, remove it`);
    // NFS can report a link() as failed that has succeeded.
    if (holder.token === this.token) return undefined;
    if (!isGone(holder)) {
      // The holder of a claim is about to get the lock or to give up.
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
      // The claim on a claim may have been swept by the process that has got the lock meanwhile.
      if (errno(error) === 'ENOENT') return 'changed';
      throw error;
    }
    this.takenOverFrom = holder.token;
    return undefined;
  }

  /** Links the prepared lock file to `path`. False if `path` exists. */
  #create(path: string): boolean {
    try {
      try {
        linkSync(this.#temporary, path);
      } catch (error) {
        // No hard links (exFAT, some network file systems). 'wx' is as exclusive, but the file is incomplete for a moment, which
        // others read as LOCKED.
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

  /** Removes files of processes that were killed while taking the lock. While we hold it, no old claim has any effect. */
  #sweep(): void {
    try {
      this.#sweepAll();
    } catch {
      // We hold the lock. A directory that cannot be listed, or a leftover that cannot be read, is no reason to give it up.
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
    // It does not exist. Or it cannot be removed, which does no harm: nobody else uses its name.
  }
}

function lockError(lock: string, cause: unknown): H5LogError {
  if (!['EACCES', 'EROFS', 'EPERM'].includes(errno(cause))) return storageFailure(lock, 'locking', cause);
  const message = `${lock} cannot be created, and h5log does not write without a lock: ${errno(cause)}`;
  return new H5LogError('READ_ONLY', message, { file: lock.slice(0, -'.lock'.length), cause });
}

/** The process that holds a lock, as stored in the lock file. What the system does not provide is ''. */
export interface Holder {
  readonly host: string;
  /** Boot id; changes at every reboot. */
  readonly boot: string;
  readonly pid: number;
  /** Start time of the process in clock ticks since boot: distinguishes it from a later process with the same pid. */
  readonly started: string;
  readonly token: string;
  /** The pid namespace: in another container the same pid is another process. */
  readonly pids?: string;
  /** Thread id and start time of a worker thread, which can end before its process does. */
  readonly thread?: string;
}

/** Describes this process, without a token. */
export function thisProcess(): Omit<Holder, 'token'> {
  return {
    host: hostname(),
    boot: read('/proc/sys/kernel/random/boot_id'),
    pid: process.pid,
    started: statOf(process.pid)?.started ?? '',
    pids: pidNamespace(),
    ...workerThread(),
  };
}

/** Parses a lock file; undefined if it is not one of h5log. */
function holderOf(text: string): Holder | undefined {
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

/** True only if it is certain that the process has ended: it ran on this machine, since the last boot, in this pid namespace. */
function isGone(holder: Holder): boolean {
  return isFromHere(holder) && !isRunning(holder);
}

/** Why a lock is not taken over, for the LOCKED message. */
function whyNotTaken(holder: Holder, lock: string): string {
  const who = `process ${holder.pid} on ${holder.host}`;
  if (isFromHere(holder)) return `${who} has it open for writing`;
  const self = thisProcess();
  const why =
    holder.host !== self.host
      ? `${who}, another machine, had it open for writing`
      : holder.boot !== self.boot
        ? `${who} had it open for writing before the machine was rebooted`
        : `${who} had it open for writing in another container`;
  return `${why}; if that process is gone, remove ${lock}`;
}

function isFromHere(holder: Holder): boolean {
  const self = thisProcess();
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
    // EPERM: it runs as another user.
    return errno(error) !== 'ESRCH';
  }
}

/** Whether the thread that took the lock still runs: a terminated worker cannot release its lock. */
function hasThread({ pid, thread }: Holder): boolean {
  if (thread === undefined) return true;
  const [id = '', began] = thread.split(' ');
  const stat = statOf(`${pid}/task/${id}`);
  return stat !== undefined && stat.started === began;
}

/** This worker thread. Empty on the main thread, which lives as long as the process, and without /proc. */
function workerThread(): { thread?: string } {
  const id = /^\d+\/task\/(\d+)$/.exec(linkAt('/proc/thread-self'))?.[1];
  const began =
    id === undefined || id === String(process.pid) ? undefined : statOf(`${process.pid}/task/${id}`)?.started;
  return began === undefined ? {} : { thread: `${id} ${began}` };
}

/** Parses /proc/pid/stat, see proc(5). The process name in parentheses may itself contain spaces and parentheses. */
function statOf(pid: number | string): { started: string; ended: boolean } | undefined {
  const text = read(`/proc/${pid}/stat`);
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, threads, started] = [fields[0], fields[17], fields[19]];
  if (started === undefined) return undefined;
  // A zombie has ended unless some of its threads still run: those may be in the middle of a write.
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
