// docs/reference/configuration.md, from the option table and the rules. Prose here is only what the table cannot say:
// how layers and text forms work, and the members of object-valued options.

import { flagTerm } from '../../command-line/help.ts';
import { PAYMENT_OPERATIONS } from '../api/operations.ts';
import { MAX_FEE_RECIPIENTS_PER_RULE } from '../api/policy.ts';
import { MAX_KNOWN_CLIENT_LINES } from '../tls/known-clients-file.ts';
import { defaultText } from './help.ts';
import { SERVER_FLAGS } from './layers/server-flags.ts';
import { flagOf, OPTION_PATHS, type OptionPath, optionAt, variableOf } from './options.ts';
import { RULES } from './rules/rules.ts';
import { MAX_KNOWN_CLIENTS } from './values/known-clients.ts';
import { MAX_STATIC_POLICIES, MAX_STATIC_TOKENS, MIN_SECRET_CHARACTERS } from './values/static-auth.ts';
import { WARNINGS } from './warnings.ts';

export function configurationReference(): string {
  const groups = Map.groupBy(OPTION_PATHS, (path) => path.split('.')[0] ?? path);
  return `${[
    '# Configuration',
    'Generated from the source by `make docs`. A complete, commented file is in `docs/examples/strongroom.yaml`; for an enclave, `docs/examples/enclave.yaml`.',
    LAYERS,
    '## Server flags that are not options',
    table(
      ['Flag', 'Meaning'],
      Object.entries(SERVER_FLAGS).map(([name, flag]) => [code(flagTerm(name, flag)), flag.meaning]),
    ),
    '## Options',
    ...[...groups].flatMap(([group, paths]) => [`### ${group}`, optionTable(paths), MEMBERS[group] ?? '']),
    '## Rules between options',
    'The number is that of the startup failure in docs/specification/operating.md.',
    RULES.map(({ says, startupFailure }) => `- ${says}${startupFailure ? ` (${startupFailure})` : ''}`).join('\n'),
    '## Warnings',
    'What starts and is said, by `server --check` and at the start.',
    WARNINGS.map(({ at, says }) => `- ${code(at)} ${says}.`).join('\n'),
  ]
    .filter((part) => part !== '')
    .join('\n\n')}\n`;
}

const LAYERS = `## Layers

Highest first: flags, environment variables, the file given with \`-c\`, defaults. Only the value that takes effect is
checked. Everything that is wrong is reported at once, each with its option and where it was set; the process then exits 78.

- **Flags**: a single flag given twice is refused, and so is an unknown one. A boolean flag without a value is \`true\`. List
  flags are comma-separated, except repeatable ones, which take one item each time. Arguments are visible to other users of
  the machine: give secrets through the environment or the file.
- **Environment**: \`SVC_\` and the option's path in upper case with \`__\` for dots. Lists are comma-separated; objects are
  JSON. Members of an object have variables, too, as far as its shape is fixed: \`SVC_CEREMONY__KMS_THRESHOLD\`,
  \`SVC_STATIC_AUTH__ANONYMOUS__POLICIES\`. They go over the whole object, wherever it is set, and a list among them is JSON.
  Every other variable that starts with \`SVC_\` is refused, except \`SVC_OPERATOR_*\`, those that the configuration refers to
  with \`env:\`, and those that Kubernetes injects for Services (\`SVC_*_SERVICE_HOST\`, \`_SERVICE_PORT*\`, \`_PORT*\`), which
  are ignored with one line in the log.
- **File**: YAML 1.2, one document. Unknown and repeated keys, anchors, aliases and custom tags are refused, and a file that sets
  nothing. A section without options, such as \`signer_state:\` alone, counts as set.
- **Empty text** is an empty list for a list option and a mistake for every other; it never means "unset". Booleans are
  \`true\` or \`false\` in every layer.`;

