// What every `strongroom slashing` command works with.

import type { Piped } from '../../command-line/terminal.ts';
import type { Clock } from '../../observe/clock.ts';
import type { Logger } from '../../observe/logger.ts';
import type { LoadInput } from '../config/load.ts';
import type { Network } from '../signing/networks.ts';
import type { SlashingBackend } from '../slashing/types.ts';
import type { SlashingArguments } from './slashing-arguments.ts';

export interface Terminal extends Pick<LoadInput, 'env' | 'readFile'> {
  readonly stdin: NodeJS.ReadableStream;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

export interface OpenStore {
  readonly backend: SlashingBackend;
  readonly network: Network;
  readonly clock: Clock;
  readonly terminal: Piped;
  readonly args: SlashingArguments;
  /** Warnings and worse, on stderr. */
  readonly logger: Logger;
}
