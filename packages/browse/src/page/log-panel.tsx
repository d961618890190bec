import { type ReactElement, useState } from 'react';
import type { DatasetFacts, LogFacts, Verified } from '../reader/log-facts.ts';
import { BlockMap } from './block-map.tsx';
import { countText, messageOf, sizeText } from './texts.ts';
import { Timeline } from './timeline.tsx';
import { useCalled } from './use-called.ts';
import type { OpenFile } from './use-open-file.ts';

/** The log of a file, and of one of its datasets: who wrote what, when. */
export function LogPanel({ file, chosen }: { file: OpenFile; chosen: string | undefined }): ReactElement {
  const { client, summary, asOf } = file;
  const { value: facts, error } = useCalled(
    (signal) => client.call('logFacts', [asOf], { signal }),
    [client, summary, asOf],
  );
  const [picked, setPicked] = useState(chosen);
  if (error !== undefined)
    return (
      <div className="log">
        <p role="alert" className="problem">
          {error}
        </p>
        <Verify file={file} />
      </div>
    );
  if (!facts) return <p role="status">Reading the log ...</p>;
  const withBlocks = facts.datasets.filter(({ blocks }) => blocks > 0);
  const mapped = withBlocks.find(({ path }) => path === picked) ?? mostBlocks(withBlocks);
  return (
    <div className="log">
      {facts.flushes.length > 0 && <Timeline file={file} flushes={facts.flushes} />}
      <Bytes facts={facts} />
      {mapped && (
        <BlockMap
          key={mapped.path}
          file={file}
          path={mapped.path}
          paths={withBlocks.map(({ path }) => path)}
          onPath={setPicked}
        />
      )}
      <Datasets datasets={facts.datasets} mapped={mapped?.path} onPick={setPicked} />
      <Verify file={file} />
    </div>
  );
}

function mostBlocks(datasets: readonly DatasetFacts[]): DatasetFacts | undefined {
  return [...datasets].sort((a, b) => b.blocks - a.blocks)[0];
}

function Bytes({ facts }: { facts: LogFacts }): ReactElement {
  const { size, live, dead, structure } = facts;
  const parts = [
    ['live', 'live data', live],
    ['dead', 'dead data: hidden, cut off or deleted', dead],
    ['structure', 'structure, tables and free space', structure],
  ] as const;
  return (
    <section aria-labelledby="bytes-title">
      <h2 id="bytes-title">Bytes</h2>
      <div className="bytes" aria-hidden="true">
        {parts.map(([name, , bytes]) => (
          <span key={name} data-part={name} style={{ flexGrow: Math.max(bytes, 0) }} />
        ))}
      </div>
      <dl className="legend">
        {parts.map(([name, label, bytes]) => (
          <div key={name}>
            <dt data-part={name}>{label}</dt>
            <dd>
              {sizeText(bytes)} ({((100 * bytes) / Math.max(1, size)).toFixed(1)} %)
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

interface DatasetsProps {
  readonly datasets: readonly DatasetFacts[];
  readonly mapped: string | undefined;
  readonly onPick: (path: string) => void;
}

/** Rows of the table of datasets; more are left out, and said so. */
const ROWS = 500;

function Datasets({ datasets, mapped, onPick }: DatasetsProps): ReactElement {
  return (
    <section aria-labelledby="datasets-title">
      <h2 id="datasets-title">Datasets</h2>
      <div className="scrolled">
        <table>
          <thead>
            <tr>
              {['Dataset', 'Shape', 'Type', 'Blocks', 'Bytes', 'Dead', 'Other programs see'].map((title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {datasets.slice(0, ROWS).map(({ path, shape, dtype, blocks, bytes, dead, isLogged, seen }) => (
              <tr key={path} aria-current={path === mapped ? 'true' : undefined}>
                <th scope="row">
                  {blocks > 0 ? (
                    <button type="button" className="link" onClick={() => onPick(path)}>
                      {path}
                    </button>
                  ) : (
                    path
                  )}
                </th>
                <td>{shape.length === 0 ? 'scalar' : shape.join(' x ')}</td>
                <td>{dtype.length > 40 ? `${dtype.slice(0, 37)}...` : dtype}</td>
                <td className="number">{isLogged ? blocks.toLocaleString('en') : ''}</td>
                <td className="number">{sizeText(bytes)}</td>
                <td className="number">{isLogged ? sizeText(dead) : ''}</td>
                <td>{seen}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {datasets.length > ROWS && (
        <p>
          The first {ROWS} of {countText(datasets.length, 'dataset')}.
        </p>
      )}
    </section>
  );
}

type Verifying =
  | { readonly status: 'none' }
  | { readonly status: 'running'; readonly part: number; readonly stop: () => void }
  | { readonly status: 'done'; readonly result: Verified }
  | { readonly status: 'failed'; readonly error: string };

function Verify({ file }: { file: OpenFile }): ReactElement {
  const { client } = file;
  const [verifying, setVerifying] = useState<Verifying>({ status: 'none' });
  const start = async (): Promise<void> => {
    const controller = new AbortController();
    const stop = (): void => controller.abort(new Error('stopped'));
    setVerifying({ status: 'running', part: 0, stop });
    try {
      const onProgress = (part: number): void => setVerifying({ status: 'running', part, stop });
      const result = await client.call('verify', [], { signal: controller.signal, onProgress });
      setVerifying({ status: 'done', result });
    } catch (error) {
      setVerifying({ status: 'failed', error: messageOf(error) });
    }
  };
  return (
    <section aria-labelledby="verify-title">
      <h2 id="verify-title">Verify</h2>
      <p>
        Reads every committed byte and compares it with its checksum.{' '}
        {verifying.status === 'running' ? (
          <>
            <progress value={verifying.part} aria-label="Verified" />{' '}
            <button type="button" onClick={verifying.stop}>
              Stop
            </button>
          </>
        ) : (
          <button type="button" onClick={start}>
            Verify the file
          </button>
        )}
      </p>
      <div role="status" data-verified={verifying.status}>
        {verifying.status === 'failed' && <p className="problem">{verifying.error}</p>}
        {verifying.status === 'done' && <VerifyReport {...verifying.result} />}
      </div>
    </section>
  );
}

function VerifyReport({ sound, checksums, problems, newestSound, bytes, commits }: Verified): ReactElement {
  const what = checksums ? 'with checksums' : 'without checksums: structure and tables were checked';
  return (
    <>
      <p className={sound ? '' : 'problem'}>
        {sound ? 'Sound' : `Damaged, ${countText(problems.length, 'problem')}`}: {sizeText(bytes)},{' '}
        {countText(commits, 'commit')}, {what}.
        {!sound && (newestSound === null ? ' No commit is good.' : ` The newest good commit is ${newestSound}.`)}
      </p>
      <ul>
        {problems.map(({ offset, what: problem }) => (
          <li key={`${offset} ${problem}`}>
            {offset === undefined ? '' : `at byte ${offset}: `}
            {problem}
          </li>
        ))}
      </ul>
    </>
  );
}
