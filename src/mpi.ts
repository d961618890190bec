export { mpi } from './comm/mpi/mpi.ts';
