import { H5LogError } from '../../src/base/errors.ts';

/** What came of a call, in a form that can leave a thread. */
export interface Outcome {
  readonly code: string;
  readonly message: string;
  readonly rank: number | undefined;
  readonly file: string | undefined;
}

const FINE: Outcome = { code: 'fine', message: '', rank: undefined, file: undefined };

export function outcomeOf(work: () => unknown): Outcome {
  try {
    work();
    return FINE;
  } catch (error) {
    return caught(error);
  }
}

export async function outcomeOfAsync(work: () => Promise<unknown>): Promise<Outcome> {
  try {
    await work();
    return FINE;
  } catch (error) {
    return caught(error);
  }
}

function caught(error: unknown): Outcome {
  if (error instanceof H5LogError) {
    const { code, message, rank, file } = error;
    return { code, message, rank, file };
  }
  // Nothing but the errors of this package may come out of it.
  const { name, message } = error as Error;
  return { code: `foreign ${name}`, message, rank: undefined, file: undefined };
}
