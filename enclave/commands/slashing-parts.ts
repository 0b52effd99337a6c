// What every `strongroom slashing` command works with.

import type { Piped } from '../../command-line/terminal.ts';
import type { Clock } from '../../observe/clock.ts';
import type { Logger } from '../../observe/logger.ts';
import type { LoadInput } from '../config/load.ts';
import type { Network } from '../signing/networks.ts';
import type { SlashingBackend } from '../slashing/types.ts';
import type { SlashingArguments } from './slashing-arguments.ts';

export interface SlashingTerminal extends Piped, Pick<LoadInput, 'readFile'> {}

export interface OpenStore {
  readonly backend: SlashingBackend;
  readonly network: Network;
  readonly clock: Clock;
  readonly terminal: SlashingTerminal;
  readonly args: SlashingArguments;
  /** Warnings and worse, on stderr. */
  readonly logger: Logger;
}
