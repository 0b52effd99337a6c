// How a database of Web3Signer is named where a store remembers it: the host, the port and the name of the database,
// without the user and the parameters. A database under another name counts as another one: it is merged again.

const DEFAULT_PORT = 5432;

interface DatabasePlace {
  readonly host: string;
  readonly port: number;
  readonly database: string;
}

export function web3SignerName({ host, port, database }: DatabasePlace): string {
  const name = host.toLowerCase();
  return `${name.includes(':') ? `[${name}]` : name}:${port}/${database}`;
}

/**
 * The names that a URL may mean: `jdbc:postgresql://HOST[:PORT][,HOST…]/NAME[?…]`, `postgresql://[USER@]…`, or
 * `HOST[:PORT]/NAME` alone. Several for the servers of one cluster; none when it cannot be read.
 */
export function web3SignerNames(text: string): readonly string[] {
  const match = /^(?:(?:jdbc:)?postgres(?:ql)?:\/\/)?(?:[^@/]*@)?([^/?#]+)\/([^/?#]+)(?:\?.*)?$/is.exec(text);
  const [, hosts = '', encoded = ''] = match ?? [];
  const database = decoded(encoded);
  if (hosts === '' || database === undefined) return [];
  const names = hosts.split(',').map((one) => nameOf(one, database));
  return names.every((name) => name !== undefined) ? names : [];
}

function nameOf(host: string, database: string): string | undefined {
  const match = /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::([0-9]{1,5}))?$/i.exec(host);
  if (match?.[1] === undefined) return undefined;
  const port = match[2] === undefined ? DEFAULT_PORT : Number(match[2]);
  return web3SignerName({ host: match[1].replaceAll(/[[\]]/g, ''), port, database });
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
