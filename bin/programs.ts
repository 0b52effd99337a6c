// The programs of `strongroom`: what each says of itself, and how it runs. Nothing of a program is loaded before it is
// asked for. Help and completion load none: what the programs say of themselves is written down (described.ts).

import type { Description } from '../command-line/command.ts';
import { described } from './described.ts';

interface Program {
  /** For the list of programs. */
  readonly summary: string;
  /** Loads the sources that say it. */
  describe(): Promise<Description> | Description;
  run(argv: readonly string[]): Promise<void>;
}

export const PROGRAMS: Readonly<Record<string, Program>> = {
  server: {
    summary: 'Run the signer',
    describe: async () => (await import('../enclave/config/help.ts')).serverDescription(),
    run: (argv) => runSigner('server', argv),
  },
  slashing: {
    summary: 'Export, import, prune or show the slashing protection records',
    describe: async () => (await import('../enclave/commands/slashing-descriptions.ts')).slashingDescription,
    run: (argv) => runSigner('slashing', argv),
  },
  ceremony: {
    summary: "Plan the master key's custody, make and check age identities, record a ceremony, open the root token",
    describe: async () => (await import('../ceremony/description.ts')).ceremonyDescription,
    run: async (argv) => {
      const { main } = await import('../ceremony/main.ts');
      const rehearse = { load: async () => (await import('../rehearsal/rehearse.ts')).rehearse };
      process.exitCode = await main(argv, process, new Map([['rehearse', rehearse]]));
    },
  },
  setup: {
    summary: 'Create the DynamoDB tables, print the policies of keys, roles and tables',
    describe: async () => (await import('../setup/description.ts')).setupDescription,
    run: async (argv) => {
      process.exitCode = await (await import('../setup/main.ts')).main(argv);
    },
  },
  operator: {
    summary:
      'Look after a running signer: status, seal, policies, tokens, keys, slashing records; verify an enclave, and ' +
      'tunnel to it for validator clients',
    describe: async () => (await import('../operator/description.ts')).operatorDescription(),
    run: async (argv) => {
      const { main } = await import('../operator/main.ts');
      await main(argv, {
        openLatchTable: async (table) => (await import('../enclave/commands/latch-table.ts')).openLatchTable(table),
      });
    },
  },
  eif: {
    summary: 'Build, describe and compare images for AWS Nitro Enclaves',
    describe: async () => (await import('../eif/description.ts')).eifDescription,
    run: async (argv) => {
      process.exitCode = await (await import('../eif/main.ts')).main(argv);
    },
  },
  web3signer: {
    summary: "Run the signer with Web3Signer's options",
    describe: async () => (await import('../web3signer/description.ts')).web3signerDescription(),
    run: async (argv) => (await import('../web3signer/main.ts')).main(argv),
  },
  'parent-proxy': {
    summary: 'On the parent instance of an enclave: carry its connections',
    describe: async () => (await import('../parent-proxy/description.ts')).parentProxyDescription,
    run: async (argv) => (await import('../parent-proxy/main.ts')).main(argv),
  },
  completion: {
    summary: 'Print a completion script for a shell',
    describe: () => COMPLETION,
    run: async (argv) => (await import('./print-completion.ts')).printCompletion(argv, COMPLETION, described),
  },
};

const COMPLETION = {
  summary: 'Print a completion script for a shell: programs, commands, options, choices and names of profiles',
  argument: { name: 'SHELL', meaning: 'The shell that reads the script', choices: ['bash', 'zsh', 'fish'] },
  examples: [
    'strongroom completion bash > /etc/bash_completion.d/strongroom',
    'strongroom completion zsh > "$fpath[1]/_strongroom"',
    'strongroom completion fish > ~/.config/fish/completions/strongroom.fish',
  ],
} as const satisfies Description;

/** The list of programs, without loading one. */
export const OVERVIEW: Description = {
  summary: 'a remote signer for Ethereum validator keys',
  flags: { version: { meaning: 'Print the version, and the commit it was built from' } },
  commands: Object.fromEntries(Object.entries(PROGRAMS).map(([name, { summary }]) => [name, { summary }])),
  examples: [
    'strongroom server --check -c strongroom.yaml',
    'strongroom server -c strongroom.yaml',
    'strongroom operator status',
  ],
};

/** Everything that can be typed, from the sources that say it. What was written down of it: described.ts. */
export async function describeAll(): Promise<Description> {
  const described = Object.entries(PROGRAMS).map(async ([name, { describe }]) => [name, await describe()] as const);
  return { ...OVERVIEW, commands: Object.fromEntries(await Promise.all(described)) };
}

async function runSigner(command: 'server' | 'slashing', argv: readonly string[]): Promise<void> {
  const { main } = await import('../enclave/main.ts');
  await main(command, argv);
}
