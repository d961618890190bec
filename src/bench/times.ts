/** Seconds since a moment of `performance.now()`. */
export function secondsSince(begun: number): number {
  return (performance.now() - begun) / 1000;
}

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] as number;
}

/** The shortest time of each of several things: whoever else uses the machine only makes it longer. */
export class Best {
  readonly #seconds = new Map<string, number>();

  add(id: string, seconds: number): void {
    this.#seconds.set(id, Math.min(seconds, this.of(id)));
  }

  /** Infinite if there is none. */
  of(id: string): number {
    return this.#seconds.get(id) ?? Number.POSITIVE_INFINITY;
  }
}
