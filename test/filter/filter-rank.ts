import { type Communicator, File } from 'h5log';

/** The sum of a dataset whose filter a module has to register. */
export default async function sumOf(_comm: Communicator, path: string): Promise<number> {
  await using file = await File.open(path);
  return (await file.dataset('x', 'int32').read()).reduce((a, b) => a + b, 0);
}
