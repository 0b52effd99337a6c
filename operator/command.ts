// What a command of the tree is: its flags as data (descriptions/), from which parsing, help, completion and the
// reference are made, and what it does (commands/), which is loaded when it runs. A remote command gets a client for
// the signer of the settings; a local one has no signer.

import type { Argument, Flags, Values } from '../command-line/command.ts';
import type { Terminal } from '../command-line/terminal.ts';
import type { DocumentProvider } from './attestation/provider.ts';
import type { Client, ClientOptions } from './client.ts';
import type { Output } from './output.ts';
import type { OpenLatchTable } from './recovery/latch-table.ts';

export interface RemoteCall<F extends Flags> {
  readonly values: Values<F>;
  readonly argument: string;
  readonly client: Client;
  /** What the client is made of, for a command that serves others with it. */
  readonly connection: ClientOptions;
  readonly output: Output;
  readonly terminal: Terminal;
  /** Undefined where the program has no way to the tables. */
  readonly openLatchTable: OpenLatchTable | undefined;
  /**
   * Ends the command with exit code 7 unless the operator types `word`, or wrote --yes. The question names the signer.
   * @param flag which answers it beforehand; --yes unless given
   */
  confirm(consequence: string, word: string, flag?: string): Promise<void>;
}

export interface LocalCall<F extends Flags> {
  readonly values: Values<F>;
  readonly argument: string;
  readonly terminal: Terminal;
  /** Whose attestation documents are believed. */
  readonly provider: DocumentProvider;
}

interface Description<F extends Flags> {
  readonly summary: string;
  readonly flags: F;
  /** What one line of a flag has no room for: paragraphs, which are wrapped. */
  readonly notes?: readonly string[];
  /** One positional argument; none when undefined. */
  readonly argument?: Argument;
  /** What follows `strongroom operator`. */
  readonly examples: readonly [string, string];
}

interface RemoteDescription<F extends Flags> extends Description<F> {
  readonly kind: 'remote';
  /** Instead of the common default. */
  readonly timeoutSeconds?: number;
}

interface LocalDescription<F extends Flags> extends Description<F> {
  readonly kind: 'local';
}

interface RemoteCommand extends RemoteDescription<Flags> {
  run(call: RemoteCall<Flags>): Promise<void>;
}

interface LocalCommand extends LocalDescription<Flags> {
  run(call: LocalCall<Flags>): Promise<void>;
}

export type Command = RemoteCommand | LocalCommand;

export interface Group {
  readonly kind: 'group';
  readonly summary: string;
  readonly commands: Readonly<Record<string, Group | Command>>;
}

export function remoteDescription<const F extends Flags>(of: Omit<RemoteDescription<F>, 'kind'>): RemoteDescription<F> {
  return { kind: 'remote', ...of };
}

export function localDescription<const F extends Flags>(of: Omit<LocalDescription<F>, 'kind'>): LocalDescription<F> {
  return { kind: 'local', ...of };
}

/** @param load what it does, with its values typed by its flags */
export function remoteCommand<F extends Flags>(
  description: RemoteDescription<F>,
  load: () => Promise<(call: RemoteCall<F>) => Promise<void>>,
): RemoteCommand {
  return { ...description, run: async (call: RemoteCall<F>) => (await load())(call) };
}

export function localCommand<F extends Flags>(
  description: LocalDescription<F>,
  load: () => Promise<(call: LocalCall<F>) => Promise<void>>,
): LocalCommand {
  return { ...description, run: async (call: LocalCall<F>) => (await load())(call) };
}

/** `--yes` of every command that destroys something. */
export const YES = { yes: { meaning: 'Go on without being asked; needed where there is no terminal' } } as const;
