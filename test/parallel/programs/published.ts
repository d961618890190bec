import { mpi } from 'h5log/mpi';
import published from '../published-rank.ts';

const [path = '', options = '{}'] = process.argv.slice(2);
published(mpi(), { path, ...JSON.parse(options) });
