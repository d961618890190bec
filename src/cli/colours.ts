/** Marks parts of a text; without colours it leaves them as they are. */
export interface Palette {
  group(text: string): string;
  dataset(text: string): string;
  link(text: string): string;
  dim(text: string): string;
  warning(text: string): string;
}

const mark =
  (code: string) =>
  (text: string): string =>
    text === '' ? '' : `\u001b[${code}m${text}\u001b[0m`;
const as = (text: string): string => text;

const PLAIN: Palette = { group: as, dataset: as, link: as, dim: as, warning: as };
// The sixteen colours of the terminal itself: whoever chose its background chose them to be legible on it.
const COLOURED: Palette = {
  group: mark('1;34'),
  dataset: mark('32'),
  link: mark('36'),
  dim: mark('2'),
  warning: mark('31'),
};

export interface Screen {
  readonly isTerminal: boolean;
  readonly palette: Palette;
}

/** What standard output is. The terminals of 0 columns that MPI launchers give are none; NO_COLOR that is not empty, and a dumb terminal mean no colours. */
export function screenOf(
  stream: { readonly isTTY?: boolean; readonly columns?: number } = process.stdout,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Screen {
  const isTerminal = stream.isTTY === true && (stream.columns ?? 0) > 0;
  const isColoured = isTerminal && !environment.NO_COLOR && environment.TERM !== 'dumb';
  return { isTerminal, palette: isColoured ? COLOURED : PLAIN };
}
