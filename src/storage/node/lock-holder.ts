import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { errno } from './path.ts';

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
