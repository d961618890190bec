// A program that ends in one of several ways with requests pending; run by lifetime.test.ts.
import { File } from 'h5log';

const [, , path = '', how = ''] = process.argv;
const file = await File.create(path, {
  commitOnSignal: how === 'signal with commit',
  // Publishing keeps a file some MiB longer than its contents.
  publish: how === 'full disk' ? 'never' : 'flush',
});
const dataset = file.createDataset('x', { dtype: 'int32', shape: [4], fill: -1 });
dataset.write([1, 2], { start: [0], count: [2] });
await file.flush();
dataset.write([3, 4], { start: [2], count: [2] });

switch (how) {
  case 'process.exit':
    process.exit(0);
    break;
  case 'full disk': {
    const big = file.createDataset('big', { dtype: 'uint8', shape: [8 * 2 ** 20] });
    big.write(new Uint8Array(8 * 2 ** 20));
    break;
  }
  case 'handled exception':
    process.on('uncaughtException', () => {
      dataset.write([5], { start: [3], count: [1] });
      setTimeout(() => {}, 50);
    });
    throw new Error('handled');
  case 'exception':
    throw new Error('something went wrong');
  case 'exception during a flush':
    void file.flush();
    throw new Error('something went wrong');
  case 'rejection':
    void Promise.reject(new Error('nobody waits'));
    break;
  case 'exit during a flush':
    void file.flush();
    process.exit(0);
    break;
  case 'signal':
  case 'signal with commit':
    process.stdout.write('ready\n');
    setInterval(() => {}, 1000);
    break;
  default:
  // the end of the program
}
