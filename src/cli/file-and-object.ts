import { statSync } from 'node:fs';

/** What FILE[/object] means: the longest beginning that is a file, and the path in it. */
export function fileAndObject(text: string): { file: string; object: string } {
  if (/^https?:\/\//i.test(text)) return { file: text, object: '/' };
  for (let end = text.length; end > 0; end = text.lastIndexOf('/', end - 1)) {
    const file = text.slice(0, end);
    if (isFile(file)) return { file, object: text.slice(end) || '/' };
  }
  return { file: text, object: '/' };
}

/** Anything but a folder: a device or a pipe gets its own message when it is opened. */
function isFile(path: string): boolean {
  try {
    return !statSync(path).isDirectory();
  } catch {
    return false;
  }
}
