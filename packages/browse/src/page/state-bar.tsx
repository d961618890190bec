import { type ReactElement, useEffect, useState } from 'react';
import { countText, sizeText } from './texts.ts';
import type { OpenFile } from './use-open-file.ts';

/** Milliseconds that the slider rests before the state is opened. */
const REST = 150;

/** Which commit is shown: a slider over all of them, and following. */
export function StateBar({ file }: { file: OpenFile }): ReactElement {
  const { summary, asOf, showAsOf, isLive, setLive, problem } = file;
  const { commits, connector, sequence } = summary;
  const last = commits.length - 1;
  const found = asOf === undefined ? last : commits.findIndex((commit) => commit.sequence === asOf);
  const [position, setPosition] = useState<number | null>(null);
  useEffect(() => {
    if (position === null) return undefined;
    const timer = setTimeout(() => {
      showAsOf(position === last ? undefined : commits[position]?.sequence);
      setPosition(null);
    }, REST);
    return () => clearTimeout(timer);
  }, [position, commits, last, showAsOf]);
  if (connector !== 'log')
    return (
      <p className="state" role="status">
        an ordinary HDF5 file, without a log
      </p>
    );
  const at = position ?? found;
  const commit = commits[at];
  const text = commit
    ? `commit ${commit.sequence} of ${sequence}, ${commit.time.toLocaleString()}, ${sizeText(commit.bytes)}, ${countText(commit.requests, 'request')}`
    : `commit ${sequence}`;
  return (
    <div className="state">
      {last > 0 && (
        <input
          type="range"
          min={0}
          max={last}
          step={1}
          value={at}
          aria-label="Commit"
          aria-valuetext={text}
          onChange={({ target }) => setPosition(target.valueAsNumber)}
        />
      )}
      <output aria-live="polite" data-sequence={commit?.sequence ?? sequence}>
        {text}
      </output>
      {asOf !== undefined && (
        <button type="button" onClick={() => showAsOf(undefined)}>
          Newest
        </button>
      )}
      <label title={isLive === null ? 'A local file cannot be followed: open it by its URL, or with h5log browse' : ''}>
        <input
          type="checkbox"
          checked={isLive === true}
          disabled={isLive === null}
          onChange={({ target }) => setLive(target.checked)}
        />
        Live
      </label>
      {problem !== undefined && (
        <span role="alert" className="problem">
          {problem}
        </span>
      )}
    </div>
  );
}
