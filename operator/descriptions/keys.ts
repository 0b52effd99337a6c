// What `keys …` says of itself.

import type { Flags } from '../../command-line/command.ts';
import { outputFile } from '../../command-line/output-file.ts';
import { remoteDescription, YES } from '../command.ts';

/** The signer answers a batch when all of it is done. */
const BATCH_TIMEOUT_SECONDS = 600;
/** The signer's default limit of items in one request. */
export const DEFAULT_BATCH_SIZE = 100;

const BATCH_SIZE = {
  'batch-size': { placeholder: 'COUNT', meaning: `Keys of one request; ${DEFAULT_BATCH_SIZE} when not given` },
} as const satisfies Flags;

const WHICH_KEYS = {
  pubkeys: { placeholder: 'KEY,KEY', meaning: 'The keys' },
  'pubkeys-file': { placeholder: 'FILE', meaning: 'The keys, one a line' },
} as const satisfies Flags;

/** The flags of a deposit. */
const TERMS = {
  'withdrawal-address': { placeholder: 'HEX', meaning: 'Execution address that the stake returns to' },
  credentials: { placeholder: 'HEX', meaning: 'Withdrawal credentials, 32 bytes, instead of an address' },
  'amount-gwei': { placeholder: 'GWEI', meaning: 'Of the deposit; 32 ETH when not given' },
  compounding: { meaning: 'Withdrawal credentials of type 0x02' },
  ...outputFile('Where the deposit data goes'),
  file: { placeholder: 'FILE', formerly: 'output', meaning: 'The same' },
} as const satisfies Flags;

export const keysList = remoteDescription({
  summary: 'List the keys, whether they can sign or not',
  flags: {
    status: { placeholder: 'STATUS', meaning: 'Only keys of this status', choices: ['active', 'inactive'] },
    source: {
      placeholder: 'SOURCE',
      meaning: 'Only keys that filesystem, dynamodb or memory holds',
      choices: ['filesystem', 'dynamodb', 'memory'],
    },
  },
  examples: ['keys list --status inactive', `keys list --json | jq -r '.keys[].pubkey'`],
});

export const keysActivate = remoteDescription({
  summary: 'Let keys of the key table sign',
  flags: { ...WHICH_KEYS, ...BATCH_SIZE },
  timeoutSeconds: BATCH_TIMEOUT_SECONDS,
  examples: ['keys activate --pubkeys 0x8000…,0xa99a…', 'keys activate --pubkeys-file keys.txt'],
});

export const keysDeactivate = remoteDescription({
  summary: 'Stop keys of the key table from signing, on every replica',
  flags: { ...WHICH_KEYS, ...BATCH_SIZE, ...YES },
  timeoutSeconds: BATCH_TIMEOUT_SECONDS,
  examples: ['keys deactivate --pubkeys 0x8000…,0xa99a…', 'keys deactivate --pubkeys-file keys.txt --yes'],
});

export const keysDelete = remoteDescription({
  summary: 'Delete keys, and keep their slashing protection records',
  flags: {
    ...WHICH_KEYS,
    ...outputFile('Where the EIP-3076 records of the keys go; needed'),
    'slashing-protection': { placeholder: 'FILE', formerly: 'output', meaning: 'The same' },
    ...BATCH_SIZE,
    ...YES,
  },
  timeoutSeconds: BATCH_TIMEOUT_SECONDS,
  examples: [
    'keys delete --pubkeys 0x8000…,0xa99a… --output records.json',
    'keys delete --pubkeys-file keys.txt --output records.json --yes',
  ],
});

export const keysGenerate = remoteDescription({
  summary: 'Generate keys in the key table',
  flags: {
    count: { placeholder: 'COUNT', meaning: 'How many', required: true },
    ...TERMS,
    backups: { placeholder: 'DIRECTORY', meaning: 'Where the encrypted mnemonics go, a file for each key' },
    ...BATCH_SIZE,
  },
  timeoutSeconds: BATCH_TIMEOUT_SECONDS,
  examples: [
    'keys generate --count 10 --backups backups',
    'keys generate --count 10 --withdrawal-address 0x5290… --output data.json',
  ],
});

export const keysDepositData = remoteDescription({
  summary: 'Deposit data of keys of the key table',
  flags: {
    ...WHICH_KEYS,
    ...TERMS,
    'force-recompute': { meaning: 'Replace data on other terms, where the signer allows it' },
    ...BATCH_SIZE,
    ...YES,
  },
  timeoutSeconds: BATCH_TIMEOUT_SECONDS,
  examples: [
    'keys deposit-data --pubkeys-file keys.txt --credentials 0x01… --output data.json',
    'keys deposit-data --pubkeys 0x80… --withdrawal-address 0x52… --force-recompute',
  ],
});

export const keysImport = remoteDescription({
  summary: 'Import a directory of EIP-2335 keystores',
  flags: {
    storage: {
      placeholder: 'WHERE',
      meaning: 'table: on every replica; memory: until this one ends',
      required: true,
      choices: ['table', 'memory'],
    },
    'password-file': { placeholder: 'FILE', meaning: 'The password of keystores that have none beside them' },
    'slashing-protection': { placeholder: 'FILE', meaning: 'Their EIP-3076 records, merged before any key signs' },
    'without-slashing-protection': { meaning: 'Import without records, and do not ask: nobody knows what they signed' },
    ...BATCH_SIZE,
  },
  argument: { name: 'DIRECTORY', meaning: 'Of NAME.json, each with NAME.password or NAME.txt' },
  timeoutSeconds: BATCH_TIMEOUT_SECONDS,
  examples: [
    'keys import keystores --storage table --slashing-protection records.json',
    'keys import keystores --storage memory --password-file password.txt',
  ],
});
