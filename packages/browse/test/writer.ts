import { File } from '../../../src/index.ts';

/** A process that appends a row to `x` of a log whenever it is told to, and says when that is committed. */
const [path = ''] = process.argv.slice(2);
const file = await File.open(path, { mode: 'r+' });
const x = file.dataset('x', 'int32');
process.send?.('ready');
process.on('message', async (value: number | 'end') => {
  if (value === 'end') {
    await file.close();
    process.exit();
  }
  x.append([value, value, value]);
  await file.flush();
  process.send?.('flushed');
});
