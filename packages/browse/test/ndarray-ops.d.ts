/** The package has no types; h5web uses this function alone. */
declare module 'ndarray-ops' {
  export function assign(to: object, from: object): void;
}
