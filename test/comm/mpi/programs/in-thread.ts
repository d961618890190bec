// mpi() on a thread that is not the main one.
import { mpi } from 'h5log/mpi';

export default function rank(): { code?: string; message?: string } {
  try {
    mpi();
    return {};
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return { code, message };
  }
}
