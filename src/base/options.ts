import { H5LogError } from './errors.ts';

/** What the value of an option must be: words for the message, and the check. */
type Kind = readonly [what: string, isRight: (value: unknown) => boolean];

/** The options of a call, each with its kind. The type makes sure that none is forgotten. */
export type Kinds<T> = { readonly [K in keyof T]-?: Kind };

/** For values that are checked where they are used. */
export const ANY: Kind = ['', () => true];
export const FLAG: Kind = ['true or false', (value) => typeof value === 'boolean'];
export const CALLBACK: Kind = ['a function', (value) => typeof value === 'function'];
export const PATH: Kind = ['a path', (value) => typeof value === 'string' || value instanceof URL];
export const COUNT: Kind = ['a whole number of at least 1', (value) => Number.isInteger(value) && Number(value) >= 1];
export const AMOUNT: Kind = ['a number that is not negative', (value) => typeof value === 'number' && value >= 0];

export function oneOf(...choices: readonly string[]): Kind {
  const what = choices.map((choice) => JSON.stringify(choice)).join(' or ');
  return [what, (value) => choices.includes(value as string)];
}

/** Refuses options that a call does not have, and values that an option cannot have. `call` names the call in messages. */
export function checkOptions<T extends object>(call: string, options: T, kinds: Kinds<T>): T {
  checkNames(call, options, kinds);
  for (const name of Object.keys(kinds) as (keyof T & string)[]) {
    const value: unknown = options[name];
    const [what, isRight] = kinds[name];
    if (value !== undefined && !isRight(value)) throw wrongValue(name, what, value);
  }
  return options;
}

/** Refuses options that are not among `known`, with a suggestion, and a signal that is none. */
export function checkNames(call: string, options: object, known: object): void {
  if (typeof options !== 'object' || options === null) throw wrongValue('options', 'an object', options);
  for (const name in options) if (!Object.hasOwn(known, name)) throw unknownOption(call, name, Object.keys(known));
  const { signal } = options as { readonly signal?: AbortSignal | null };
  if (signal != null && typeof signal.throwIfAborted !== 'function')
    throw wrongValue('signal', 'an AbortSignal', signal);
}

function wrongValue(name: string, what: string, value: unknown): H5LogError {
  const shown = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return new H5LogError('OPTION', `${name} must be ${what}, got ${shown}`);
}

/** What stands for options of h5py, in lower case without underscores: our option, and how it is used. */
const HINTS: Readonly<Record<string, readonly [option: string, use: string]>> = {
  compression: ['filters', 'filters: [{ deflate: 6 }]'],
  compressionopts: ['filters', 'filters: [{ deflate: 6 }]'],
  shuffle: ['filters', "filters: ['shuffle', { deflate: 6 }]"],
  fletcher32: ['filters', "filters: ['fletcher32']"],
  fillvalue: ['fill', 'fill'],
  type: ['dtype', 'dtype'],
  data: ['dtype', 'dataset.write(data)'],
};

/** The error for an option that does not exist. */
function unknownOption(call: string, name: string, known: readonly string[]): H5LogError {
  const plain = name.toLowerCase().replaceAll('_', '');
  const [option, use] = (Object.hasOwn(HINTS, plain) && HINTS[plain]) || [];
  const hint = option !== undefined && known.includes(option) ? use : undefined;
  const similar = known.find((other) => other.toLowerCase() === plain) ?? nearest(name, known);
  const advice =
    hint !== undefined
      ? `use ${hint}`
      : similar !== undefined
        ? `did you mean ${similar}?`
        : `there is ${known.join(', ') || 'none'}`;
  return new H5LogError('OPTION', `${call} has no option ${JSON.stringify(name)}; ${advice}`);
}

/** The name that a misspelt word most likely means; undefined if none is close. */
export function nearest(word: string, names: readonly string[]): string | undefined {
  let best: string | undefined;
  // A third of the letters may be wrong; in short words, one.
  let least = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const name of names) {
    const distance = editDistance(word, name);
    if (distance < least) [best, least] = [name, distance];
  }
  return best ?? names.find((name) => word.length > 1 && name.startsWith(word));
}

/** Edit distance: letters to add, remove, replace or swap with their neighbour (Damerau-Levenshtein). */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (isSame ? 0 : 1));
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwap) cost = Math.min(cost, (before[j - 2] ?? 0) + 1);
      row.push(cost);
    }
    [before, last] = [last, row];
  }
  return last[b.length] ?? 0;
}
