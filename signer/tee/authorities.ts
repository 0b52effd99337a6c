// Which certificate authorities vouch for a host (specification/enclave.md#authorities). A client that does not ask
// here refuses what only an added authority vouches for.

/** PEM of the authorities that alone vouch for this host; undefined: the process-wide roots do. */
export type AuthoritiesOf = (hostname: string) => readonly string[] | undefined;

/** By host name, in lower case. */
export type NamedAuthorities = Readonly<Record<string, readonly string[]>>;

export function authoritiesOf(named: NamedAuthorities): AuthoritiesOf {
  const byHost = new Map(Object.entries(named));
  return (hostname) => byHost.get(hostname.toLowerCase());
}
