// What the HTTP application is made of: the parts that the steps before it have opened.

import type { BlsCore } from '../../bls/bls.ts';
import type { Watcher } from '../../chamber/watcher.ts';
import type { DescribeRoutes, MountAccounts, MountRoutes } from '../../http/app.ts';
import type { KeyTurns } from '../../keys/turns.ts';
import type { Network } from '../../sign/networks.ts';
import type { Permits } from '../../sign/permits.ts';
import type { InFlightSigning } from '../../tenure.ts';
import type { Authorization } from '../authorization.ts';
import type { Custody } from '../custody.ts';
import type { LoadingKeys } from '../keys.ts';
import type { Receipts } from '../receipts.ts';
import type { OpenSlashing } from '../slashing-protection.ts';
import type { Telemetry } from '../telemetry.ts';
import type { SignerState } from '../world.ts';

export interface Parts
  extends Pick<OpenSlashing, 'binding' | 'right' | 'slashing' | 'store' | 'trouble'>,
    Pick<Authorization, 'authenticator' | 'stateful'> {
  readonly core: BlsCore;
  readonly custody: Custody | undefined;
  readonly inFlight: InFlightSigning;
  readonly loading: LoadingKeys;
  readonly network: Network;
  readonly permits: Permits;
  readonly describeRoutes: DescribeRoutes | undefined;
  readonly mountAccounts: MountAccounts | undefined;
  readonly mountOwn: MountRoutes | undefined;
  readonly receipts: Receipts | undefined;
  readonly state: SignerState;
  readonly telemetry: Telemetry;
  readonly turns: KeyTurns;
  readonly watcher: Watcher | undefined;
}
