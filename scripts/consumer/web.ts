// Compiled for a page: DOM types and no types of Node; bundled, then run without any global of Node.
import { type Communicator, File, solo } from 'h5log';
import { httpStorage, memoryStorage, opfsStorage } from 'h5log/storage';

/** The paths and attribute names in a file, in the order of their creation. */
export async function listing(blob: Blob): Promise<string[]> {
  const lines: string[] = [];
  const file = await File.open(blob);
  for (const name of file.group('/run').keys()) {
    const { path, attributes } = file.group(`/run/${name}`);
    lines.push(`${path}: ${[...attributes.keys()].join(', ')}`);
  }
  await file.close();
  return lines;
}

/** The code of the error that a file of other bytes gives. */
export async function refusal(blob: Blob): Promise<unknown> {
  try {
    await (await File.open(blob)).close();
    return undefined;
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
}

/** Written in memory and read back; then the error for a path, which only Node can open. */
export async function refusalOfPath(): Promise<string> {
  const storage = memoryStorage();
  const file = await File.create(storage, { comm: solo() });
  file.createDataset('x', { dtype: 'int32', shape: [3], filters: ['shuffle'] }).write([1, 2, 3]);
  await file.close();
  const found = await (await File.open(storage)).dataset('x', 'int32').read();
  try {
    await File.open('run.h5');
    return `${found.join()}; no error`;
  } catch (error) {
    const { code, message } = error as { code?: unknown; message?: unknown };
    return `${found.join()}; ${String(code)}: ${String(message)}`;
  }
}

/** The code of the error for a communicator of several ranks: the bundle has no code for them. */
export async function refusalOfRanks(): Promise<unknown> {
  const several = { ...solo(), rank: 0, size: 2 };
  try {
    await File.create(memoryStorage(), { comm: several as Communicator });
    return undefined;
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
}

/** Only compiled and bundled: httpStorage must not bring node's storage along. */
export function remote(url: string): Promise<File> {
  return File.open(httpStorage(url));
}

/** Only compiled: the DOM's own handles fit. */
export async function recorded(): Promise<File> {
  const folder = await navigator.storage.getDirectory();
  return File.open(opfsStorage(await folder.getFileHandle('run.h5'), 'r'));
}
