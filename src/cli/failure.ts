import { inspect } from 'node:util';

/** One line about an error, with its code: `h5log: LOCKED: run.h5 is being written by ...`. */
export function failureLine(error: unknown): string {
  const { code, message, name } = describe(error);
  // Errors of the system say their code themselves.
  const kind = code ?? (name === 'Error' ? undefined : name);
  const text = message.replace(/\s*\n\s*/g, ' ');
  return kind === undefined || text.startsWith(`${kind}:`) ? `h5log: ${text}` : `h5log: ${kind}: ${text}`;
}

/** The line, and with `debug` where the error comes from. */
export function failureText(error: unknown, debug: boolean): string {
  return debug ? `${failureLine(error)}\n${inspect(error)}\n` : `${failureLine(error)}\n`;
}

function describe(error: unknown): { code?: string; message: string; name: string } {
  if (!(error instanceof Error)) return { message: String(error), name: 'Error' };
  const { code } = error as { code?: unknown };
  return { message: error.message, name: error.name, ...(typeof code === 'string' && { code }) };
}
