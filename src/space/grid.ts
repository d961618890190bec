/** How many chunks there are along each dimension. */
export function gridOf(shape: readonly number[], chunk: readonly number[]): number[] {
  return shape.map((size, d) => Math.ceil(size / (chunk[d] as number)));
}

/** Coordinates of a cell of a grid from its row-major number. */
export function cellOf(number: number, grid: readonly number[]): number[] {
  const cell: number[] = new Array(grid.length);
  for (let d = grid.length - 1, rest = number; d >= 0; d--) {
    cell[d] = rest % (grid[d] as number);
    rest = Math.floor(rest / (grid[d] as number));
  }
  return cell;
}
