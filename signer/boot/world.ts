// What every step of the boot gets besides its configuration and the results of earlier steps. It knows no step.

import type { Ceremony } from '../../ceremony/definition.ts';
import type { DocumentProvider } from '../../common/attestation/contract.ts';
import type { Clock } from '../../common/observe/clock.ts';
import type { Logger } from '../../common/observe/logger.ts';
import type { ConfigurationRead } from '../config/load.ts';
import type { AuthoritiesOf } from '../tee/authorities.ts';
import type { Measurements, Nsm, NsmCallCount } from '../tee/nsm.ts';

export interface Enclave {
  readonly nsm: Nsm;
  readonly documents: DocumentProvider;
  readonly ceremony: Ceremony;
  /** Which authorities vouch for each host, as the image says. */
  readonly authorities: AuthoritiesOf;
  readonly measurements: Measurements;
  /** SHA-384 of the configuration's bytes, hex. */
  readonly configurationDigest: string;
  readonly nsmCalls: () => readonly NsmCallCount[];
}

export interface World {
  readonly logger: Logger;
  readonly clock: Clock;
  /** Inside an enclave: what its start has measured. */
  readonly enclave?: Enclave;
  /** As a person writes it in a command. */
  readonly configurationFile?: string | undefined;
  /** Where the configuration may be read again while the signer runs: nowhere in an enclave. */
  readonly readConfiguration?: () => ConfigurationRead;
}

export interface SignerState {
  shuttingDown: boolean;
  /** Key files that could not be loaded. */
  keyFailures: number;
}
