// `strongroom setup kms-policy`: the policy of one custody key, for the images that may open their share with it.

import { readArguments } from '../../command-line/arguments.ts';
import { note } from '../../command-line/terminal.ts';
import { phaseOf, strings } from '../arguments.ts';
import { deploymentIn, InputRefused, readConfig, readImages } from '../inputs.ts';
import { type KeyPolicyRequest, keyPolicy } from '../key-policy.ts';
import { PHASES, renderPolicy } from '../policy-document.ts';
import type { SetupCommand } from './command.ts';

const HELP = `strongroom setup kms-policy: the policy of a custody key

Usage: strongroom setup kms-policy -c CONFIG --administrator ARN --signer ARN [--pcrs FILE]... [OPTIONS]

Prints a key policy as JSON and calls nothing. Network and deployment come from CONFIG. The administrators change the policy
and decrypt nothing; the key's account can do the same when they are gone, so that nobody is locked out.

Options:
  -c, --config FILE       The signer's configuration
  --administrator ARN     A role or user of the key's account that may change this policy; may be repeated
  --signer ARN            Who calls the key: the role of the service, or of an enclave's parent; may be repeated
  --pcrs FILE             pcrs.json of an image that may decrypt; one for each image, during a rotation the old and the new.
                          Needed for an enclave (tee.platform nitro), and only there
  --pcr N=HEX             A register in place of what every file says; several values of one are all accepted
  --phase PHASE           ${PHASES.join(', ')} (default: running). Only the others may encrypt
  --sealer ARN            Who may encrypt table credentials for the enclaves, and nothing else; may be repeated

Examples:
  strongroom setup kms-policy -c strongroom.yaml --pcrs pcrs.json \\
    --administrator arn:aws:iam::111122223333:role/custody-admin \\
    --signer arn:aws:iam::111122223333:role/strongroom-parent > key-policy.json
  aws kms put-key-policy --key-id KEY --policy-name default --policy file://key-policy.json
`;

const FORMS = {
  config: { placeholder: 'FILE', short: 'c', required: true },
  administrator: { placeholder: 'ARN', repeatable: true, required: true },
  signer: { placeholder: 'ARN', repeatable: true, required: true },
  pcrs: { placeholder: 'FILE', repeatable: true },
  pcr: { placeholder: 'N=HEX', repeatable: true },
  phase: { placeholder: 'PHASE', choices: PHASES },
  sealer: { placeholder: 'ARN', repeatable: true },
} as const;

export const kmsPolicy: SetupCommand = {
  help: HELP,
  run(argv, terminal) {
    const { values, words } = readArguments(FORMS, argv);
    if (words.length > 0) throw new InputRefused('it takes flags only');
    const configFile = String(values['config']);
    const config = readConfig(configFile, terminal.env);
    const images = imagesOf(
      config.tee.platform,
      { files: strings(values['pcrs']), registers: strings(values['pcr']), configFile },
      (text) => note(terminal, `strongroom setup kms-policy: ${text}`),
    );
    const document = keyPolicy({
      administrators: strings(values['administrator']),
      signers: strings(values['signer']),
      images,
      phase: phaseOf(values['phase']),
      deployment: deploymentIn(config),
      sealers: strings(values['sealer']),
    });
    terminal.stdout.write(renderPolicy(document));
  },
};

function imagesOf(
  platform: 'off' | 'nitro',
  inputs: Parameters<typeof readImages>[0],
  said: (text: string) => void,
): KeyPolicyRequest['images'] {
  const { files, registers } = inputs;
  if (platform === 'nitro') {
    if (files.length > 0) return readImages(inputs, said);
    throw new InputRefused(
      'the configuration is an enclave’s (tee.platform nitro): name its image with --pcrs pcrs.json, or anybody with the role could decrypt',
    );
  }
  if (files.length === 0 && registers.length === 0) return 'without attestation';
  throw new InputRefused(
    'the configuration is not an enclave’s (tee.platform off): its signer shows no measurements, and could not decrypt under --pcrs',
  );
}
