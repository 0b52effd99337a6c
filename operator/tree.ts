// The commands of the operator by their words. What one says of itself and does is one file of commands/, loaded when
// the words lead to it.

import type { Group } from '../common/command-line/program.ts';
import type { OperatorWorld } from './command.ts';
import { settingVariable } from './common-flags.ts';
import { EXIT_MEANINGS } from './exit.ts';

const policies = () => import('./commands/policies.ts');
const tokens = () => import('./commands/tokens.ts');
const keys = () => import('./commands/keys.ts');
const newKeys = () => import('./commands/keys-generate.ts');
const slashing = () => import('./commands/slashing.ts');
const receipts = () => import('./commands/receipts.ts');

const SETTINGS = [
  `Flags override environment variables (${settingVariable('signer-url')}, ${settingVariable('token')}, …: the flag's name in ` +
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

export const OPERATOR_TREE: Group<OperatorWorld> = {
  summary: 'Look after a running signer',
  notes: SETTINGS,
  sections: [{ heading: 'Exit codes', entries: Object.entries(EXIT_MEANINGS) }],
  commands: {
    status: async () => (await import('./commands/status.ts')).signerStatus,
    top: async () => (await import('./commands/top.ts')).top,
    seal: async () => (await import('./commands/seal.ts')).seal,
    recover: async () => (await import('./commands/recover.ts')).recover,
    auth: {
      summary: 'Who may do what',
      commands: {
        policy: {
          summary: 'Policies: what tokens may do',
          commands: {
            create: async () => (await policies()).policyCreate,
            list: async () => (await policies()).policyList,
            get: async () => (await policies()).policyGet,
            update: async () => (await policies()).policyUpdate,
            delete: async () => (await policies()).policyDelete,
          },
        },
        token: {
          summary: 'Tokens: who may do it',
          commands: {
            create: async () => (await tokens()).tokenCreate,
            list: async () => (await tokens()).tokenList,
            lookup: async () => (await tokens()).tokenLookup,
            revoke: async () => (await tokens()).tokenRevoke,
          },
        },
      },
    },
    keys: {
      summary: 'Validator keys',
      commands: {
        list: async () => (await keys()).keysList,
        import: async () => (await import('./commands/keys-import.ts')).keysImport,
        split: async () => (await import('./commands/keys-split.ts')).keysSplit,
        generate: async () => (await newKeys()).keysGenerate,
        backups: async () => (await newKeys()).keysBackups,
        'deposit-data': async () => (await newKeys()).keysDepositData,
        activate: async () => (await keys()).keysActivate,
        deactivate: async () => (await keys()).keysDeactivate,
        delete: async () => (await keys()).keysDelete,
      },
    },
    slashing: {
      summary: 'Slashing protection records, as EIP-3076 files',
      commands: {
        export: async () => (await slashing()).slashingExport,
        import: async () => (await slashing()).slashingImport,
      },
    },
    receipts: {
      summary: 'Receipts: what a signer signed, provable afterwards',
      commands: {
        fetch: async () => (await receipts()).receiptsFetch,
        verify: async () => (await receipts()).receiptsVerify,
      },
    },
    verify: async () => (await import('./commands/verify.ts')).verify,
    doctor: async () => (await import('./commands/doctor.ts')).doctor,
    tunnel: async () => (await import('./commands/tunnel.ts')).tunnel,
  },
};
