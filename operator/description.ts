// What `strongroom operator` says of itself, from the command tree: for help and completion.

import type { Description, Flag, Flags } from '../command-line/command.ts';
import type { Command, Group } from './command.ts';
import { COMMON_FLAGS, variableOf } from './common-flags.ts';
import { EXIT_MEANINGS } from './exit.ts';
import { TREE } from './tree.ts';
import { PROGRAM } from './walk.ts';

export function operatorDescription(): Description {
  return { ...describe(TREE), notes: SETTINGS, sections: [exitCodes()] };
}

function describe(node: Group | Command): Description {
  if (node.kind === 'group') {
    const commands = Object.entries(node.commands).map(([word, below]) => [word, describe(below)] as const);
    return { summary: node.summary, commands: Object.fromEntries(commands) };
  }
  const { summary, notes, argument, examples } = node;
  return {
    summary,
    flags: node.kind === 'remote' ? { ...node.flags, ...headed(COMMON_FLAGS) } : node.flags,
    examples: examples.map((line) => `${PROGRAM} ${line}`),
    ...(notes === undefined ? {} : { notes }),
    ...(argument === undefined ? {} : { argument }),
  };
}

/** The common ones stand apart from those of the command. */
function headed(flags: Flags): Flags {
  const entries = Object.entries(flags).map(([name, flag]): [string, Flag] => [
    name,
    { ...flag, heading: 'Options for the signer, and settings' },
  ]);
  return Object.fromEntries(entries);
}

const SETTINGS = [
  `Flags override environment variables (${variableOf('signer-url')}, ${variableOf('token')}, …: the flag's name in ` +
    'upper case), which override the profile, which overrides the defaults. Profiles are in ' +
    '$XDG_CONFIG_HOME/strongroom/operator.yaml (~/.config when unset):',
  `  profiles:
    default:
      signer_url: https://signer.example:9443
      tls_ca: signer-ca.pem
      token: env:STRONGROOM_TOKEN
    enclave:
      signer_url: https://enclave.example:9443
      pcrs: pcrs.json
      pcr: { 16: 4b8d…, 17: [16ef…, 0343…] }`,
  'With reference values (pcrs, pcr) the signer is an enclave: each connection is attested before a byte of a request ' +
    'is sent, and no certificate authority stands in for that.',
  'The profile `default` is used when --profile names none. A token may be env:VAR, @FILE or itself; a file that holds ' +
    'one itself has to be private (chmod 600).',
];

function exitCodes() {
  return { heading: 'Exit codes', entries: Object.entries(EXIT_MEANINGS) };
}
