export { mpi } from './comm/mpi.ts';
