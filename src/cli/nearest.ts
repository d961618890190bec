/** Of some names the one that somebody may have meant; undefined if none is close. */
export function nearest(word: string, names: readonly string[]): string | undefined {
  let best: string | undefined;
  // A third of the letters may be wrong; in short words one.
  let least = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const name of names) {
    const distance = changes(word, name);
    if (distance < least) [best, least] = [name, distance];
  }
  return best ?? names.find((name) => word.length > 1 && name.startsWith(word));
}

/** How many letters have to be added, removed, replaced or swapped with their neighbour. */
function changes(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (isSame ? 0 : 1));
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwap) cost = Math.min(cost, (before[j - 2] ?? 0) + 1);
      row.push(cost);
    }
    [before, last] = [last, row];
  }
  return last[b.length] ?? 0;
}
