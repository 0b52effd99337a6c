// Whether an output is coloured, decided in one place for every program (specification/operating.md#colour). NO_COLOR
// (no-color.org) and TERM=dumb turn colour off, FORCE_COLOR (force-color.org) turns it on where no terminal is.

export type Environment = Readonly<Record<string, string | undefined>>;

export function hasColor({ isTTY }: { readonly isTTY?: boolean | undefined }, env: Environment): boolean {
  const { NO_COLOR: off = '', FORCE_COLOR: forced = '', TERM: kind } = env;
  if (off !== '') return false;
  if (forced !== '') return forced !== '0' && forced !== 'false';
  return isTTY === true && kind !== 'dumb';
}
