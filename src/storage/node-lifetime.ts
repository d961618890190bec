import { writeSync } from 'node:fs';

/** What an open file does when the process ends. All of it blocking: nothing else runs any more. */
export interface Lifetime {
  /** A normal end, or process.exit. Gives a line to print if that was a mistake: the process then ends with an error. */
  exit(): string | undefined;
  /** An exception that nobody caught: gives the line to print, or nothing. */
  crash(): string | undefined;
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
    const line = attempt(() => file.crash());
    if (line) print(line);
  }
}

function exit(): void {
  if (crashed) return;
  for (const file of [...open]) {
    const line = attempt(() => file.exit());
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
export function watchProcess(file: Lifetime): () => void {
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
