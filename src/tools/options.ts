import { H5LogError } from '../base/errors.ts';

/** Tools work in at least this much memory, and in this much unless it is said. */
export const LEAST_MEMORY = 2 ** 20;
export const MEMORY = 256 * 2 ** 20;

/** What the value of an option must be: a description for the message, and the check. */
const KINDS = {
  path: ['a path', (value: unknown) => typeof value === 'string' || value instanceof URL],
  flag: ['true or false', (value: unknown) => typeof value === 'boolean'],
  callback: ['a function', (value: unknown) => typeof value === 'function'],
  count: ['a whole number of at least 1', (value: unknown) => Number.isInteger(value) && (value as number) >= 1],
  memory: [
    `a number of at least ${LEAST_MEMORY} bytes`,
    (value: unknown) => typeof value === 'number' && value >= LEAST_MEMORY,
  ],
} as const satisfies Record<string, readonly [string, (value: unknown) => boolean]>;

/** Checks the options of a tool: each is left out, or what its kind says. */
export function checkOptions<T extends object>(options: T, kinds: { readonly [K in keyof T]?: keyof typeof KINDS }): T {
  if (typeof options !== 'object' || options === null)
    throw new H5LogError('OPTION', `options must be an object, got ${String(options)}`);
  for (const name of Object.keys(kinds) as (keyof T & string)[]) {
    const value: unknown = options[name];
    const [what, isRight] = KINDS[kinds[name] as keyof typeof KINDS];
    if (value !== undefined && !isRight(value))
      throw new H5LogError('OPTION', `${name} must be ${what}, got ${String(value)}`);
  }
  return options;
}
