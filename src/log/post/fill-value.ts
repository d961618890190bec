import { H5LogError } from '../../base/errors.ts';
import { decodeOne } from '../../dtype/decode.ts';
import { encodeValues } from '../../dtype/encode.ts';
import { type DType, fullType } from '../../dtype/model.ts';
import { located } from '../../hdf5/read/located.ts';

/** A fill value in JavaScript; one that does not fit its type is as good as none. `offset` is where it lies in the file. */
export function fillValue(dtype: DType, bytes: Uint8Array, offset: number): unknown {
  if (bytes.length !== fullType(dtype).size) return undefined;
  try {
    return decodeOne(dtype, bytes, { heap: () => undefined, path: () => '' });
  } catch (error) {
    throw located(error, offset);
  }
}

/** A fill value in the dataset's file type. */
export function encodeFillValue(dtype: DType, fill: unknown): Uint8Array {
  const encoded = encodeValues(dtype, fill, 1);
  if (encoded.heap.length > 0 || encoded.references.length > 0) {
    throw new H5LogError('UNSUPPORTED', 'a fill value cannot hold references or variable-length data');
  }
  return encoded.bytes;
}
