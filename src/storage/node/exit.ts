import { writeSync } from 'node:fs';

/** What an open file does when the process ends. All hooks block: the event loop no longer runs. */
interface ExitHooks {
  describe(): {
    readonly name: string;
    readonly rank: number;
    readonly size: number;
    /** Number of the last commit. */
    readonly sequence: number;
    /** Writes posted since the last commit, those of a flush under way included. */
    readonly requests: number;
    readonly bytes: number;
  };
  /** Commits and closes the file. */
  close(): void;
  /** Closes the file without a commit. */
  end(): void;
  /** Closes the file without a commit and ignores errors. */
  abandon(): void;
  /** Commits before a signal takes effect; null if the user does not want that. */
  readonly onSignal: (() => void) | null;
  /** Lets others write to the file: the process ends without having closed it. */
  unlock(): void;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const open = new Set<ExitHooks>();
let crashed = false;
let listening = false;

/** After an exception that nothing catches. A program with a handler of its own goes on, and so do its files. */
function crash(): void {
  if (process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback()) return;
  crashed = true;
  for (const file of [...open]) {
    const line = attempt(() => abandon(file));
    if (line) print(line);
  }
}

/** After an uncaught exception: nothing is committed. Returns a line that says what is lost. */
function abandon(file: ExitHooks): string | undefined {
  const { name, sequence, requests, bytes } = file.describe();
  file.abandon();
  if (requests === 0) return undefined;
  return `h5log: ${name}: ${requests} requests (${bytes} bytes) posted after commit ${sequence} were not committed`;
}

/**
 * At a normal end or process.exit. One rank commits and closes. Several ranks cannot commit at exit: for them an open file is a
 * mistake. Returns a line if something was lost or left open; the process then ends with an error.
 */
function closeAtExit(file: ExitHooks): string | undefined {
  const { name, rank, size, sequence, requests, bytes } = file.describe();
  if (size === 1) {
    try {
      file.close();
      return undefined;
    } catch (error) {
      attempt(() => file.abandon());
      const lost = requests === 0 ? 'changes' : `${requests} requests (${bytes} bytes)`;
      return `h5log: ${name}: ${lost} posted after commit ${sequence} were lost at exit: ${(error as Error).message}`;
    }
  }
  // The other ranks may have ended, so nothing can be committed.
  try {
    file.end();
  } catch {
    // The message below is more important.
  }
  const lost = requests === 0 ? '' : `; ${requests} requests after commit ${sequence} were not committed`;
  return `h5log: rank ${rank} of ${size} ended without closing ${name}${lost}`;
}

function exit(): void {
  if (crashed) return;
  for (const file of [...open]) {
    const line = attempt(() => closeAtExit(file));
    if (!line) continue;
    print(line);
    process.exitCode ||= 1;
  }
}

function signalled(signal: NodeJS.Signals): void {
  for (const file of [...open]) if (file.onSignal) attempt(file.onSignal);
  // Raised again without our listener, the signal has its usual effect.
  for (const name of SIGNALS) process.removeListener(name, signalled);
  // A program with a listener of its own goes on.
  if (process.listenerCount(signal) === 0)
    for (const file of [...open]) if (file.onSignal) attempt(() => file.unlock());
  process.kill(process.pid, signal);
}

/** Prints an error instead of throwing it: a failure of one file must not keep the others from being committed. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    print(`h5log: ${(error as Error).message}`);
    return undefined;
  }
}

function print(line: string): void {
  try {
    writeSync(2, `${line}\n`);
  } catch {
    // Standard error is closed, and the process is ending anyway.
  }
}

/** Registers what an open file does when the process ends. Returns a function that removes the hooks. */
export function registerExitHooks(file: ExitHooks): () => void {
  if (!listening) {
    listening = true;
    process.on('exit', exit);
    process.on('uncaughtExceptionMonitor', crash);
  }
  open.add(file);
  listenToSignals();
  return () => {
    open.delete(file);
    listenToSignals();
  };
}

/** Listens to signals only while a file wants to commit on them: a listener disables their default effect. */
function listenToSignals(): void {
  const wanted = [...open].some(({ onSignal }) => onSignal !== null);
  for (const signal of SIGNALS) {
    const heard = process.listeners(signal).includes(signalled);
    if (wanted && !heard) process.on(signal, signalled);
    if (!wanted && heard) process.removeListener(signal, signalled);
  }
}
