// What a command of `strongroom slashing` is made of: its description, its words, which are checked before anything is
// opened, and its work on the store that the configuration names.

import { ArgumentsError } from '../../common/command-line/arguments.ts';
import type { Description, Flags } from '../../common/command-line/command.ts';
import { EXIT, type ExitCode } from '../../common/command-line/exit-codes.ts';
import { type Command, command } from '../../common/command-line/program.ts';
import type { CommandWords } from '../../common/command-line/read-command.ts';
import type { Piped } from '../../common/command-line/terminal.ts';
import { writeViolations } from '../../common/command-line/violations-report.ts';
import { canonicalPublicKey } from '../../common/formats/hex.ts';
import type { Clock } from '../../common/observe/clock.ts';
import { systemClock } from '../../common/observe/clock.ts';
import { type LoadInput, loadConfig } from '../config/load.ts';
import { type OpenedStore, type StoreUse, withStore } from './slashing-open.ts';

export interface SlashingTerminal extends Piped, Pick<LoadInput, 'readFile'> {}

export interface CommandStore extends OpenedStore {
  readonly clock: Clock;
  readonly terminal: SlashingTerminal;
}

export const KEYS = { name: 'KEY', meaning: 'A public key', count: 'many' } as const;

const CONFIG = {
  config: { placeholder: 'FILE', short: 'c', required: true, meaning: 'The configuration that names the store' },
} as const satisfies Flags;

interface SlashingDescription<F extends Flags> extends Description {
  readonly flags: F;
}

/** @param read the work that the words ask for @throws ArgumentsError when they ask for none */
export function slashingCommand<const F extends Flags>(
  ownDescription: SlashingDescription<F>,
  read: (words: CommandWords<F>) => (open: CommandStore) => Promise<ExitCode>,
  { isForJump = false, needsBound = false }: Partial<Omit<StoreUse, 'stderr'>> = {},
): Command<SlashingTerminal> {
  const description = { ...ownDescription, flags: { ...CONFIG, ...ownDescription.flags } as typeof CONFIG };
  return command(description, async (words, terminal: SlashingTerminal) => {
    const work = read(words as unknown as CommandWords<F>);
    const loaded = loadConfig(
      { ...terminal, argv: ['-c', words.values.config] },
      { compiledCeremony: false, withoutTokens: true },
    );
    if (!loaded.ok) {
      writeViolations(loaded.violations, terminal);
      return EXIT.configuration;
    }
    const use = { stderr: terminal.stderr, isForJump, needsBound };
    return withStore(loaded.config, use, (store) => work({ ...store, clock: systemClock, terminal }));
  });
}

/** @returns canonical ones @throws ArgumentsError */
export function canonicalKeys(written: readonly string[]): readonly string[] {
  return written.map((key) => {
    const canonical = canonicalPublicKey(key.trim());
    if (canonical !== undefined) return canonical;
    throw new ArgumentsError(`${JSON.stringify(key)}: a public key is 48 bytes of hex`);
  });
}
