import { command, json } from '../command.ts';
import { counted, scaled, seconds, several } from '../print.ts';

export default command({
  name: 'compact',
  summary: 'write a log file anew, with only what can still be seen in it',
  details: [
    'Data that was written over, old tables, old structure and all earlier commits stay behind. What is left of a dataset is put together to as few blocks as possible; ' +
      'filtered pieces of which everything can be seen are copied as they are stored. A file with subfiles becomes one file. OUT appears when it is complete.',
  ],
  positionals: [
    { name: 'IN', help: 'the log file; its subfiles are found beside it' },
    { name: 'OUT', help: 'the new file' },
  ],
  options: {
    force: { type: 'flag', short: 'f', help: 'replace OUT if it exists' },
    memory: { type: 'count', value: 'MIB', least: 1, default: 256, help: 'memory to use, in MiB' },
    'no-checksum': { type: 'flag', help: 'write no checksums' },
    json,
  },
  examples: [{ command: 'compact run.h5 small.h5', says: 'run.h5 stays as it is' }],
  async run({ values, positionals, context }) {
    // One rank is enough: the disk is the limit.
    if (context.comm.rank > 0) return 0;
    const { compact } = await import('../../tools/compact/compact.ts');
    const [input, output] = positionals as readonly [string, string];
    const result = await compact(input, output, {
      force: values.force,
      memory: values.memory * 2 ** 20,
      checksum: !values['no-checksum'],
      progress: ({ datasets, total, dataset, bytes }) =>
        context.progress.show(datasets / Math.max(1, total), `${dataset}, ${scaled(bytes, 'B')}`),
    });
    if (values.json) context.printJson({ input, output, ...result });
    else {
      const { datasets, copied, blocks, blocksBefore, kept, bytes, bytesBefore } = result;
      context.print(
        `${input}: ${counted(bytesBefore)} bytes, ${output}: ${counted(bytes)} bytes (${((100 * bytes) / bytesBefore).toFixed(1)} %) in ${seconds(result.seconds)}`,
      );
      context.print(
        `  ${several(datasets, 'dataset')} of the log, ${several(blocksBefore, 'block')} before, ${counted(blocks)} now, ${counted(kept)} copied as stored`,
      );
      if (copied > 0) context.print(`  ${several(copied, 'other dataset')} copied`);
    }
    return 0;
  },
});
