// docs/reference/operator.md, from the command tree.

import { type Description, type Flags, walkDescriptions } from '../../common/command-line/command.ts';
import { PROGRAM, SETTINGS_HEADING, YES } from '../../operator/command.ts';
import {
  COMMON_FLAGS,
  DEFAULT_SIGNER_URL,
  DEFAULT_TIMEOUT_SECONDS,
  PREFIX,
  type SettingName,
} from '../../operator/common-flags.ts';
import { EXIT_MEANINGS } from '../../operator/exit.ts';
import { codes } from './markdown.ts';

/** @param operator what the commands say of themselves */
export function operatorReference(operator: Description): string {
  const settings = (Object.keys(COMMON_FLAGS) as SettingName[]).map(settingRow);
  const said = new Set(settings);
  const all = [...walkDescriptions(operator)].filter(({ description }) => description.commands === undefined);
  const commands = all.map(({ path, description }) => section(path, description, said));
  const asking = all.filter(({ description }) => description.flags?.['yes'] === YES.yes);
  const exitCodes = Object.entries(EXIT_MEANINGS).map(([code, meaning]) => `- ${code}: ${meaning}`);
  return `# Operator commands

Generated from the source by \`make docs\`.

\`${PROGRAM} COMMAND\` talks to one running signer ([operating](../specification/operating.md#operator)). \`--help\` of every
command and group has more examples. What is said of an argument or below a command holds for the commands behind it.

## Settings

The signer is \`${DEFAULT_SIGNER_URL}\` unless a URL is given. A request is given up after ${DEFAULT_TIMEOUT_SECONDS} s without progress, a slashing
export or import after 600 s. [The guide](../guides/attestation.md) explains reference values (\`--pcrs\`, \`--pcr\`). In a variable
they are written \`0=HEX,16=HEX\`, in a profile \`pcr: { 0: HEX, 16: [HEX, HEX] }\`. \`verify\` takes them from its command line alone.

The variable of a flag is \`${PREFIX}\` and its name in upper case, its key in a profile the name itself, with \`_\` for \`-\`;
\`profile\` is no key.

${settings.join('\n')}

\`status\` and \`seal\` also take \`--auth-token\`, which means \`--token\`. \`@FILE\` may be written
\`file:FILE\`.

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

${exitCodes.join('\n')}

Commands that stop, replace or destroy something ask on the terminal, or take \`--yes\`: ${codes(asking.map(({ path }) => path.join(' ')))}. With neither
they end with 7 and nothing is sent. \`keys import\` without slashing protection records asks, too, or takes
\`--without-slashing-protection\`.

## Commands

${commands.join('\n')}`;
}

/** @param said flags of the settings, and flags, arguments and notes of earlier commands, with their meanings */
function section(
  path: readonly string[],
  { summary, argument, flags = {}, notes, examples = [] }: Description,
  said: Set<string>,
): string {
  const usage = [PROGRAM, ...path, ...(argument === undefined ? [] : [argument.name])].join(' ');
  const own = flagRows(ownFlags(flags), said);
  const [argumentLine = ''] = unsaid(
    argument === undefined ? [] : [`\`${argument.name}\`: ${argument.meaning}.\n\n`],
    said,
  );
  const table = own === '' ? '' : `${own}\n`;
  const lines = unsaid(notes ?? [], said);
  const noted = lines.length === 0 ? '' : `${lines.join('\n')}\n\n`;
  const [example = ''] = examples;
  const shown = example === usage ? '' : `\`\`\`sh\n${example}\n\`\`\`\n\n`;
  return `### ${usage}\n\n${summary}.\n\n${argumentLine}${table}${noted}${shown}`;
}

/** What an earlier command says of its argument, or notes, holds for those behind it. */
function unsaid(lines: readonly string[], said: Set<string>): readonly string[] {
  const left = lines.filter((line) => !said.has(line));
  for (const line of left) said.add(line);
  return left;
}

/** Without those that every remote command has for the signer. */
function ownFlags(flags: Flags): Flags {
  return Object.fromEntries(Object.entries(flags).filter(([, { heading }]) => heading !== SETTINGS_HEADING));
}

function flagRows(flags: Flags, said: Set<string>): string {
  const told = Object.entries(flags).filter(([, flag]) => flag !== YES.yes);
  const isSaid = told.map(([name, flag]) => said.has(flagRow(name, flag)));
  const rows = told.filter((_, index) => isSaid[index] === false).map(([name, flag]) => flagRow(name, flag));
  const above = told.filter((_, index) => isSaid[index]).map(([name]) => `\`--${name}\``);
  for (const row of rows) said.add(row);
  const isSetting = (name: string): boolean => COMMON_NAMES.has(name);
  if (told.filter(([name]) => isSetting(name)).length === COMMON_NAMES.size) {
    above.splice(0, above.length, 'all settings', ...above.filter((name) => !isSetting(name.slice(3, -1))));
  }
  if (above.length > 0) rows.push(`- As above: ${above.join(', ')}`);
  return rows.map((row) => `${row}\n`).join('');
}

function flagRow(name: string, { placeholder, meaning, required }: Flags[string]): string {
  const usage = placeholder === undefined ? `--${name}` : `--${name} ${placeholder}`;
  return `- \`${usage}\`: ${meaning}${required === true ? ' (required)' : ''}`;
}

const COMMON_NAMES: ReadonlySet<string> = new Set(Object.keys(COMMON_FLAGS));

function settingRow(name: SettingName): string {
  return flagRow(name, COMMON_FLAGS[name]);
}
