// What a program brings to the boot. A program has what its sources import: an image has no SQLite, no portable core,
// no key files and no reload, because enclave/ names none of them.

import type { SignerTime } from '../../common/observe/clock.ts';
import type { AwsAccess } from '../aws/access.ts';
import type { ReadConfigFile } from '../config/network.ts';
import type { Config } from '../config/options.ts';
import type { DescribeRoutes, MountAccounts, MountRoutes } from '../http/app.ts';
import type { KeyTurns } from '../keys/turns.ts';
import type { OtherNames } from '../metrics/metrics.ts';
import type { ReceiptStorage } from '../receipts/storage.ts';
import type { InFlightSigning } from '../tenure.ts';
import type { Authorization, ReadKnownClients } from './authorization.ts';
import type { LoadingKeys, OpenKeyFiles } from './keys.ts';
import type { ListenersParts, OpenListeners } from './open-listeners.ts';
import type { OpenBlsCore } from './secret-key-memory.ts';
import type { SlashingStores } from './slashing-protection/store.ts';
import type { Telemetry } from './telemetry.ts';
import type { World } from './world.ts';

export type OpenAwsAccess = (
  config: Pick<Config, 'anti_slashing' | 'key_sources' | 'signer_state' | 'tee'>,
  parts: { readonly telemetry: Pick<Telemetry, 'kmsCalled'> },
  world: World,
) => Promise<AwsAccess>;

type OpenTime = (world: World, opened: AsyncDisposableStack) => Promise<SignerTime>;

/** The declared connections to the outside; nothing where there is no parent between. */
type OpenEgress = (
  egress: Config['tee']['nitro']['egress'],
  parts: { readonly telemetry: Pick<Telemetry, 'metrics'> },
  world: World,
  opened: AsyncDisposableStack,
) => Promise<void>;

export type OpenListenersStep = (
  config: Pick<Config, 'metrics' | 'server' | 'tls'>,
  parts: ListenersParts,
  world: World,
  opened: AsyncDisposableStack,
) => Promise<OpenListeners>;

interface ReloadedParts {
  readonly authorization: Pick<Authorization, 'replaceTokens'>;
  readonly inFlight: InFlightSigning;
  readonly listeners: () => Pick<OpenListeners, 'reloadCertificate'> | undefined;
  readonly loading: LoadingKeys;
  readonly turns: KeyTurns;
}

interface RunningReload {
  request(): void;
  readonly mount: MountRoutes;
}

export type OpenReload = (config: Config, parts: ReloadedParts, world: World) => RunningReload | undefined;

export interface SignerParts {
  readonly stores: SlashingStores;
  readonly openBlsCore: OpenBlsCore;
  /** Undefined in a program that reads no key files. */
  readonly openKeyFiles: OpenKeyFiles | undefined;
  readonly readConfigFile: ReadConfigFile;
  readonly openEgress: OpenEgress;
  readonly openAwsAccess: OpenAwsAccess;
  readonly openTime: OpenTime;
  /** Undefined in a program without a disk: it keeps receipts in the state table. */
  readonly openReceiptsFolder: ((path: string) => ReceiptStorage) | undefined;
  /** Undefined in a program whose listeners ask for no client certificates. */
  readonly readKnownClients: ReadKnownClients | undefined;
  readonly openListeners: OpenListenersStep;
  /** Undefined in a program without a document of its routes. */
  readonly describeRoutes: DescribeRoutes | undefined;
  readonly mountAccounts: MountAccounts | undefined;
  /** Undefined in a program that reads nothing again while it runs. */
  readonly openReload: OpenReload | undefined;
  /** Undefined in a program whose metrics have the names of the catalogue alone. */
  readonly otherMetricNames: ((config: Config['server'], now: () => number) => OtherNames) | undefined;
}
