// `strongroom ceremony plan`: the ceremony of a file as the signer would take it, its digest, what it survives, and
// warnings. It refuses, with every reason at once, what the signer would refuse.

import { JSON_OUTPUT } from '../../common/command-line/json-output.ts';
import { command } from '../../common/command-line/program.ts';
import { type Shown, wrapFor } from '../../common/command-line/wrap.ts';
import { type Ceremony, ceremonyBlock } from '../definition.ts';
import { type CeremonyPlan, planCeremony, spareKeys } from '../plan.ts';
import { CEREMONY_FILE } from './arguments.ts';
import { readCeremonyFile } from './ceremony-file.ts';
import type { CeremonyTerminal } from './command.ts';

export const plan = command(
  {
    summary: 'Print a custody ceremony, its digest, its PCR17, which losses it survives, and warnings',
    notes: ['KMS is not contacted.'],
    argument: CEREMONY_FILE,
    flags: JSON_OUTPUT,
    examples: ['strongroom ceremony plan ceremony.yaml', 'strongroom ceremony plan strongroom.yaml --json'],
  },

  async ({ argument, values }, terminal: CeremonyTerminal) => {
    const planned = planCeremony(await readCeremonyFile(argument));
    terminal.stdout.write(values.json ? asJson(planned) : asTable(planned, terminal.stdout));
  },
);

function asJson({ ceremony, canonical, digest, pcr17, losses, warnings }: CeremonyPlan): string {
  const body = {
    ceremony: ceremonyBlock(ceremony),
    canonical,
    digest_sha384: digest,
    pcr17,
    survivable_key_losses: spareKeys(ceremony),
    losses: losses.map(({ of, name, keysLeft, survivable }) => ({ of, name, keys_left: keysLeft, survivable })),
    warnings,
  };
  return `${JSON.stringify(body, undefined, 2)}\n`;
}

function asTable(planned: CeremonyPlan, stdout: Shown): string {
  const { ceremony, digest, pcr17, losses, warnings } = planned;
  const { generation, kmsThreshold, kmsKeys, retiredKmsKeys, rootTokenRecipients } = ceremony;
  const spare = spareKeys(ceremony);
  const lines = [
    `Ceremony generation ${generation}: ${kmsThreshold} of ${kmsKeys.length} custody keys open the master key`,
    `Digest (SHA-384) ${digest}`,
    `PCR17            ${pcr17}`,
    '',
    'Custody keys',
    ...keyLines(kmsKeys),
    ...(retiredKmsKeys.length === 0 ? [] : ['', 'Retired keys, still accepted', ...keyLines(retiredKmsKeys)]),
    '',
    'Root token recipients',
    ...rootTokenRecipients.map((recipient, at) => row(`${at + 1}`, recipient)),
    '',
    'Losses',
    lossRow(`any ${plural(Math.max(spare, 1))}`, spare > 0, kmsKeys.length - Math.max(spare, 1)),
    ...losses.map(({ of, name, keysLeft, survivable }) => lossRow(`${of} ${name}`, survivable, keysLeft)),
    '',
    warnings.length === 0 ? 'No warnings' : 'Warnings',
    ...warnings.flatMap(({ message }) => wrapFor(stdout, `  ${message}`)),
  ];
  return `${lines.join('\n')}\n`;
}

const LOSS_WIDTH = 24;

function lossRow(what: string, survivable: boolean, keysLeft: number): string {
  return `  ${what.padEnd(LOSS_WIDTH)} ${survivable ? 'survivable' : 'NOT survivable'}, ${plural(keysLeft)} left`;
}

function keyLines(keys: Ceremony['kmsKeys']): string[] {
  return keys.flatMap(({ arns }, at) => arns.map((arn, replica) => row(replica === 0 ? `${at + 1}` : '', arn)));
}

function row(index: string, text: string): string {
  return `  ${index.padStart(3)}  ${text}`;
}

function plural(count: number): string {
  return count === 1 ? '1 custody key' : `${count} custody keys`;
}
