/** Rows of a table with its columns below one another: the first to the left, the others to the right. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((text, i) => {
      widths[i] = Math.max(widths[i] ?? 0, [...text].length);
    });
  }
  return rows.map((row) =>
    row
      .map((text, i) => {
        const space = ' '.repeat((widths[i] as number) - [...text].length);
        return i === 0 ? `${text}${space}` : `${space}${text}`;
      })
      .join('  ')
      .trimEnd(),
  );
}
