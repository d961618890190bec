// Replays a file in a process of its own and prints the peak of its memory, before and after.
import { readFileSync } from 'node:fs';
import { replay } from 'h5log/tools';

// Not resourceUsage(): its maximum goes on from that of the process that started this one.
const peak = (): number => Number(/VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) * 1024;

const [, , input = '', output = '', memory = ''] = process.argv;
const idle = peak();
const { seconds, elements } = await replay(input, output, { memory: Number(memory) });
console.log(JSON.stringify({ idle, busy: peak(), seconds, elements }));
