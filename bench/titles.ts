import { counted } from '../src/cli/print.ts';
import { FLUSHES } from './peers/flushes.ts';
import { READS, ROWS } from './peers/small.ts';
import { BLOCKS } from './peers/stream.ts';

/** What is compared, in words that need nothing around them; undefined for what only we measure. */
export function titleOf(id: string, scale: number): string | undefined {
  const many = (full: number): string => counted(full * scale);
  const rows = `${many(ROWS)} rows of 3 float64`;
  const titles: Readonly<Record<string, string>> = {
    'small/ordered/write': `Write ${rows}, one by one, in order`,
    'small/shuffled/write': `Write ${rows}, one by one, in random order`,
    'small/ordered/read': `Read ${rows} at once, written in order`,
    'small/shuffled/read': `Read ${rows} at once, written in random order`,
    'small/ordered/random': `Read ${counted(READS)} random boxes of 10x3, written in order`,
    'small/shuffled/random': `Read ${counted(READS)} random boxes of 10x3, written in random order`,
    'stream/async-lent': `Write ${many(BLOCKS)} MiB in blocks of 1 MiB`,
    'flushes/total': `Append ${many(FLUSHES)} rows of 1 KiB, with a flush after each`,
  };
  return titles[id];
}