/** The members of object-valued options, by the section they are shown in. */
const MEMBERS: Readonly<Record<string, string>> = {
  static_auth: `| Member | Default | Meaning |
|---|---|---|
| \`policies[].name\` | required | 1 to 64 of \`A-Z a-z 0-9 . _ -\`, starting with a letter or digit; unique |
| \`policies[].rules[]\` | required | \`effect\` (\`allow\` or \`deny\`), and optionally \`scopes\`, \`keys\`, \`operations\`: an omitted list matches everything, an empty one is refused |
| \`policies[].rules[].fee_recipients[]\` | everybody | Addresses in quotes, in any case; a mixed case is an EIP-55 checksum and has to be right. Met by ${PAYMENT_OPERATIONS.join(' and ')} that pay to one of them, and by no other message. At most ${MAX_FEE_RECIPIENTS_PER_RULE} |
| \`policies[].rules[].max_gas_limit\` | none | Met by the same messages when their gas limit is at most this, and by no other message |
| \`anonymous.policies[]\` | \`[]\` | Policies of requests without a token; empty refuses them |
| \`tokens[].name\` | its index | Names the token in audit lines, as \`static:NAME\`: 1 to 64 of \`A-Z a-z 0-9 . _ -\`, starting with a letter; unique |
| \`tokens[].secret\` | required | At least ${MIN_SECRET_CHARACTERS} characters, or \`env:VAR_NAME\` or \`file:/PATH\` to read them from the environment or a file of their own, which an enclave does not have. A file that others than its owner and group can read is refused. White space around it and control characters are refused |
| \`tokens[].policies[]\` | required | Policies of the token, at least one |
| \`tokens[].bound_cidrs[]\` | \`[]\` | Source networks the token works from; an IPv4 prefix is at least /8, an IPv6 prefix at least /16 |

At most ${MAX_STATIC_POLICIES} policies and ${MAX_STATIC_TOKENS} tokens.`,
  tls: `| Member of \`known_clients\` | Default | Meaning |
|---|---|---|
| \`name\` | required | Names the client in audit lines, as \`client:NAME\`: 1 to 64 of \`A-Z a-z 0-9 . _ -\`, starting with a letter; unique |
| \`subject\` | one of four | The whole subject of its certificate, which \`client_ca\` vouches for, as \`openssl x509 -noout -subject -nameopt RFC2253,-esc_msb\` prints it |
| \`spki_sha256\` | one of four | SHA-256 of its public key (SubjectPublicKeyInfo), as hex with colons or without, or \`sha256//BASE64\` |
| \`certificate_sha256\` | one of four | SHA-256 of its certificate, likewise |
| \`file\` | one of four | A file of many clients as Web3Signer has it, a line \`COMMON-NAME FINGERPRINT\` each; they are \`client:NAME/COMMON-NAME\` |
| \`policies[]\` | required | Policies of \`static_auth\`, at least one |
| \`bound_cidrs[]\` | \`[]\` | Source networks the client works from; an IPv4 prefix is at least /8, an IPv6 prefix at least /16 |

At most ${MAX_KNOWN_CLIENTS} clients, and ${MAX_KNOWN_CLIENT_LINES} in a file.`,
  ceremony: `| Member | Default | Meaning |
|---|---|---|
| \`generation\` | required | Counts ceremonies, from 1 |
| \`kms_threshold\` | required | How many custody keys unseal; at most the number of \`kms_keys\` |
| \`kms_keys[].arns[]\` | required | Key ARNs of one custody key; every replica of a multi-region key; no aliases |
| \`retired_kms_keys[].arns[]\` | \`[]\` | Custody keys that are still accepted during a rotation |
| \`retired_kms_threshold\` | \`kms_threshold\` | The least threshold of an earlier generation that is rotated from; state it when a rotation raises the threshold |
| \`root_token_recipients[]\` | required | age X25519 public keys that the root token is encrypted to |`,
  tee: `| Member of an endpoint | Default | Meaning |
|---|---|---|
| \`hostname\` | required | The host the enclave reaches: unique, a name and no address |
| \`loopback\` | required | Its address inside the enclave: unique, in 127.0.0.0/8, none of 127.0.0.0, 127.0.0.1 and 127.255.255.255 |
| \`vsock_port\` | required | The parent's vsock port for it: unique, none of the listeners' ports, not 7000 to 7002 (reserved) and not 9000 (nitro-cli's heartbeat) |
| \`port\` | 443 | Its TCP port |`,
};

function optionTable(paths: readonly OptionPath[]): string {
  const rows = paths.map((path) => {
    const { kind, meaning } = optionAt(path);
    const flag = flagOf(path);
    const repeatable = kind.form === 'repeated' ? ' (repeatable)' : '';
    const fallback = defaultText(path);
    return [
      code(path),
      kind.expects,
      fallback === undefined ? 'none' : code(fallback),
      flag === undefined ? '-' : `${code(flag)}${repeatable}`,
      code(variableOf(path)),
      meaning,
    ];
  });
  return table(['Option', 'Value', 'Default', 'Flag', 'Environment', 'Meaning'], rows);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [tableRow(head), `|${'---|'.repeat(head.length)}`, ...rows.map(tableRow)].join('\n');
}

function tableRow(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

function code(text: string): string {
  return `\`${text}\``;
}
