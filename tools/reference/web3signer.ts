// docs/reference/web3signer.md, from the table of options.

import type { Web3SignerOption } from '../../service/web3signer/option.ts';
import { WEB3SIGNER_OPTIONS } from '../../service/web3signer/options/options.ts';
import { capitalised, codes } from './markdown.ts';

export function web3SignerReference(): string {
  const groups = [...Map.groupBy(WEB3SIGNER_OPTIONS, ({ scope }) => scope)];
  return `# Options of Web3Signer

Generated from the source by \`make docs\`. What \`strongroom web3signer [global options] eth2 [options]\` does with
each option of Web3Signer (3522fc87 of 2026-07-15) that concerns \`eth2\`; docs/guides/web3signer.md says how to go
over. An option is honoured, accepted with one warning at the start that says what happens instead, or refused with
exit code 78. What is not listed is refused on the command line and in the YAML file, and warned of in the
environment. \`eth1\` and \`filecoin\` are refused. An option that is marked as newer came to Web3Signer later.

Precedence: command line, environment, YAML file. Variables of strongroom itself (\`SVC_…\`,
docs/reference/configuration.md) go over all of them. The variable of an option is \`WEB3SIGNER_\`, its words and its
name in upper case with \`_\` (\`WEB3SIGNER_ETH2_NETWORK\`); its key in the YAML file is the name, behind the words and
dots (\`eth2.network\`).

${groups.map(([scope, options]) => tableOf(scope, options)).join('\n')}
## Words of the command line

- \`--print-config\`: print the configuration as a strongroom.yaml, and do nothing else
- \`--help\`, \`-h\`, \`help\`: print the options and exit
- \`--version\`, \`-V\`: print the version and exit
`;
}

function tableOf(scope: string, options: readonly Web3SignerOption[]): string {
  const title = scope === '' ? 'Global options' : `Options of \`${scope}\``;
  const alike = [...Map.groupBy(options, becomesText)];
  return `## ${title}

${alike.map(([text, group]) => `- ${group.map(namesOf).join(', ')}: ${text}`).join('\n')}
`;
}

function namesOf(option: Web3SignerOption): string {
  const own = option.isOurs === true ? ' (strongroom’s own)' : option.isNewer === true ? ' (newer)' : '';
  const letter = option.letter === undefined ? [] : [`-${option.letter}`];
  return `${codes([...option.names.map((name) => `--${name}`), ...letter])}${own}`;
}

function becomesText({ becomes }: Web3SignerOption): string {
  switch (becomes.kind) {
    case 'honoured':
      return `**honoured**: ${becomes.how.replace(FORK, '`network.fork_schedule` for its fork')}`;
    case 'accepted':
      return `**accepted**${without(becomes.unless)}: it ${becomes.instead}`;
    case 'refused':
      return `**refused**${without(becomes.unless)}: it ${becomes.why}. ${capitalised(becomes.remedy)}`;
  }
}

/** Options of one fork each are told together. */
const FORK = /`network\.fork_schedule\.\w+`/;

function without(values: readonly string[] = []): string {
  return values.length === 0 ? '' : ` (${codes(values)} without a word)`;
}
