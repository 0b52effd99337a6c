// `strongroom setup kms-policy`: the policy of one custody key, for the images that may open their share with it.

import { readCommand } from '../../command-line/read-command.ts';
import { note } from '../../command-line/terminal.ts';
import { phaseOf, strings } from '../arguments.ts';
import { KMS_POLICY } from '../description.ts';
import { deploymentIn, InputRefused, readConfig, readImages } from '../inputs.ts';
import { type KeyPolicyRequest, keyPolicy } from '../key-policy.ts';
import { renderPolicy } from '../policy-document.ts';
import type { SetupCommand } from './command.ts';

export const kmsPolicy: SetupCommand = {
  run(argv, terminal) {
    const { values } = readCommand(KMS_POLICY, argv);
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
