/** The module of that name beside the one at `here`: built and source files differ in their extension alone. */
export function rankModule(name: string, here: string): URL {
  return new URL(`./${name}${/\.[a-z]+$/.exec(here)?.[0] ?? '.js'}`, here);
}
