import { type Communicator, File } from 'h5log';

/** Opens or creates a file, adds a group for each rank, and tells how many there are. */
export default async function rank(comm: Communicator, { path, mixed = false }: { path: string; mixed?: boolean }) {
  const mode = mixed && comm.rank === 1 ? 'r+' : 'a';
  const file = await File.open(path, { comm, mode } as { comm: Communicator; mode: 'a' });
  const before = [...file.keys()].length;
  for (let i = 0; i < comm.size; i++) file.createGroup(`g${before + i}`);
  const result = [file.mode, [...file.keys()].length];
  await file.close();
  return result;
}
