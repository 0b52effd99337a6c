// What `strongroom slashing` and its commands say of themselves.

import type { Description, Flags } from '../../command-line/command.ts';
import { outputFile } from '../../command-line/output-file.ts';

export const SLASHING_COMMANDS = ['export', 'import', 'jump', 'prune', 'reinstate', 'retire', 'status'] as const;
export type SlashingCommand = (typeof SLASHING_COMMANDS)[number];

const CONFIG = {
  config: { placeholder: 'FILE', short: 'c', required: true, meaning: 'The configuration that names the store' },
} as const satisfies Flags;
const KEYS = { name: 'KEY', meaning: 'A public key', count: 'many' } as const;

export const SLASHING_DESCRIPTIONS: Readonly<Record<SlashingCommand, Description>> = {
  export: {
    summary: 'Write an EIP-3076 interchange file (version 5) to stdout or to a file',
    flags: {
      ...CONFIG,
      ...outputFile('Where to; stdout when not given'),
      pubkeys: { placeholder: 'KEY,KEY', meaning: 'Only these keys' },
    },
    examples: [
      'strongroom slashing export -c strongroom.yaml --output slashing_protection.json',
      'strongroom slashing export -c strongroom.yaml --pubkeys 0x8000…,0xa99a… > two-keys.json',
    ],
  },
  import: {
    summary: 'Merge an EIP-3076 file, never weakening what is there; all or nothing',
    usage: ['FILE -c CONFIG [--as-minimal | --complete]', '--from-web3signer DATABASE -c CONFIG [--complete]'],
    notes: [
      'Import before the keys are loaded: while a file is merged its keys are refused. A key that is new to the store ' +
        'keeps the entries of the file. A key that the store has records of is merged as minimal: everything up to the ' +
        'highest entries of the file is refused, because the file may be pruned or say less than the key signed ' +
        'elsewhere, and what lies between would look safe.',
      'From a database of Web3Signer: it is that of a Web3Signer that is stopped for good, and nothing in it is changed. ' +
        'It is merged as minimal, so a second run changes nothing. Keys that are disabled there are retired here. ' +
        'Refused while another program is connected to the database, when its rows change, of another network, and of ' +
        'a schema before version 7 or after 12.',
    ],
    argument: { name: 'FILE', meaning: 'An EIP-3076 file, or - for stdin', count: 'optional' },
    flags: {
      ...CONFIG,
      'as-minimal': { meaning: 'Merge keys that are new to the store as minimal, too' },
      complete: {
        meaning:
          "Merge keys that the store has records of by EIP-3076's complete strategy instead. Only for a file that is " +
          'known to list everything that its keys ever signed elsewhere: then nothing more than that is refused',
      },
      'from-web3signer': {
        placeholder: 'DATABASE',
        meaning:
          'postgresql://USER@HOST/DATABASE as in anti_slashing.url (TLS unless ?sslmode=disable), or env:NAME of a ' +
          'variable or file:/PATH of a file that holds it, which keeps a password from other users',
      },
    },
    examples: [
      'strongroom slashing import slashing_protection.json -c strongroom.yaml',
      'strongroom slashing import newer.json --as-minimal -c strongroom.yaml',
      'zcat slashing_protection.json.gz | strongroom slashing import - -c strongroom.yaml',
      'WEB3SIGNER_DB=postgresql://… strongroom slashing import --from-web3signer env:WEB3SIGNER_DB -c strongroom.yaml',
    ],
  },
  jump: {
    summary: 'Raise the store to the present, after any doubt whether records were lost',
    notes: [
      'For every key and every signer of the store: a restored backup, a failover that lost commits. Everything up to ' +
        'now is refused from then on, which costs a validator at most one vote.',
      'With dynamodb it also moves a table to the configured region, and makes a record that was lost anew: stop all ' +
        'signers of the other region for good before.',
    ],
    flags: {
      ...CONFIG,
      'dry-run': { meaning: 'Say what it would refuse and cost, and change nothing' },
      slot: { placeholder: 'SLOT', meaning: 'The present, where the clock cannot say it; with --epoch' },
      epoch: { placeholder: 'EPOCH', meaning: 'The same; with --slot' },
    },
    examples: ['strongroom slashing jump --dry-run -c strongroom.yaml', 'strongroom slashing jump -c strongroom.yaml'],
  },
  prune: {
    summary: 'Delete entries that lie behind the low-water marks; the server does so by itself, in small steps',
    flags: CONFIG,
    examples: [
      'strongroom slashing prune -c strongroom.yaml',
      'strongroom slashing prune -c strongroom.yaml && strongroom slashing status -c strongroom.yaml',
    ],
  },
  reinstate: {
    summary: 'Let keys sign again that were retired: by a DELETE, by being made inactive, or by `retire`',
    notes: ['Their old records stay. Importing a key does the same.'],
    argument: KEYS,
    flags: CONFIG,
    examples: ['strongroom slashing reinstate 0x8000… -c strongroom.yaml'],
  },
  retire: {
    summary: 'From now on every signer of this store refuses these keys; durable when the command ends',
    notes: ['What is exported afterwards is final: nothing can be signed that it does not list.'],
    argument: KEYS,
    flags: CONFIG,
    examples: [
      'strongroom slashing retire 0x8000… -c strongroom.yaml',
      'strongroom slashing export --pubkeys 0x8000… -c strongroom.yaml > moved.json',
    ],
  },
  status: {
    summary: 'Show the store, its network, its floor, how many records it holds, and which keys are retired',
    flags: CONFIG,
    examples: ['strongroom slashing status -c strongroom.yaml', 'watch strongroom slashing status -c strongroom.yaml'],
  },
};

export const slashingDescription: Description = {
  summary: 'The slashing protection records of the configured backend, as EIP-3076 files',
  notes: ['With sqlite the server has to be stopped; postgres and dynamodb may be in use.'],
  commands: SLASHING_DESCRIPTIONS,
  sections: [
    {
      heading: 'Exit codes',
      entries: [
        ['0', 'done'],
        ['1', 'wrong usage, or a store that cannot be used'],
        ['2', 'a file or a database that is refused as a whole (with the place)'],
        ['9', 'merged, and it holds slashable messages, which are named'],
        ['78', 'a configuration that cannot be used'],
      ],
    },
  ],
};
