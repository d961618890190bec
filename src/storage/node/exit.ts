import { writeSync } from 'node:fs';

/** What an open file does when the process ends. All of it blocking: nothing else runs any more. */
export interface Lifetime {
  describe(): {
    readonly name: string;
    readonly rank: number;
    readonly size: number;
    /** The last commit, and what was posted since. */
    readonly sequence: number;
    readonly requests: number;
    readonly bytes: number;
  };
  /** Commits and closes. */
  close(): void;
  /** Closes without a commit. */
  end(): void;
  /** The same whatever becomes of it. */
  abandon(): void;
  /** Commits before a signal takes effect. */
  readonly onSignal: (() => void) | null;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const open = new Set<Lifetime>();
let crashed = false;
let listening = false;

function crash(): void {
  crashed = true;
  for (const file of [...open]) {
    const line = attempt(() => abandoned(file));
    if (line) print(line);
  }
}

/** An exception that nobody caught: what was not flushed is lost, and somebody should know. */
function abandoned(file: Lifetime): string | undefined {
  const { name, sequence, requests, bytes } = file.describe();
  file.abandon();
  if (requests === 0) return undefined;
  return `h5log: ${name}: ${requests} requests (${bytes} bytes) posted after commit ${sequence} were not committed`;
}

/** A normal end, or process.exit. Gives a line to print if that was a mistake: the process then ends with an error. */
function left(file: Lifetime): string | undefined {
  const { name, rank, size, sequence, requests } = file.describe();
  if (size === 1) {
    file.close();
    return undefined;
  }
  // The other ranks may not be there any more, so nothing can be committed.
  try {
    file.end();
  } catch {
    // There is a more important message to print.
  }
  const lost = requests === 0 ? '' : `; ${requests} requests after commit ${sequence} were not committed`;
  return `h5log: rank ${rank} of ${size} ended without closing ${name}${lost}`;
}

function exit(): void {
  if (crashed) return;
  for (const file of [...open]) {
    const line = attempt(() => left(file));
    if (!line) continue;
    print(line);
    process.exitCode ||= 1;
  }
}

function signalled(signal: NodeJS.Signals): void {
  for (const file of [...open]) if (file.onSignal) attempt(file.onSignal);
  // Raised again without us, the signal does what it would have done.
  for (const name of SIGNALS) process.removeListener(name, signalled);
  process.kill(process.pid, signal);
}

/** One file's trouble must not keep the others from being committed. */
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
    // Nobody reads standard error; the process ends anyway.
  }
}

/** Takes part in the end of the process until the function that is returned is called. */
export function registerExitHooks(file: Lifetime): () => void {
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

/** Signals are only listened to while somebody wants them: a listener changes what they do. */
function listenToSignals(): void {
  const wanted = [...open].some(({ onSignal }) => onSignal !== null);
  for (const signal of SIGNALS) {
    const heard = process.listeners(signal).includes(signalled);
    if (wanted && !heard) process.on(signal, signalled);
    if (!wanted && heard) process.removeListener(signal, signalled);
  }
}
