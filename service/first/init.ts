// `strongroom init`: a configuration for one signer on this machine, its folders and its tokens, for keys that are new.
// Keys that have signed come by `strongroom migrate`, which brings their record first: init takes no folder of keys, so
// that no key that has signed meets an empty record by it.

import { dirname } from 'node:path';
import { command, type WordsOf } from '../../common/command-line/program.ts';
import type { Terminal } from '../../common/command-line/terminal.ts';
import { configurationText } from './configuration-text.ts';
import {
  DEFAULT_FOLDER,
  filesOf,
  SIGNER_FLAGS,
  showNextSteps,
  shown,
  signerFolder,
  writeAll,
} from './signer-folder.ts';

const DESCRIPTION = {
  summary: 'Write a configuration, folders and tokens for a signer on this machine, for new keys',
  argument: {
    name: 'FOLDER',
    count: 'optional',
    meaning: `Where it is written; ${DEFAULT_FOLDER} in the present folder when not given`,
  },
  flags: SIGNER_FLAGS,
  notes: [
    'It writes strongroom.yaml, keys, passwords, records and tokens below FOLDER, and looks at them as server --check ' +
      'does. It overwrites nothing, and writes a profile of strongroom operator where you have none. Keys that have signed elsewhere come with their record: strongroom migrate.',
  ],
  examples: ['strongroom init', 'strongroom init /etc/strongroom --network hoodi --client prysm'],
} as const;

const NEW_KEYS = [
  'For new keys. Keys that have signed elsewhere come with their record by `strongroom migrate`: without it, this signer',
  'may sign what gets them slashed (docs/guides/migrate.md).',
];

export const init = command(
  DESCRIPTION,
  async ({ values, argument }: WordsOf<typeof DESCRIPTION>, terminal: Terminal) => {
    const folder = signerFolder(argument === '' ? DEFAULT_FOLDER : argument, values, terminal.env);
    const { keys, passwords, records } = folder;
    const said = { writtenBy: 'strongroom init', first: NEW_KEYS, hasDescriptors: false };
    writeAll([keys, passwords, dirname(records)], filesOf(folder, configurationText({ ...folder, ...said })));
    const rows = [
      [keys, 'keystores, NAME.json each'],
      [passwords, 'their passwords, NAME.txt each'],
    ] as const;
    const before = [
      'New keys, or keys that have signed elsewhere? For those, in place of this: strongroom migrate --help',
      `put keystores (NAME.json) into ${shown(keys)}, their passwords (NAME.txt) into ${shown(passwords)}`,
    ];
    await showNextSteps(folder, { rows, before, clients: values.client ?? [] }, terminal);
  },
);
