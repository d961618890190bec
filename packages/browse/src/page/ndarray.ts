/*
 * Views of flat arrays, in place of the package ndarray, which compiles its classes with `new Function`: a page with that needs
 * 'unsafe-eval' in its content security policy. The members are those of ndarray 1.0.
 */

interface Elements {
  readonly length: number;
  [i: number]: unknown;
}

const NAMES: readonly [new (length: number) => object, string][] = [
  [Int8Array, 'int8'],
  [Int16Array, 'int16'],
  [Int32Array, 'int32'],
  [Uint8Array, 'uint8'],
  [Uint8ClampedArray, 'uint8_clamped'],
  [Uint16Array, 'uint16'],
  [Uint32Array, 'uint32'],
  [Float32Array, 'float32'],
  [Float64Array, 'float64'],
  [BigInt64Array, 'bigint64'],
  [BigUint64Array, 'biguint64'],
];

class View {
  readonly data: Elements;
  readonly shape: number[];
  readonly stride: number[];
  readonly offset: number;

  constructor(data: Elements, shape: number[], stride: number[], offset: number) {
    this.data = data;
    this.shape = shape;
    this.stride = stride;
    this.offset = offset;
  }

  get dtype(): string {
    return NAMES.find(([type]) => this.data instanceof type)?.[1] ?? 'array';
  }

  get dimension(): number {
    return this.shape.length;
  }

  get size(): number {
    return this.shape.reduce((product, n) => product * n, 1);
  }

  /** The dimensions by ascending stride. */
  get order(): number[] {
    const size = (d: number): number => Math.abs(this.stride[d] as number);
    return this.shape.map((_, d) => d).sort((a, b) => size(a) - size(b));
  }

  get T(): View {
    return this.transpose(...this.shape.map((_, d) => d).reverse());
  }

  index(...at: number[]): number {
    let place = this.offset;
    for (let d = 0; d < this.stride.length; d++) place += (at[d] as number) * (this.stride[d] as number);
    return place;
  }

  get(...at: number[]): unknown {
    return this.data[this.index(...at)];
  }

  set(...atAndValue: unknown[]): unknown {
    const value = atAndValue.at(-1);
    this.data[this.index(...(atAndValue.slice(0, -1) as number[]))] = value;
    return value;
  }

  /** Without the first elements of each dimension. */
  lo(...from: (number | null)[]): View {
    const shape = this.shape.map((n, d) => n - (from[d] ?? 0));
    return new View(this.data, shape, this.stride, this.index(...this.shape.map((_, d) => from[d] ?? 0)));
  }

  /** Only the first elements of each dimension. */
  hi(...count: (number | null)[]): View {
    const shape = this.shape.map((n, d) => count[d] ?? n);
    return new View(this.data, shape, this.stride, this.offset);
  }

  /** Every n-th element; backwards where it is negative. */
  step(...by: (number | null)[]): View {
    let { offset } = this;
    const steps = this.shape.map((_, d) => by[d] ?? 1);
    const shape = this.shape.map((n, d) => Math.ceil(n / Math.abs(steps[d] as number)));
    for (const [d, step] of steps.entries())
      if (step < 0) offset += ((this.shape[d] as number) - 1) * (this.stride[d] as number);
    const stride = this.stride.map((n, d) => n * (steps[d] as number));
    return new View(this.data, shape, stride, offset);
  }

  transpose(...order: number[]): View {
    const axes = this.shape.map((_, d) => order[d] ?? d);
    const by = (list: number[]): number[] => axes.map((d) => list[d] as number);
    return new View(this.data, by(this.shape), by(this.stride), this.offset);
  }

  /** The part at an index in some dimensions; null keeps a dimension. */
  pick(...at: (number | null)[]): View {
    const kept = this.shape.map((_, d) => d).filter((d) => at[d] == null || (at[d] as number) < 0);
    const by = (list: number[]): number[] => kept.map((d) => list[d] as number);
    const offset = this.index(...this.shape.map((_, d) => (kept.includes(d) ? 0 : (at[d] as number))));
    return new View(this.data, by(this.shape), by(this.stride), offset);
  }
}

/** A view of all elements, in row-major order unless strides say otherwise. */
export default function ndarray(data: Elements, shape = [data.length], stride?: number[], offset?: number): View {
  const strides = stride ?? rowMajor(shape);
  const start =
    offset ??
    shape.reduce((sum, n, d) => ((strides[d] as number) < 0 ? sum - (n - 1) * (strides[d] as number) : sum), 0);
  return new View(data, shape, strides, start);
}

function rowMajor(shape: readonly number[]): number[] {
  const stride = new Array<number>(shape.length);
  let size = 1;
  for (let d = shape.length - 1; d >= 0; d--) {
    stride[d] = size;
    size *= shape[d] as number;
  }
  return stride;
}

/** Copies the elements of a view into another of the same shape; all that h5web uses of the package ndarray-ops. */
export function assign(to: View, from: View): void {
  const { shape } = from;
  const last = shape.length - 1;
  const count = last < 0 ? 1 : (shape[last] as number);
  const rows = last < 0 ? 1 : from.size / Math.max(1, count);
  const [toStep, fromStep] = [to.stride[last] ?? 0, from.stride[last] ?? 0];
  const at = new Array<number>(shape.length).fill(0);
  for (let row = 0; row < rows; row++) {
    let [a, b] = [to.index(...at), from.index(...at)];
    for (let i = 0; i < count; i++, a += toStep, b += fromStep) to.data[a] = from.data[b];
    for (let d = last - 1; d >= 0; d--) {
      at[d] = (at[d] as number) + 1;
      if ((at[d] as number) < (shape[d] as number)) break;
      at[d] = 0;
    }
  }
}
