import { formatError } from '../../base/errors.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import type { Io } from '../../storage/io.ts';
import type { TableOptions } from './table.ts';

/** The group that holds log and tables, and the root attribute that counts them. */
export const LOG_GROUP = '_LOG';
/** Where the commit records are in a file whose data is in subfiles: it has no log of its own. */
export const COMMITS_GROUP = '_COMMITS';
export const COUNTS_ATTRIBUTE = '_int_att';

/** The five numbers of `_int_att`. */
export interface LogCounts {
  /** Datasets ever created: the next dataset's ID. */
  readonly datasets: number;
  readonly logs: number;
  readonly tables: number;
  readonly config: number;
  /** 1 without subfiles. */
  readonly subfiles: number;
}

/** Configuration bits, element 3 of `_int_att`. */
export const CONFIG = {
  merge: 0x001,
  encode: 0x002,
  zip: 0x004,
  share: 0x008,
  passthru: 0x010,
  aligned: 0x100,
  subfiling: 0x200,
} as const;

/** The series of datasets: log data and tables in the log group, commit records there or in a group of their own. */
export const SERIES = { logs: '_ld_', tables: '_md_', records: '_cr_' } as const;

/** The group of the commit records. */
export function recordsGroup({ config }: LogCounts): string {
  return config & CONFIG.subfiling ? COMMITS_GROUP : LOG_GROUP;
}

/** Whether the file has a log, and what its counts are. */
export function* readCounts(structure: Structure): Io<LogCounts | undefined> {
  const value = yield* structure.attribute(structure.root, COUNTS_ATTRIBUTE);
  if (!(value instanceof Int32Array) || value.length < 5) return undefined;
  const [datasets, logs, tables, config, subfiles] = value as unknown as [number, number, number, number, number];
  return { datasets, logs, tables, config, subfiles };
}

/** The file offset of a log dataset, as an attribute of it: programs that copy objects move the data, but not what tables say. */
export const ADDRESS_ATTRIBUTE = '_address';

export function* readAddress(structure: Structure, node: ObjectNode): Io<number | undefined> {
  const value = yield* structure.attribute(node, ADDRESS_ATTRIBUTE);
  return value instanceof BigInt64Array && value.length === 1 ? Number(value[0]) : undefined;
}

/** Random bytes that tell a file from others. Its subfiles keep them, and so do the datasets of its log. */
export const TOKEN = '_token';
export const TOKEN_SIZE = 16;

export type Token = Uint8Array;

/** null in files of the original, and of h5log 0.1 without subfiles. */
export function* readToken(structure: Structure, node = structure.root): Io<Token | null> {
  const value = yield* structure.attribute(node, TOKEN);
  return value instanceof Uint8Array && value.length >= TOKEN_SIZE ? value : null;
}

/** When the file publishes, and what it has published: kind, milliseconds of an interval, sequence (-1: nothing yet), bytes copied. */
export const PUBLISH = '_publish';

/** When other programs see what is committed. */
export type Publish = 'never' | 'close' | 'flush' | 'auto' | { readonly interval: number };

export const POLICIES: readonly (Publish & string)[] = ['never', 'close', 'flush', 'auto'];

export interface PublishState {
  readonly policy: Publish;
  /** The commit that other programs see; null: nothing was ever published. */
  readonly sequence: number | null;
  /** Bytes that were ever copied for ordinary layouts. */
  readonly copied: number;
  /** Whether one link leads to each object, and nothing else holds addresses of objects. */
  readonly isTree: boolean;
}

/** What a file remembers of its publishing; null: nothing, as in files of h5log 0.1 and of the original. */
export function* readPublish(structure: Structure): Io<PublishState | null> {
  const value = yield* structure.attribute(structure.root, PUBLISH);
  if (!(value instanceof BigInt64Array) || value.length < 4) return null;
  const [kind, interval, sequence, copied, tree] = Array.from(value, Number) as [
    number,
    number,
    number,
    number,
    number?,
  ];
  const policy = POLICIES[kind] ?? { interval };
  return { policy, sequence: sequence < 0 ? null : sequence, copied, isTree: tree === 1 };
}

/** Which datasets share a log, and the format of tables, in a file that has numbered logs: 2 x int32. */
export const LAYOUT = '_logs';

/** The group of numbered logs. The original looks for a log elsewhere, and would misread these. */
export const LOGS_GROUP = '_LOGS';

/** Which datasets share a log. */
export type LogScope = 'shared' | 'group' | 'dataset';

export const SCOPES: readonly LogScope[] = ['shared', 'group', 'dataset'];
export const FORMATS: readonly TableOptions['classic'][] = [undefined, 'little', 'big'];

export interface LogLayout {
  readonly scope: LogScope;
  readonly classic: TableOptions['classic'];
}

/** null: the one log that the original knows. */
export function* readLayout(structure: Structure): Io<LogLayout | null> {
  const value = yield* structure.attribute(structure.root, LAYOUT);
  if (value === undefined) return null;
  const [kind, format] = value instanceof Int32Array ? value : [];
  const scope = SCOPES[kind ?? -1];
  if (!scope || format === undefined || format < 0 || format >= FORMATS.length)
    throw formatError(`logs of kind ${kind} with tables of format ${format}`, structure.root.address);
  return { scope, classic: FORMATS[format] };
}

/** The number of a log: of a group, the one of the datasets made in it; of an anchor, its own. */
export const LOG_NUMBER = '_log';

export function* readLogNumber(structure: Structure, node: ObjectNode): Io<number | null> {
  const value = yield* structure.attribute(node, LOG_NUMBER);
  return value instanceof Int32Array && value.length === 1 ? (value[0] as number) : null;
}

/** The same, if it is there. */
export function knownGroup(structure: Structure, name: string): ObjectNode | undefined {
  const link = structure.root.link(name);
  return link?.node ?? (link && structure.now(structure.loader.follow(link))) ?? undefined;
}
