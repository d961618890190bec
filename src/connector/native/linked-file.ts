import { isH5LogError } from '../../base/errors.ts';

/** Opens the file that an external link of the file at `path` names, looked for where libhdf5 looks; null if there is none. */
export function linkedFile<T>(path: string, name: string, open: (path: string) => T): T | null {
  for (const candidate of candidates(path, name)) {
    try {
      return open(candidate);
    } catch (error) {
      if (!isH5LogError(error, 'NOT_FOUND')) throw error;
    }
  }
  return null;
}

/** As it stands if it is absolute, then beside the linking file, then from the working directory. */
function candidates(path: string, name: string): string[] {
  const absolute = /^(?:[\\/]|[A-Za-z]:[\\/])/;
  const folder = path.slice(0, Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
  if (!absolute.test(name)) return [...new Set([folder + name, name])];
  const last = name.slice(Math.max(name.lastIndexOf('/'), name.lastIndexOf('\\')) + 1);
  return [...new Set([name, folder + last])];
}
