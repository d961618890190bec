import { type H5LogError, isH5LogError } from 'h5log';

/** The H5LogError that a call throws. Other errors pass through, and a call that does not throw fails the test. */
export function thrown(call: () => unknown): H5LogError {
  try {
    call();
  } catch (error) {
    return ours(error);
  }
  throw new Error('was accepted');
}

/** The same of a call that may also reject. */
export async function refusal(call: () => unknown): Promise<H5LogError> {
  try {
    await call();
  } catch (error) {
    return ours(error);
  }
  throw new Error('was accepted');
}

function ours(error: unknown): H5LogError {
  if (isH5LogError(error)) return error;
  throw error;
}
