// What every step of the boot gets besides its configuration and the results of earlier steps. It knows no step.

import type { Clock } from '../../observe/clock.ts';
import type { Logger } from '../../observe/logger.ts';
import type { Loaded } from '../config/load.ts';
import type { Enclave } from './enclave/measure.ts';

export interface World {
  readonly logger: Logger;
  readonly clock: Clock;
  /** The BLS core to sign with; the native one, when it is built, unless given. */
  readonly blsCore?: 'native' | 'portable';
  /** Inside an enclave: what measureEnclave found there. */
  readonly enclave?: Enclave;
  /** Where the configuration may be read again while the signer runs: nowhere in an enclave. */
  readonly readConfiguration?: () => Loaded;
}

/** What changes while the signer runs and everything else asks for. */
export interface SignerState {
  shuttingDown: boolean;
  /** Key files that could not be loaded. */
  keyFailures: number;
}
