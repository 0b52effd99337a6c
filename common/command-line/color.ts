// Whether an output is coloured (specification/operating.md#colour; no-color.org, force-color.org).

export type Environment = Readonly<Record<string, string | undefined>>;

export function hasColor({ isTTY }: { readonly isTTY?: boolean | undefined }, env: Environment): boolean {
  const { NO_COLOR: off = '', FORCE_COLOR: forced = '', TERM: kind } = env;
  if (off !== '') return false;
  if (forced !== '') return forced !== '0' && forced !== 'false';
  return isTTY === true && kind !== 'dumb';
}
