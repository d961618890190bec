import { readFileSync } from 'node:fs';

/** The most memory that this process has had, in bytes. resourceUsage() may go on from the maximum of the process that started this one. */
export function peakMemory(): number {
  try {
    const [, kilobytes] = /VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    if (kilobytes !== undefined) return Number(kilobytes) * 1024;
  } catch {
    // Another system than Linux.
  }
  return process.resourceUsage().maxRSS * 1024;
}
