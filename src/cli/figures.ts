/** 1234567 as 1,234,567. */
export function counted(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** One unit for a count, another for more. */
export function several(value: number, one: string, more = `${one}s`): string {
  return `${counted(value)} ${value === 1 ? one : more}`;
}

const PREFIXES = ['', 'k', 'M', 'G', 'T', 'P'];

/** Three digits and a prefix: 12.3 MB, 456 kB/s, 7.89 M requests. */
export function scaled(value: number, unit: string): string {
  let [shown, prefix] = [value, 0];
  while (Math.abs(shown) >= 999.5 && prefix < PREFIXES.length - 1) [shown, prefix] = [shown / 1000, prefix + 1];
  const digits = prefix === 0 || shown >= 99.5 ? 0 : shown >= 9.95 ? 1 : 2;
  // A word stands apart from the prefix, a symbol does not.
  const name = /^[a-z]{2}/.test(unit) && prefix > 0 ? ` ${unit}` : unit;
  return `${shown.toFixed(digits)} ${PREFIXES[prefix]}${name}`;
}

export function seconds(value: number): string {
  return `${value.toFixed(value < 0.1 ? 4 : value < 10 ? 2 : 1)} s`;
}
