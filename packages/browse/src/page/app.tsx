import '@h5web/app/styles.css';
import './app.css';
import { enableBigIntSerialization } from '@h5web/app';
import { createRoot } from 'react-dom/client';
import type { FileSource } from '../reader/browsed-file.ts';
import { Shell } from './shell.tsx';

enableBigIntSerialization();

/** The file that the server of h5log browse serves, or the one that the address names; null: the user chooses. */
function initialSource(): { source: FileSource | null; isServed: boolean } {
  const { file = '', name, external } = document.documentElement.dataset;
  if (file !== '') {
    const prefix = external !== undefined && { external: new URL(`${external}?name=`, location.href).href };
    return { source: { url: new URL(file, location.href).href, name: name ?? file, ...prefix }, isServed: true };
  }
  const url = new URLSearchParams(location.search).get('url');
  if (url === null) return { source: null, isServed: false };
  return { source: { url: new URL(url, location.href).href }, isServed: false };
}

const root = document.getElementById('root');
if (root) createRoot(root).render(<Shell {...initialSource()} />);
