// A process that competes for a lock; see lock.test.ts. It is bundled to JavaScript first, as Node 20 runs no TypeScript.
import { readFileSync, writeFileSync } from 'node:fs';
import { isH5LogError } from '../../../src/base/errors.ts';
import { acquireLock, type Lock } from '../../../src/storage/node/lock.ts';

const [task, path] = process.argv.slice(2) as ['race' | 'storm' | 'hold', string];

function tryLock(): Lock | undefined {
  try {
    return acquireLock(path);
  } catch (error) {
    if (isH5LogError(error, 'LOCKED')) return undefined;
    throw error;
  }
}

function spinUntil(time: number): void {
  while (Date.now() < time);
}

/** Told a moment, all try at that moment; the answer is whether this one has it. It is kept until the next message. */
function race(): void {
  let lock: Lock | undefined;
  process.on('message', (at: number) => {
    lock?.release();
    if (at === 0) {
      lock = undefined;
      process.send?.('released');
      return;
    }
    spinUntil(at);
    lock = tryLock();
    process.send?.(lock !== undefined);
  });
}

/** Takes and gives back for ever. Inside, `<path>.inside` names the process that is in: nobody else alive may be. */
function storm(): void {
  const inside = `${path}.inside`;
  for (let rounds = 0; ; ) {
    const lock = tryLock();
    if (!lock) continue;
    const before = readFileSync(inside, 'utf8');
    if (before !== '' && isAlive(Number(before))) process.send?.(`${before} was inside with ${process.pid}`);
    writeFileSync(inside, String(process.pid));
    for (const end = performance.now() + 0.3; performance.now() < end; );
    const after = readFileSync(inside, 'utf8');
    if (after !== String(process.pid)) process.send?.(`${after} came in beside ${process.pid}`);
    writeFileSync(inside, '');
    lock.release();
    if (++rounds % 20 === 0) process.send?.(20);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A killed process that its parent has not collected yet still answers to signals.
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

if (task === 'race') race();
else if (task === 'storm') storm();
else {
  acquireLock(path);
  process.send?.('held');
  setInterval(() => undefined, 1000);
}
