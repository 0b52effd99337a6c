// What each validator client is given to use a signer on this machine, with the token from its file. The flags are
// those of docs/guides/clients.md. It is alone because it changes with the clients.

export const CLIENTS = ['lighthouse', 'teku', 'prysm', 'nimbus', 'lodestar', 'grandine', 'vero'] as const;

export type ClientName = (typeof CLIENTS)[number];

/** Lines for a shell or a file. @param token the file of the client's token */
export function linesFor(client: ClientName, { url, token }: { readonly url: URL; readonly token: string }): string {
  const withToken = `http://any:$(cat ${token})@${url.host}`;
  switch (client) {
    case 'lighthouse':
      return `in validator_definitions.yml, for each key (TOKEN is the content of ${token}):
  - enabled: true
    voting_public_key: "0x…"
    type: web3signer
    url: "http://any:TOKEN@${url.host}"`;
    case 'prysm':
      return `--remote-signer-url="${withToken}" --remote-signer-keys="${withToken}/api/v1/eth2/publicKeys"`;
    case 'nimbus':
      return `--web3-signer-url="${withToken}"`;
    case 'grandine':
      return `--web3signer-urls="${withToken}" --web3signer-refresh-keys-every-epoch`;
    case 'vero':
      return `--remote-signer-url="${withToken}"`;
    case 'teku':
      return `Teku sends a token over https only: give the signer a certificate (tls.mode: file in the configuration), then
--validators-external-signer-url="https://any:$(cat ${token})@HOST:9443" --validators-external-signer-public-keys=external-signer`;
    case 'lodestar':
      return `Lodestar sends no token. Without one the signer serves it by static_auth.anonymous alone, which lets every
program of this machine sign: docs/guides/clients.md
--externalSigner.url=${url.origin} --externalSigner.fetch`;
  }
}
