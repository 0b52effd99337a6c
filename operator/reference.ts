// docs/reference/operator.md, from the command tree.

import type { Flags } from '../command-line/command.ts';
import { type Command, YES } from './command.ts';
import {
  COMMON_FLAGS,
  DEFAULT_SIGNER_URL,
  DEFAULT_TIMEOUT_SECONDS,
  type SettingName,
  variableOf,
} from './common-flags.ts';
import { EXIT_MEANINGS } from './exit.ts';
import { TREE } from './tree.ts';
import { PROGRAM, walk } from './walk.ts';

export function operatorReference(): string {
  const commands = [...walk(TREE)].flatMap(({ path, node }) => (node.kind === 'group' ? [] : [section(path, node)]));
  const settings = (Object.keys(COMMON_FLAGS) as SettingName[]).map(settingRow);
  const exitCodes = Object.entries(EXIT_MEANINGS).map(([code, meaning]) => `| ${code} | ${meaning} |`);
  return `# Operator commands

Generated from the source by \`make docs\`.

\`${PROGRAM} COMMAND\` talks to one running signer. Data goes to stdout, everything else to stderr. \`--help\` is there for every
command and group of commands.

## Settings

Flags override environment variables, which override the profile, which overrides the defaults. The signer is
\`${DEFAULT_SIGNER_URL}\` unless a URL is given, and the output a table, or JSON with \`--json\`. A request is given up after ${DEFAULT_TIMEOUT_SECONDS} s without progress, a slashing
export or import after 600 s. The signer's certificate is always verified: there is no flag that skips it.

With reference values (\`--pcrs\`, \`--pcr\`) the signer is an enclave: each connection is attested before a byte of a request is sent, and no
certificate authority stands in for that ([guide](../guides/attestation.md)). Single registers stand in place of those of the file; a register may
have several accepted values. In a variable they are written \`0=HEX,16=HEX\`, in a profile \`pcr: { 0: HEX, 16: [HEX, HEX] }\`. \`verify\` takes them
from its command line alone.

| Flag | Variable | Key in a profile | Meaning |
|---|---|---|---|
${settings.join('\n')}

\`status\` and \`seal\` also take \`--auth-token\`, which means \`--token\`. A token is \`env:VAR\`, \`@FILE\` (or
\`file:FILE\`), \`-\` (stdin), or the token itself, which works on the command line but is visible to other users there, and is warned about.

Profiles are in \`$XDG_CONFIG_HOME/strongroom/operator.yaml\` (\`~/.config\` when unset). The one named \`default\` is used when none is
named. Paths in it are relative to its folder. A file that holds a token itself is refused when others may read it.

\`\`\`yaml
profiles:
  default:
    signer_url: https://signer.example:9443
    tls_ca: signer-ca.pem
    token: env:STRONGROOM_TOKEN
  enclave:
    signer_url: https://enclave.example:9443
    pcrs: pcrs.json
    token: "@token"
\`\`\`

## Exit codes

| Code | Meaning |
|---|---|
${exitCodes.join('\n')}

Commands that stop, replace or destroy something ask on the terminal, or take \`--yes\`: ${asking()}. With neither
they end with 7 and nothing is sent. \`keys import\` without slashing protection records asks, too, or takes
\`--without-slashing-protection\`.

## Commands

${commands.join('\n')}`;
}

function asking(): string {
  const commands = [...walk(TREE)].filter(({ node }) => node.kind !== 'group' && node.flags['yes'] === YES.yes);
  return commands.map(({ path }) => `\`${path.join(' ')}\``).join(', ');
}

function section(path: readonly string[], { summary, argument, flags, notes, examples }: Command): string {
  const usage = [PROGRAM, ...path, ...(argument === undefined ? [] : [argument.name])].join(' ');
  const own = flagRows(flags);
  const argumentLine = argument === undefined ? '' : `\`${argument.name}\`: ${argument.meaning}.\n\n`;
  const table = own === '' ? '' : `| Flag | Meaning |\n|---|---|\n${own}\n`;
  const noted = notes === undefined ? '' : `${notes.join('\n')}\n\n`;
  return `### ${usage}

${summary}.

${argumentLine}${table}${noted}\`\`\`sh
${examples.map((example) => `${PROGRAM} ${example}`).join('\n')}
\`\`\`
`;
}

function flagRows(flags: Flags): string {
  return Object.entries(flags)
    .filter(([, { formerly }]) => formerly === undefined)
    .map(([name, { placeholder, meaning, required }]) => {
      const usage = placeholder === undefined ? `--${name}` : `--${name} ${placeholder}`;
      return `| \`${usage}\` | ${meaning}${required === true ? ' (required)' : ''} |\n`;
    })
    .join('');
}

function settingRow(name: SettingName): string {
  const flag: Flags[string] = COMMON_FLAGS[name];
  const usage = flag.placeholder === undefined ? `--${name}` : `--${name} ${flag.placeholder}`;
  const key = name === 'profile' ? '' : `\`${name.replaceAll('-', '_')}\``;
  return `| \`${usage}\` | \`${variableOf(name)}\` | ${key} | ${flag.meaning} |`;
}
