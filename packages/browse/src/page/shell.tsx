import { App, DataProvider } from '@h5web/app';
import { type ReactElement, useEffect, useMemo, useState } from 'react';
import type { FileSource } from '../reader/browsed-file.ts';
import { Chooser, useDrop } from './chooser.tsx';
import { LogPanel } from './log-panel.tsx';
import { LogProvider } from './provider.ts';
import { StateBar } from './state-bar.tsx';
import { type OpenFile, useOpenFile } from './use-open-file.ts';

interface Props {
  readonly source: FileSource | null;
  /** By the server of h5log browse: there is one file, and a log is followed. */
  readonly isServed: boolean;
}

/** The page: which file, which state of it, and what is shown of that. */
export function Shell({ source: initial, isServed }: Props): ReactElement {
  const [source, setSource] = useState(initial);
  const isOver = useDrop(isServed ? null : setSource);
  const file = useOpenFile(source, isServed);
  const title = 'summary' in file ? file.summary.name : undefined;
  useEffect(() => {
    document.title = title === undefined ? 'h5log browse' : `${title} - h5log browse`;
  }, [title]);
  if (file.status === 'open')
    return <Opened key={file.id} file={file} {...(!isServed && { onClose: () => setSource(null) })} />;
  return (
    <main className="welcome">
      <h1>h5log browse</h1>
      {file.status === 'opening' && <p role="status">Opening ...</p>}
      {file.status === 'failed' && (
        <p role="alert" className="problem">
          {file.error}
        </p>
      )}
      {!isServed && file.status !== 'opening' && <Chooser isOver={isOver} onChoose={setSource} />}
      <footer>
        <a href="licenses.txt">Licenses</a>
      </footer>
    </main>
  );
}

type Tab = 'data' | 'log';

/** The object that is chosen in the tree of h5web, which keeps it to itself. */
function chosenInTree(): string | undefined {
  return document.querySelector<HTMLElement>('[role=treeitem][aria-selected=true]')?.dataset.path;
}

function Opened({ file, onClose }: { file: OpenFile; onClose?: () => void }): ReactElement {
  const { client, summary, asOf } = file;
  const [tab, setTab] = useState<Tab>('data');
  const shown = asOf ?? summary.sequence;
  // A new object makes h5web read everything again: for another state only.
  const api = useMemo(
    () => new LogProvider(client, summary.name, shown === summary.sequence ? undefined : shown),
    [client, summary, shown],
  );
  return (
    <div className="shell">
      <header>
        <h1>
          <span className="brand">h5log</span> <span className="name">{summary.name}</span>
        </h1>
        <StateBar file={file} />
        {onClose && (
          <button type="button" onClick={onClose}>
            Open another
          </button>
        )}
        <Tabs tab={tab} onTab={setTab} />
      </header>
      <main>
        <div id="panel-data" role="tabpanel" aria-labelledby="tab-data" hidden={tab !== 'data'}>
          <DataProvider api={api}>
            <App />
          </DataProvider>
        </div>
        <div id="panel-log" role="tabpanel" aria-labelledby="tab-log" hidden={tab !== 'log'}>
          {tab === 'log' && <LogPanel file={file} chosen={chosenInTree()} />}
        </div>
      </main>
    </div>
  );
}

const TABS: readonly (readonly [Tab, string])[] = [
  ['data', 'Data'],
  ['log', 'Log'],
];

/** As the WAI-ARIA pattern for tabs has it: arrow keys move between them. */
function Tabs({ tab, onTab }: { tab: Tab; onTab: (tab: Tab) => void }): ReactElement {
  const move = (by: number): void => {
    const at = TABS.findIndex(([name]) => name === tab);
    const [next] = TABS[(at + by + TABS.length) % TABS.length] as readonly [Tab, string];
    onTab(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <div role="tablist" aria-label="View">
      {TABS.map(([name, label]) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={`tab-${name}`}
          aria-controls={`panel-${name}`}
          aria-selected={tab === name}
          tabIndex={tab === name ? 0 : -1}
          onClick={() => onTab(name)}
          onKeyDown={({ key }) => {
            if (key === 'ArrowRight') move(1);
            if (key === 'ArrowLeft') move(-1);
          }}
        >
          {label}
        </button>
      ))}
    </div>
  );
}
