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
  /** The same for a link of a group other than the root, where nothing is the connector's own. */
  shownInside(name: string): string;
}

export const logNames: Names = {
  stored: (name) => (name.startsWith('_') ? `_${name}` : name),
  shown: (name) => (name.startsWith('__') ? name.slice(1) : name.startsWith('_') ? undefined : name),
  // The original leaves a name undoubled when it was created by a path that begins elsewhere: g/_x.
  shownInside: (name) => (name.startsWith('__') ? name.slice(1) : name),
};

/** Files without a log: every name is what it is. */
export const plainNames: Names = { stored: (name) => name, shown: (name) => name, shownInside: (name) => name };
