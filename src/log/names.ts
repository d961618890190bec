/*
 * Names that begin with an underscore are the connector's own; a user's name that does gets one underscore more. The original
 * does so for the first character of a path only; here it holds for every component.
 */

/** How names appear to users. */
export interface Names {
  /** The name in the file for a user's name. */
  stored(name: string): string;
  /** The user's name for one in the file, or undefined for what is not the user's. */
  shown(name: string): string | undefined;
}

export const logNames: Names = {
  stored: (name) => (name.startsWith('_') ? `_${name}` : name),
  shown: (name) => (name.startsWith('__') ? name.slice(1) : name.startsWith('_') ? undefined : name),
};

/** Files without a log: every name is what it is. */
export const plainNames: Names = { stored: (name) => name, shown: (name) => name };
