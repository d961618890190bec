// Compares two files, and prints what it found and the most memory it took in MiB: memory.ts A B
import { datasetLines, differencesOf } from 'h5log/tools';

const [a, b] = process.argv.slice(2) as [string, string];
let values = 0;
for await (const event of differencesOf(a, b)) if (event.type === 'value') values++;
const compared = process.resourceUsage().maxRSS / 1024;
let lines = 0;
for await (const _ of datasetLines(a, { datasets: ['/d'], slab: { count: [4_000_000] } })) lines++;
console.log(JSON.stringify({ values, lines, compared, printed: process.resourceUsage().maxRSS / 1024 }));
