// The configuration that `strongroom init` and `strongroom migrate` write: one signer on this machine, commented, with
// every path from the root. It is alone because it is the text of a file; a test starts a signer with it.

export interface Configuration {
  readonly network: string;
  /** The command that writes it, and what its reader has to know first: lines. */
  readonly writtenBy: string;
  readonly first: readonly string[];
  readonly keys: string;
  readonly passwords: string;
  /** Whether there are descriptors (*.yaml) among the keys. */
  readonly hasDescriptors: boolean;
  readonly records: string;
  readonly tokens: { readonly client: string; readonly operator: string };
}

export const PORTS = { http: 9000, metrics: 3000, tls: 9443 } as const;

export function configurationText({ network, writtenBy, first, records, tokens, ...keys }: Configuration): string {
  return `# Written by ${writtenBy}. Every option: docs/reference/configuration.md and strongroom server --help.
#   strongroom server --check -c FILE   says everything that would stop a start
#   strongroom server -c FILE           starts the signer
${first.map((line) => `# ${line}\n`).join('')}
network: ${network}

# Plain HTTP shows tokens to the network: it serves this machine only.
server:
  listen_address: 127.0.0.1
  listen_port: ${PORTS.http}

# For clients on other machines:
# tls:
#   mode: file
#   listen_address: 0.0.0.0
#   listen_port: ${PORTS.tls}
#   file: { cert_path: /PATH/cert.pem, key_path: /PATH/key.pem }

metrics:
  listen_address: 127.0.0.1
  listen_port: ${PORTS.metrics}

key_sources:
  filesystem:
${descriptors(keys)}    # Keystores (EIP-2335), as deposit tools write them: NAME.json, its password in NAME.txt.
    keystores:
      path: ${quoted(keys.keys)}
      passwords_path: ${quoted(keys.passwords)}

# The records of what was signed. One signer only: never start a second one with these keys and another database, nor
# with a copy of this one. A fleet shares a store: backend postgres or dynamodb.
anti_slashing:
  backend: sqlite
  path: ${quoted(records)}

static_auth:
  policies:
    - name: validator-client
      rules:
        - { effect: allow, scopes: [sign, public_keys] }
        - { effect: deny, operations: [VOLUNTARY_EXIT] }
    # Looks at everything and changes nothing: strongroom operator status, top, doctor, keys list.
    - name: operator
      rules:
        - { effect: allow, scopes: [chamber_status, chamber_keys_list, list_keys, public_keys] }
  # A request without a token is refused. The files hold one token each, for their owner alone.
  tokens:
    - { name: validator-client, secret: ${quoted(`file:${tokens.client}`)}, policies: [validator-client] }
    - { name: operator, secret: ${quoted(`file:${tokens.operator}`)}, policies: [operator] }

logging:
  level: info
  format: text
`;
}

function descriptors({ keys, hasDescriptors }: Pick<Configuration, 'keys' | 'hasDescriptors'>): string {
  if (!hasDescriptors) return '';
  return `    # A YAML file for each key that is not encrypted.\n    paths: [${quoted(keys)}]\n`;
}

/** A YAML text: JSON's are. */
function quoted(text: string): string {
  return JSON.stringify(text);
}
