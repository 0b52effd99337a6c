// `strongroom setup kms-policy`: the policy of one custody key, for the images that may open their share with it.

import { command } from '../../common/command-line/program.ts';
import { note, type Piped } from '../../common/command-line/terminal.ts';
import { CONFIG } from '../arguments.ts';
import { deploymentIn, hasTableCredentials, InputRefused, readConfig, readImages } from '../inputs.ts';
import { type KeyPolicyRequest, keyPolicy } from '../key-policy.ts';
import { PHASES, renderPolicy } from '../policy-document.ts';

export const kmsPolicy = command(
  {
    summary: 'Print the policy of a custody key, for a list of enclave images',
    usage: ['-c CONFIG --administrator ARN --signer ARN [--pcrs FILE]... [OPTIONS]'],
    notes: [
      'Prints a key policy as JSON and calls nothing. Network and deployment come from CONFIG. The administrators change ' +
        "the policy and decrypt nothing; the root user of the key's account can do the same when they are gone, so that " +
        'nobody is locked out.',
    ],
    flags: {
      ...CONFIG,
      administrator: {
        placeholder: 'ARN',
        repeatable: true,
        required: true,
        meaning: "A role or user of the key's account that may change this policy",
      },
      signer: {
        placeholder: 'ARN',
        repeatable: true,
        required: true,
        meaning: "Who calls the key: the role of the service, or of an enclave's parent",
      },
      pcrs: {
        placeholder: 'FILE',
        repeatable: true,
        meaning:
          'pcrs.json of an image that may decrypt; one for each image, during a rotation the old and the new. Needed ' +
          'for an enclave (tee.platform nitro), and only there',
      },
      pcr: {
        placeholder: 'N=HEX',
        repeatable: true,
        meaning: 'A register in place of what every file says; several values of one are all accepted',
      },
      phase: {
        placeholder: 'PHASE',
        choices: PHASES,
        meaning: 'Default: running. Only in the others are shares encrypted',
      },
      'table-user': {
        placeholder: 'ARN',
        repeatable: true,
        meaning:
          'The user whose credentials are sealed for the enclaves (setup iam --for tables): it encrypts the shares in ' +
          'the phases first-boot and rotation, and the parents never do',
      },
      sealer: {
        placeholder: 'ARN',
        repeatable: true,
        meaning: 'Who may encrypt table credentials for the enclaves, and nothing else',
      },
    },
    examples: [
      'strongroom setup kms-policy -c strongroom.yaml --pcrs pcrs.json \\\n' +
        '  --administrator arn:aws:iam::111122223333:role/custody-admin \\\n' +
        '  --signer arn:aws:iam::111122223333:role/strongroom-parent > key-policy.json',
      'aws kms put-key-policy --key-id KEY --policy-name default \\\n  --policy file://key-policy.json',
    ],
  },

  async ({ values }, terminal: Omit<Piped, 'stdin'>) => {
    const { 'table-user': tableUsers = [] } = values;
    const configFile = values.config;
    const config = readConfig(configFile, terminal.env);
    const images = imagesOf(
      config.tee.platform,
      { files: values.pcrs ?? [], registers: values.pcr ?? [], configFile },
      (text) => note(terminal, `strongroom setup kms-policy: ${text}`),
    );
    const document = keyPolicy({
      administrators: values.administrator,
      signers: values.signer,
      tableUsers: hasTableCredentials(config) ? tableUsers : signersThemselves(tableUsers),
      images,
      phase: PHASES.find((phase) => phase === values.phase) ?? 'running',
      deployment: deploymentIn(config),
      sealers: values.sealer ?? [],
    });
    terminal.stdout.write(renderPolicy(document));
    note(terminal, `strongroom setup kms-policy: ${ONE_KEY_ALONE}`);
  },
);

/** What one policy cannot see: the administrators of the other keys. */
const ONE_KEY_ALONE =
  'this policy is of one key: whoever administers as many keys as the ceremony needs (kms_threshold) can open the ' +
  'master key, and an account’s root user administers all its keys. Give the keys different administrators, in ' +
  'different accounts';

function signersThemselves(named: readonly string[]): KeyPolicyRequest['tableUsers'] {
  if (named.length === 0) return 'the signers';
  throw new InputRefused('--table-user is for an enclave with sealed table credentials; here the signers encrypt');
}

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
