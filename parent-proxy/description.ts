// What `strongroom parent-proxy` says of itself.

import type { Description } from '../command-line/command.ts';

export const FLAGS = {
  config: { placeholder: 'FILE', short: 'c', required: true, meaning: 'Configuration file, YAML' },
  check: {
    meaning:
      'Check what the parent proxy reads, print PCR16 for this file, and exit: 0 when it is good, 78 when it is not',
  },
  help: { short: 'h', meaning: 'Print this text and exit' },
} as const;

export const parentProxyDescription: Description = {
  summary: 'On the parent instance of a Nitro Enclave: carry what the enclave and the network say to each other',
  usage: ['-c FILE [--check]'],
  notes: [
    'It is not trusted: TLS ends in the enclave, and what the enclave reaches is encrypted.',
    "FILE is the enclave's own configuration file. The parent proxy reads tee.nitro.egress.endpoints, the listeners' " +
      'ports and the parent_proxy block; `strongroom server --check` judges the rest. Who may write FILE decides what ' +
      'the enclave is told, and the enclave measures it: PCR16.',
    'SIGTERM ends it gracefully, SIGHUP opens a log file again. Exit codes: 0 a clean end, 78 a configuration that ' +
      'cannot be used, 1 any other failure to start, 70 a bug. docs/reference/parent-proxy.md has every option and metric.',
  ],
  flags: FLAGS,
  sections: [
    {
      heading: 'What it carries',
      entries: [
        [
          'TCP tls, probes, metrics',
          "to the enclave's listeners of those names. The clients' addresses in a PROXY header are this program's word: " +
            'bound_cidrs in an enclave restricts remote callers, not whoever controls the parent.',
        ],
        ['vsock egress ports', 'to the declared endpoints, nothing else'],
        ['vsock 7000', 'the enclave\'s log, to the output, as JSON lines with "source":"enclave"'],
        ['vsock 7001', 'the configuration file, as it was when the parent proxy started'],
        ['vsock 7002', 'AWS credentials of this instance'],
      ],
    },
  ],
  examples: ['strongroom parent-proxy --check -c strongroom.yaml', 'strongroom parent-proxy -c strongroom.yaml'],
};
