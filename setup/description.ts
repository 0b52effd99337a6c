// What `strongroom setup` and its commands say of themselves.

import type { Description, Flags } from '../command-line/command.ts';
import { PHASES } from './policy-document.ts';
import { TABLES } from './table-permissions.ts';

const SUBJECTS = ['signer', 'tables', 'recovery', 'setup', 'table'] as const;

const CONFIG = {
  config: { placeholder: 'FILE', short: 'c', required: true, meaning: "The signer's configuration" },
} as const satisfies Flags;

export const TABLES_COMMAND = {
  summary: 'Create the DynamoDB tables that the configuration names',
  notes: [
    'Creates each table that does not exist: on-demand capacity, deletion protection, point-in-time recovery. A table ' +
      'that exists is checked and never altered. Region and credentials come from the AWS environment. A table that ' +
      'is named by its ARN is made by its name, and in no other region or account than the ARN says.',
    'Keep the slashing table in one region: it is bound to that of the first signer. What roles need on each table is ' +
      'printed by strongroom setup iam.',
  ],
  flags: {
    ...CONFIG,
    print: {
      meaning:
        'Write the definitions as JSON and create nothing: `create` is the input of CreateTable, `continuous_backups` ' +
        'that of UpdateContinuousBackups',
    },
  },
  examples: [
    'strongroom setup tables -c strongroom.yaml',
    'strongroom setup tables -c strongroom.yaml --print > tables.json',
  ],
} as const satisfies Description;

export const KMS_POLICY = {
  summary: 'Print the policy of a custody key, for a list of enclave images',
  usage: ['-c CONFIG --administrator ARN --signer ARN [--pcrs FILE]... [OPTIONS]'],
  notes: [
    'Prints a key policy as JSON and calls nothing. Network and deployment come from CONFIG. The administrators change ' +
      "the policy and decrypt nothing; the key's account can do the same when they are gone, so that nobody is locked " +
      'out.',
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
      meaning: 'Default: running. Only the others may encrypt',
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
} as const satisfies Description;

export const IAM = {
  summary: 'Print the IAM policy of a role or user, or the policy of a table',
  usage: ['-c CONFIG --for SUBJECT [OPTIONS]'],
  notes: ['Prints a policy as JSON and calls nothing. Tables and keys come from CONFIG.'],
  flags: {
    ...CONFIG,
    for: { placeholder: 'SUBJECT', choices: SUBJECTS, required: true, meaning: 'Whose policy: see below' },
    phase: {
      placeholder: 'PHASE',
      choices: PHASES,
      meaning: 'Default: running; the first boot and rotations need more',
    },
    ceremony: { placeholder: 'FILE', meaning: 'The ceremony, for the configuration of an enclave, which has none' },
    account: { placeholder: 'ID', meaning: 'Where the tables are that CONFIG names without an ARN' },
    region: { placeholder: 'REGION', meaning: 'The same' },
    table: { placeholder: 'TABLE', choices: TABLES, meaning: 'Which table, for --for table' },
    'keep-out': { placeholder: 'ARN', repeatable: true, meaning: "A parent's role, for --for table" },
  },
  sections: [
    {
      heading: 'Subjects',
      entries: [
        [
          '--for signer',
          "The role of the service, or of an enclave's parent: custody keys, and the tables unless the configuration has " +
            'sealed credentials for them (tee.nitro.table_credentials)',
        ],
        ['--for tables', 'The user whose credentials are sealed for the enclaves: the tables, and nothing else'],
        ['--for recovery', 'Whoever deletes the latch of a seal, or the row of a lost root token'],
        ['--for setup', 'Whoever runs strongroom setup tables'],
        [
          '--for table',
          'The policy of a table itself: nobody deletes slashing records, and the roles given with --keep-out do nothing ' +
            'with it',
        ],
      ],
    },
  ],
  examples: [
    'strongroom setup iam -c strongroom.yaml --for signer --phase first-boot',
    'strongroom setup iam -c enclave.yaml --for table --table state \\\n' +
      '  --keep-out arn:aws:iam::111122223333:role/strongroom-parent',
  ],
} as const satisfies Description;

export const setupDescription: Description = {
  summary: 'What a deployment needs before its first start: tables, and the policies of keys, roles and tables',
  commands: { tables: TABLES_COMMAND, 'kms-policy': KMS_POLICY, iam: IAM },
  examples: [
    'strongroom setup tables -c strongroom.yaml',
    'strongroom setup kms-policy --help',
    'strongroom setup iam -c strongroom.yaml --for signer --phase first-boot',
  ],
};
