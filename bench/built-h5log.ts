// The package as it was built, which is what users run, for benchmarks in this process: the loader that runs these programs keeps
// the names of functions, and posts of a few bytes took half as long again with that.

import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as h5log from 'h5log';
import { COMMAND } from './built.ts';

const entry = (name: string): Promise<unknown> => import(pathToFileURL(join(dirname(COMMAND), name)).href);

export const { File, Group } = (await entry('index.js')) as typeof h5log;
export type File = h5log.File;
export type Group = h5log.Group;
export const { stat, verify } = (await entry('tools.js')) as typeof import('h5log/tools');
