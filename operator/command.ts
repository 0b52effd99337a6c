// What a command of the operator is made of: its description, and what it does. A remote command is given a client of
// the signer that the settings name; the flags of the settings stand in its help after its own.

import type { DocumentProvider } from '../common/attestation/contract.ts';
import type { FlagValue } from '../common/command-line/arguments.ts';
import type { Description, Flag, Flags, Values } from '../common/command-line/command.ts';
import { EXIT } from '../common/command-line/exit-codes.ts';
import { type Command, command } from '../common/command-line/program.ts';
import { NO_PROGRESS, type Progress, showProgress, type Work } from '../common/command-line/progress.ts';
import { canAsk, readLine } from '../common/command-line/question.ts';
import { note, type Terminal } from '../common/command-line/terminal.ts';
import { columnsOf, wrap } from '../common/command-line/wrap.ts';
import { type Client, type ClientOptions, createClient } from './client.ts';
import { COMMON_FLAGS } from './common-flags.ts';
import { CommandFailure, UsageFailure } from './exit.ts';
import { type AnswerOutput, createOutput } from './output.ts';
import type { OpenLatchTable } from './recovery/latch-table.ts';
import { resolveSettings } from './settings.ts';
import { readToken } from './token.ts';

export const PROGRAM = 'strongroom operator';
export const SETTINGS_HEADING = 'Options for the signer, and settings';

/** What a command can do besides asking the signer. The program that can do it hands it in. */
export interface OperatorParts {
  readonly openLatchTable?: OpenLatchTable;
}

export interface OperatorWorld extends Terminal, OperatorParts {
  readonly provider: DocumentProvider;
}

export interface RemoteCall<F extends Flags> {
  readonly values: Values<F>;
  readonly argument: string;
  readonly client: Client;
  readonly connection: ClientOptions;
  readonly output: AnswerOutput;
  readonly terminal: Terminal;
  /** Undefined where the program has no way to the tables. */
  readonly openLatchTable: OpenLatchTable | undefined;
  /** For what may take longer than two seconds: how far it is, unless a program reads (`--json`). */
  progress(work: Work): Progress;
  /** Ends the command with exit code 7 unless the operator types `word`. @param flag which answers it beforehand */
  confirm(consequence: string, word: string, flag?: string): Promise<void>;
}

export interface LocalCall<F extends Flags> {
  readonly values: Values<F>;
  readonly argument: string;
  readonly terminal: Terminal;
  readonly provider: DocumentProvider;
}

interface OperatorDescription<F extends Flags> extends Pick<Description, 'summary' | 'notes' | 'argument'> {
  readonly flags: F;
  readonly examples: readonly [string, string];
}

type GivenFlags = Readonly<Record<string, FlagValue>>;

interface RemoteDescription<F extends Flags> extends OperatorDescription<F> {
  readonly timeoutSeconds?: number;
  /** For a call that is about no one signer: what it returns is done, and no settings are read. */
  readonly instead?: (values: Values<F> & GivenFlags, world: OperatorWorld) => Promise<void> | undefined;
}

export function remoteCommand<const F extends Flags>(
  description: RemoteDescription<F>,
  run: (call: RemoteCall<F>) => Promise<void>,
): Command<OperatorWorld> {
  const { timeoutSeconds: ownTimeoutSeconds } = description;
  return command(
    descriptionOf(description, { ...description.flags, ...SETTINGS }),
    async ({ values, argument }, world: OperatorWorld) => {
      const other = description.instead?.(values as unknown as Values<F> & GivenFlags, world);
      if (other !== undefined) return other;
      const settings = resolveSettings(values, world.env, world.provider, ownTimeoutSeconds);
      const { peer, token: source, timeoutSeconds, output } = settings;
      if (source?.text === '-' && argument === '-')
        throw new UsageFailure('stdin cannot be both the token and the file');
      const token = source === undefined ? undefined : await readToken(source, world);
      const connection = { peer, token, timeoutSeconds };
      await run({
        values: values as unknown as Values<F>,
        argument,
        client: createClient(connection),
        connection,
        output: createOutput(output, world),
        terminal: world,
        openLatchTable: world.openLatchTable,
        progress: (work) => (output === 'json' ? NO_PROGRESS : showProgress(world, work)),
        confirm: async (consequence, word, flag = '--yes') => {
          if (values['yes'] !== true) await askToType(world, { at: peer.url.origin, consequence, word, flag });
        },
      });
    },
  );
}

export function localCommand<const F extends Flags>(
  description: OperatorDescription<F>,
  run: (call: LocalCall<F>) => Promise<void>,
): Command<OperatorWorld> {
  return command(descriptionOf(description, description.flags), ({ values, argument }, world: OperatorWorld) =>
    run({ values: values as unknown as Values<F>, argument, terminal: world, provider: world.provider }),
  );
}

const SETTINGS: Flags = Object.fromEntries(
  Object.entries(COMMON_FLAGS).map(([name, flag]): [string, Flag] => [name, { ...flag, heading: SETTINGS_HEADING }]),
);

function descriptionOf({ summary, notes, argument, examples }: OperatorDescription<Flags>, flags: Flags) {
  return {
    summary,
    flags,
    examples: examples.map((line) => `${PROGRAM} ${line}`),
    ...(notes === undefined ? {} : { notes }),
    ...(argument === undefined ? {} : { argument }),
  };
}

export const YES = { yes: { meaning: 'Go on without being asked; needed where there is no terminal' } } as const;

// The question before something is destroyed. The operator types the name of what will be gone, so that a habit of
// typing `y` cannot do it. Without a terminal the answer is no, unless --yes gave it beforehand.

interface Question {
  readonly at: string;
  readonly consequence: string;
  readonly word: string;
  readonly flag: string;
}

/** @throws CommandFailure with exit code 7 unless the word is typed */
async function askToType(terminal: Terminal, { at, consequence, word, flag }: Question): Promise<void> {
  if (!canAsk(terminal)) {
    throw new CommandFailure(
      EXIT.notConfirmed,
      'not confirmed: there is no terminal to ask on',
      `add ${flag} if it is meant`,
    );
  }
  note(terminal, `At ${at}:`);
  for (const line of wrap(consequence, columnsOf(terminal.stderr))) note(terminal, line);
  const typed = await readLine(
    terminal,
    `Type the word${word.includes(' ') ? 's' : ''} "${word}" to go on, anything else to stop: `,
  );
  if (typed !== word) throw new CommandFailure(EXIT.notConfirmed, 'not confirmed: nothing was sent');
}
