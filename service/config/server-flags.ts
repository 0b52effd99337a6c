// Flags of the server that are not options.

import type { Flags } from '../../common/command-line/command.ts';

export const SERVER_FLAGS = {
  config: { placeholder: 'FILE', short: 'c', meaning: 'Configuration file, YAML' },
  check: {
    meaning:
      'Find everything that would stop a start (files, ports, locked memory, database, tables, custody keys), change ' +
      'nothing, and exit: 0 when it would start, 78 when it would not',
  },
  offline: {
    meaning: 'With --check: look at the configuration and the files it names only; open no port and no connection',
  },
  decrypt: {
    meaning:
      'With --check: also open each keystore with its password, which takes as long as a first start. A key that ' +
      'cannot be used is exit code 78',
  },
  help: { short: 'h', meaning: 'Print this text and exit' },
  'allow-unsafe-noop-anti-slashing': {
    meaning: 'Permit anti_slashing.backend: noop, which lets slashable messages be signed',
  },
} as const satisfies Flags;
