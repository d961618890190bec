import { command, json, memory } from '../command.ts';
import { counted, scaled, seconds, several } from '../print.ts';

export default command({
  name: 'compact',
  summary: 'copy a file without overwritten data, old commits and free space',
  details: [
    'Leaves out overwritten data, old tables, old structure and all earlier commits. The visible data of a dataset is merged into as few blocks as possible; filtered chunks ' +
      'that are visible as a whole are copied as stored. A file with subfiles becomes one file. OUT appears under its name when it is complete.',
    'An ordinary file stays ordinary: its objects are copied, and what no object uses is left out. References lead to the new objects. Data in other files and virtual datasets stay where they are: OUT names the same files.',
  ],
  positionals: [
    { name: 'IN', help: 'the file; its subfiles are found automatically' },
    { name: 'OUT', help: 'the new file' },
  ],
  options: {
    force: { type: 'flag', short: 'f', help: 'replace OUT if it exists' },
    memory,
    'no-checksum': { type: 'flag', help: 'write no checksums' },
    json,
  },
  examples: [{ command: 'compact run.h5 small.h5', says: 'run.h5 is not changed' }],
  async run({ values, positionals, context }) {
    // One rank is enough: the disk is the limit.
    if (context.comm.rank > 0) return 0;
    const { compact } = await import('../../tools/compact/compact.ts');
    const [input, output] = positionals as readonly [string, string];
    const result = await compact(input, output, {
      force: values.force,
      memory: values.memory,
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
      if (datasets > 0 || copied === 0)
        context.print(
          `  ${several(datasets, 'dataset')} of the log, ${several(blocksBefore, 'block')} before, ${counted(blocks)} now, ${counted(kept)} copied as stored`,
        );
      if (copied > 0) context.print(`  ${several(copied, datasets > 0 ? 'other dataset' : 'dataset')} copied`);
    }
    return 0;
  },
});
