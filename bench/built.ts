/**
 * A module of the package as it was built, which is what users run: the loader that these programs are started with adds something to every closure, and what
 * is measured through it is up to twice as slow. Its type is that of the source.
 *
 * @example const { workloads } = await built<typeof import('../src/tools/bench/workloads.ts')>('tools/bench/workloads');
 */
export async function built<T>(module: string): Promise<T> {
  return (await import(new URL(`../dist/${module}.js`, import.meta.url).href)) as T;
}
