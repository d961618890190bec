// Replays a file in a process of its own and prints the peak of its memory, before and after.
import { replay } from 'h5log/tools';
import { peakMemory } from '../../../src/bench/workload.ts';

const [, , input = '', output = '', memory = ''] = process.argv;
const idle = peakMemory();
const { seconds, elements } = await replay(input, output, { memory: Number(memory) });
console.log(JSON.stringify({ idle, busy: peakMemory(), seconds, elements }));
