// docs/reference/web3signer.md and the help, from the table of options.

import { keysOf, variablesOf, type Web3SignerOption } from './option.ts';
import { OPTIONS } from './options/options.ts';

export function web3SignerReference(): string {
  const groups = [...Map.groupBy(OPTIONS, ({ scope }) => scope)];
  return `# Options of Web3Signer

Generated from the source by \`make docs\`. What \`strongroom web3signer [global options] eth2 [options]\` does with
each option of Web3Signer (3522fc87 of 2026-07-15) that concerns \`eth2\`; docs/guides/web3signer.md says how to go
over. An option is honoured, accepted with one warning at the start that says what happens instead, or refused with
exit code 78. What is not in the table is refused on the command line and in the YAML file, and warned of in the
environment. \`eth1\` and \`filecoin\` are refused. An option that is marked as newer came to Web3Signer later.

Precedence: command line, environment, YAML file. Variables of strongroom itself (\`SVC_…\`,
docs/reference/configuration.md) go over all of them.

${groups.map(([scope, options]) => tableOf(scope, options)).join('\n')}
## Words of the command line

| Word | Meaning |
|---|---|
| \`--print-config\` | Print the configuration as a strongroom.yaml, and do nothing else |
| \`--help\`, \`-h\`, \`help\` | Print the options and exit |
| \`--version\`, \`-V\` | Print the version and exit |
`;
}

function tableOf(scope: string, options: readonly Web3SignerOption[]): string {
  const title = scope === '' ? 'Global options' : `Options of \`${scope}\``;
  return `## ${title}

| Option | Environment | Key in the YAML file | What becomes of it |
|---|---|---|---|
${options.map(rowOf).join('\n')}
`;
}

function rowOf(option: Web3SignerOption): string {
  const own = option.isOurs === true ? ' (strongroom’s own)' : option.isNewer === true ? ' (newer)' : '';
  const letter = option.letter === undefined ? [] : [`-${option.letter}`];
  const flags = code([...option.names.map((name) => `--${name}`), ...letter]);
  return `| ${flags}${own} | ${code(variablesOf(option))} | ${code(keysOf(option))} | ${becomesText(option)} |`;
}

function becomesText({ becomes }: Web3SignerOption): string {
  switch (becomes.kind) {
    case 'honoured':
      return `**honoured**: ${becomes.how}`;
    case 'accepted':
      return `**accepted**${without(becomes.unless)}: it ${becomes.instead}`;
    case 'refused':
      return `**refused**${without(becomes.unless)}: it ${becomes.why}. ${becomes.remedy}`;
  }
}

function without(values: readonly string[] = []): string {
  return values.length === 0 ? '' : ` (${code(values)} without a word)`;
}

function code(texts: readonly string[]): string {
  return texts.map((text) => `\`${text}\``).join(', ');
}
