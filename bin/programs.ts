// The programs of `strongroom`: what each says of itself, and how it runs. Nothing of a program is loaded before it is
// asked for. Help and completion load none: what the programs say of themselves is written down (described.ts).

import type { Description } from '../common/command-line/command.ts';
import { describeGroup } from '../common/command-line/program.ts';
import { described } from './described.ts';

interface Program {
  readonly summary: string;
  describe(): Promise<Description> | Description;
  run(argv: readonly string[]): Promise<void>;
}

export const PROGRAMS: Readonly<Record<string, Program>> = {
  try: {
    summary: 'See a signature and a refusal: a signer with a TEST key, for some seconds, which leaves nothing behind',
    describe: async () => (await import('../service/first/try.ts')).tryIt.description,
    run: (argv) => runFirstStep('try', argv),
  },
  init: {
    summary: 'Write a configuration, folders and tokens for a signer on this machine, for new keys',
    describe: async () => (await import('../service/first/init.ts')).init.description,
    run: (argv) => runFirstStep('init', argv),
  },
  migrate: {
    summary: 'Bring the keys of a validator client or of Web3Signer, which is stopped, with their record',
    describe: async () => (await import('../service/first/migrate.ts')).migrate.description,
    run: (argv) => runFirstStep('migrate', argv),
  },
  server: {
    summary: 'Run the signer',
    describe: async () => (await import('../service/config/help.ts')).serverDescription(),
    run: async (argv) => (await import('../service/main.ts')).main(argv),
  },
  slashing: {
    summary: 'Export, import, prune or show the slashing protection records',
    describe: async () => describeGroup((await import('../service/commands/slashing.ts')).SLASHING),
    run: async (argv) => (await import('../service/commands/slashing.ts')).main(argv),
  },
  ceremony: {
    summary: "Plan the master key's custody, make and check age identities, record a ceremony, open the root token",
    describe: async () => describeGroup((await import('../ceremony/main.ts')).ceremonyTree(rehearse)),
    run: async (argv) => {
      const { main } = await import('../ceremony/main.ts');
      process.exitCode = await main(argv, process, rehearse);
    },
  },
  setup: {
    summary: 'Create the DynamoDB tables, print the policies of keys, roles and tables',
    describe: async () => describeGroup((await import('../setup/main.ts')).SETUP_TREE),
    run: async (argv) => {
      process.exitCode = await (await import('../setup/main.ts')).main(argv);
    },
  },
  operator: {
    summary:
      'Look after a running signer: status, seal, policies, tokens, keys, slashing records; verify an enclave, and ' +
      'tunnel to it for validator clients',
    describe: async () => describeGroup((await import('../operator/tree.ts')).OPERATOR_TREE),
    run: async (argv) => {
      const { main } = await import('../operator/main.ts');
      await main(argv, {
        openLatchTable: async (table) => (await import('../service/commands/latch-table.ts')).openLatchTable(table),
      });
    },
  },
  eif: {
    summary: 'Build, describe and compare images for AWS Nitro Enclaves',
    describe: async () => describeGroup((await import('../eif/main.ts')).EIF_TREE),
    run: async (argv) => {
      process.exitCode = await (await import('../eif/main.ts')).main(argv);
    },
  },
  web3signer: {
    summary: "Run the signer with Web3Signer's options",
    describe: async () => (await import('../service/web3signer/description.ts')).web3signerDescription(),
    run: async (argv) => (await import('../service/web3signer/main.ts')).main(argv),
  },
  'parent-proxy': {
    summary: 'On the parent instance of an enclave: carry its connections',
    describe: async () => (await import('../parent-proxy/main.ts')).parentProxy.description,
    run: async (argv) => (await import('../parent-proxy/main.ts')).main(argv),
  },
  completion: {
    summary: 'Print a completion script for a shell',
    describe: () => COMPLETION,
    run: async (argv) => (await import('./print-completion.ts')).printCompletion(argv, COMPLETION, described),
  },
};

const rehearse = async () => (await import('../rehearsal/rehearse.ts')).rehearse;

const COMPLETION = {
  summary: 'Print a completion script for a shell: programs, commands, options, choices and names of profiles',
  argument: {
    name: 'SHELL',
    count: 'optional',
    meaning: 'The shell that reads the script; that of $SHELL when not given',
    choices: ['bash', 'zsh', 'fish'],
  },
  examples: [
    'strongroom completion bash > /etc/bash_completion.d/strongroom',
    'strongroom completion zsh > "$fpath[1]/_strongroom"',
    'strongroom completion fish > ~/.config/fish/completions/strongroom.fish',
  ],
} as const satisfies Description;

export const OVERVIEW: Description = {
  summary: 'a remote signer for Ethereum validator keys',
  flags: { version: { meaning: 'Print the version, and the commit it was built from' } },
  commands: Object.fromEntries(Object.entries(PROGRAMS).map(([name, { summary }]) => [name, { summary }])),
  examples: [
    'strongroom try',
    'strongroom init',
    'strongroom migrate --from lighthouse ~/.lighthouse/mainnet --record slashing_protection.json',
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

async function runFirstStep(command: 'try' | 'init' | 'migrate', argv: readonly string[]): Promise<void> {
  const { main } = await import('../service/first/main.ts');
  process.exitCode = await main([command, ...argv]);
}
