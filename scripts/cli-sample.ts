// The file that docs/cli.md looks at, written by two ranks in three flushes; run by scripts/cli-docs.ts on threads.
import { type Communicator, File, T } from 'h5log';

export default function sample(comm: Communicator, { path }: { path: string }): void {
  const file = File.createSync(path, { comm });
  file.attributes.set('title', 'two days of weather');
  const temperature = file.createDataset('/air/temperature', {
    dtype: 'float64',
    shape: [0, 4, 6],
    maxShape: [null, 4, 6],
    fill: -999,
  });
  temperature.attributes.set('units', 'degrees');
  const stations = file.createDataset('/stations', {
    dtype: T.compound({ name: T.string({ length: 8 }), height: 'float32' }),
    shape: [3],
  });
  file.createSoftLink('/latest', '/air/temperature');
  for (let day = 0; day < 2; day++) {
    temperature.resize([day + 1, 4, 6]);
    // Rows of their own and one of the neighbour: the higher rank wins.
    const start = comm.rank === 0 ? 0 : 1;
    const rows = Float64Array.from({ length: 18 }, (_, i) => day * 10 + comm.rank * 5 + i / 4);
    temperature.write(rows, { start: [day, start, 0], count: [1, 3, 6] });
    if (comm.rank === 0 && day === 0) {
      stations.write([
        { name: 'Harbour', height: 2.5 },
        { name: 'Hill', height: 311 },
        { name: 'Forest', height: 48.25 },
      ]);
    }
    file.flushSync();
  }
  if (comm.rank === 1) temperature.write([21.5], { start: [1, 3, 5], count: [1, 1, 1] });
  file.closeSync();
}
