import type { Described } from 'h5log';
import type { NcGroup } from 'h5log/netcdf';
import { runSync } from '../oracles.ts';
import type { Expected } from './random-file.ts';

const script = new URL('describe.py', import.meta.url).pathname;

/** What netCDF4-python, xarray with both engines and h5py say about files. */
export interface Said {
  readonly netCDF4: Expected;
  readonly netcdf4: Expected & { unlimited: string[] };
  readonly h5netcdf: Expected & { unlimited: string[] };
  readonly h5py: string[];
}

export function said(paths: readonly string[]): Record<string, Said> {
  return JSON.parse(runSync('xarray', [script, ...paths])) as Record<string, Said>;
}

/** Text, or numbers in the other byte order. */
function described({ class: kind, size, signed = true }: Described & { readonly signed?: boolean }): string {
  if (kind === 'string') return size === 1 ? 'char' : 'string';
  return `${kind === 'float' ? kind : signed ? 'int' : 'uint'}${8 * size}`;
}

/** The same of h5log itself. */
export async function ours(group: NcGroup): Promise<Expected> {
  const plain = (value: unknown): unknown => {
    if (typeof value === 'bigint') return String(value);
    return ArrayBuffer.isView(value) || Array.isArray(value) ? Array.from(value as ArrayLike<unknown>, plain) : value;
  };
  const variables: Expected['variables'] = {};
  for (const [name, variable] of group.variables) {
    const { dtype } = variable.dataset;
    const type = typeof dtype === 'string' ? dtype : described(dtype);
    variables[name] = {
      dimensions: [...variable.dimensions],
      shape: [...variable.shape],
      type,
      values: plain(await variable.read()) as unknown[],
      attributes: Object.fromEntries([...variable.attributes].map(([key, value]) => [key, plain(value)])),
    };
  }
  const groups: Expected['groups'] = {};
  for (const [name, inner] of group.groups) groups[name] = await ours(inner);
  return {
    dimensions: Object.fromEntries(
      Array.from(group.dimensions, ([name, { size, unlimited }]) => [name, [size, unlimited]]),
    ),
    variables,
    attributes: Object.fromEntries([...group.attributes].map(([key, value]) => [key, plain(value)])),
    groups,
  };
}
