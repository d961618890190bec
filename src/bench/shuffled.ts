import { Random } from './random.ts';

/** Numbers 0 to n - 1 in random order; the same every time. */
export function shuffled(n: number): Uint32Array {
  const random = new Random(12345);
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  for (let i = n - 1; i > 0; i--) {
    const j = random.below(i + 1);
    const held = order[i] as number;
    order[i] = order[j] as number;
    order[j] = held;
  }
  return order;
}
