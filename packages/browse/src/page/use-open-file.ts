import { useCallback, useEffect, useState } from 'react';
import type { FileSource } from '../reader/browsed-file.ts';
import type { FileSummary } from '../reader/reader-session.ts';
import { ReaderClient } from './reader-client.ts';
import { messageOf } from './texts.ts';

/** Milliseconds between two looks for a newer commit. */
const INTERVAL = 500;
/** Failures in a row that end following: a look may fall between two writes. */
const MOST_FAILURES = 5;

/** An open file, the state of it that is shown, and whether newer ones are looked for. */
export interface OpenFile {
  readonly status: 'open';
  /** Another one for every file that is opened. */
  readonly id: number;
  readonly client: ReaderClient;
  readonly summary: FileSummary;
  /** undefined: the newest commit. */
  readonly asOf: number | undefined;
  showAsOf(sequence: number | undefined): void;
  /** null: cannot be followed. */
  readonly isLive: boolean | null;
  setLive(live: boolean): void;
  /** Why following ended. */
  readonly problem: string | undefined;
}

type Opening = { readonly status: 'none' | 'opening' } | { readonly status: 'failed'; readonly error: string };

type Opened = Pick<OpenFile, 'id' | 'client' | 'summary' | 'asOf'>;

let opened = 0;

/** Opens a file in a worker of its own, and follows it while `isLive`. */
export function useOpenFile(source: FileSource | null, isServed: boolean): OpenFile | Opening {
  const [opening, setOpening] = useState<Opening>({ status: source ? 'opening' : 'none' });
  const [file, setFile] = useState<Opened | null>(null);
  const [wantsLive, setLive] = useState(isServed);
  const [problem, setProblem] = useState<string>();

  useEffect(() => {
    setFile(null);
    setProblem(undefined);
    setOpening({ status: source ? 'opening' : 'none' });
    if (!source) return undefined;
    const worker = new Worker('worker.js', { type: 'module' });
    const client = new ReaderClient(worker);
    let isCurrent = true;
    client.call('open', [source]).then(
      (summary) => isCurrent && setFile({ id: ++opened, client, summary, asOf: undefined }),
      (error) => isCurrent && setOpening({ status: 'failed', error: messageOf(error) }),
    );
    return () => {
      isCurrent = false;
      worker.terminate();
    };
  }, [source]);

  const canFollow = file !== null && source !== null && 'url' in source && file.summary.connector === 'log';
  const isLive = canFollow && wantsLive;
  const client = file?.client;
  useEffect(() => {
    if (!isLive || !client) return undefined;
    let isCurrent = true;
    const look = async (): Promise<void> => {
      for (let failures = 0; isCurrent; ) {
        try {
          const summary = await client.call('refresh', []);
          failures = 0;
          // Not as a transition: h5web makes its stores while it renders, and would make new ones at every attempt.
          if (summary && isCurrent) setFile((known) => known && { ...known, summary });
        } catch (error) {
          if (++failures >= MOST_FAILURES && isCurrent) {
            setProblem(`no longer live: ${messageOf(error)}`);
            setLive(false);
            return;
          }
        }
        await new Promise((resolve) => setTimeout(resolve, INTERVAL));
      }
    };
    setProblem(undefined);
    void look();
    return () => {
      isCurrent = false;
    };
  }, [isLive, client]);

  const showAsOf = useCallback((asOf: number | undefined) => setFile((known) => known && { ...known, asOf }), []);
  if (!file) return opening;
  const live = canFollow ? wantsLive : null;
  return { status: 'open', ...file, showAsOf, isLive: live, setLive, problem };
}
