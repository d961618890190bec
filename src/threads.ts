/** The entry point `h5log/threads`: ranks in worker threads of one process. */
export { runThreads } from './comm/threads/run.ts';
