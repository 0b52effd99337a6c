// What the commands of `strongroom eif` write: JSON for programs, and two columns for people.

export function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

export function rows(pairs: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(0, ...pairs.map(([name]) => name.length));
  return pairs.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`);
}
