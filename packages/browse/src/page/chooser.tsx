import { type FormEvent, type ReactElement, useEffect, useState } from 'react';
import type { FileSource } from '../reader/browsed-file.ts';

type Choose = (source: FileSource) => void;

/** Takes a file that is dropped anywhere on the page; true while one is held over it. */
export function useDrop(choose: Choose | null): boolean {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    if (!choose) return undefined;
    const over = (event: DragEvent): void => {
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent): void => {
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent): void => {
      event.preventDefault();
      setOver(false);
      const file = event.dataTransfer?.files[0];
      if (file) choose({ blob: file, name: file.name });
    };
    addEventListener('dragover', over);
    addEventListener('dragleave', leave);
    addEventListener('drop', drop);
    return () => {
      removeEventListener('dragover', over);
      removeEventListener('dragleave', leave);
      removeEventListener('drop', drop);
    };
  }, [choose]);
  return isOver;
}

/** How a page without a server gets its file. Nothing is uploaded. */
export function Chooser({ isOver, onChoose }: { isOver: boolean; onChoose: Choose }): ReactElement {
  const [url, setUrl] = useState('');
  const open = (event: FormEvent): void => {
    event.preventDefault();
    const { href } = new URL(url, location.href);
    history.replaceState(null, '', `?url=${encodeURIComponent(href)}`);
    onChoose({ url: href });
  };
  return (
    <>
      <p className="drop" data-over={isOver}>
        <label>
          Drop an HDF5 file here, or choose one:{' '}
          <input
            type="file"
            onChange={({ target }) => {
              const [file] = target.files ?? [];
              if (file) onChoose({ blob: file, name: file.name });
            }}
          />
        </label>
      </p>
      <form onSubmit={open}>
        <label>
          Or a URL, whose server must support ranges:{' '}
          <input type="url" required value={url} onChange={({ target }) => setUrl(target.value)} />
        </label>{' '}
        <button type="submit">Open</button>
      </form>
      <p>The file stays where it is: this page reads the parts that it shows and sends nothing anywhere.</p>
    </>
  );
}
