// Help: usage, arguments, flags and sub-commands as citty renders them, and what it has no place for: examples, where
// settings come from, exit codes. The only file that imports citty; values are parsed by arguments.ts, strictly.

import { stripVTControlCharacters } from 'node:util';
import { type ArgDef, type CommandDef, renderUsage } from 'citty';
import type { Command, Flag, Group } from './command.ts';
import { EXIT_MEANINGS } from './exit.ts';
import { DEFAULT_SIGNER_URL, variableOf } from './settings.ts';
import { flagsOf, PROGRAM } from './walk.ts';

export async function helpOf(path: readonly string[], node: Group | Command): Promise<string> {
  const usage = await renderUsage(toCitty([PROGRAM, ...path].join(' '), node));
  const parts = [withoutDecoration(usage)];
  if (node.kind !== 'group' && node.notes !== undefined)
    parts.push(`NOTES\n\n${node.notes.map((line) => `  ${line}\n`).join('')}`);
  if (node.kind !== 'group')
    parts.push(`EXAMPLES\n\n${node.examples.map((line) => `  ${PROGRAM} ${line}\n`).join('')}`);
  if (path.length === 0) parts.push(settingsText(), exitCodesText());
  return parts.join('\n');
}

function toCitty(name: string, node: Group | Command): CommandDef {
  const meta = { name, description: node.summary };
  if (node.kind === 'group') {
    const commands = Object.entries(node.commands).map(([word, { summary }]) => [
      word,
      { meta: { description: summary } },
    ]);
    return { meta, subCommands: Object.fromEntries(commands) };
  }
  const { argument } = node;
  const positional: Record<string, ArgDef> =
    argument === undefined ? {} : { [argument.name]: { type: 'positional', description: argument.meaning } };
  const flags = Object.entries(flagsOf(node)).map(([flag, description]) => [flag, toArgument(flag, description)]);
  return { meta, args: { ...positional, ...Object.fromEntries(flags) } };
}

function toArgument(name: string, { placeholder, meaning, required, choices }: Flag): ArgDef {
  const description = name === 'signer-url' ? `${meaning} (default ${DEFAULT_SIGNER_URL})` : meaning;
  if (placeholder === undefined) return { type: 'boolean', description };
  if (choices !== undefined) return { type: 'enum', options: [...choices], description, required: required === true };
  return { type: 'string', valueHint: placeholder, description, required: required === true };
}

/** No colours, whatever the environment says, and no blanks at the ends of lines. */
function withoutDecoration(usage: string): string {
  const lines = stripVTControlCharacters(usage).split('\n');
  return `${lines
    .map((line) => line.trimEnd())
    .join('\n')
    .trimEnd()}\n`;
}

function settingsText(): string {
  return `SETTINGS

  Flags override environment variables (${variableOf('signer-url')}, ${variableOf('token')}, …: the
  flag's name in upper case), which override the profile, which overrides the defaults. Profiles are
  in $XDG_CONFIG_HOME/strongroom/operator.yaml (~/.config when unset):

    profiles:
      default:
        signer_url: https://signer.example:9443
        tls_ca: signer-ca.pem
        token: env:STRONGROOM_TOKEN
      enclave:
        signer_url: https://enclave.example:9443
        pcrs: pcrs.json
        pcr: { 16: 4b8d…, 17: [16ef…, 0343…] }

  With reference values (pcrs, pcr) the signer is an enclave: each connection is attested before a
  byte of a request is sent, and no certificate authority stands in for that.

  The profile \`default\` is used when --profile names none. A token may be env:VAR, @FILE or itself;
  a file that holds one itself has to be private (chmod 600).
`;
}

function exitCodesText(): string {
  const lines = Object.entries(EXIT_MEANINGS).map(([code, meaning]) => `  ${code.padStart(2)}  ${meaning}\n`);
  return `EXIT CODES\n\n${lines.join('')}`;
}
