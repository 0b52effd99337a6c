// The configured slashing store, opened: for the step "slashing protection", and for the offline `slashing` commands.

import { encodeHex } from '../../../formats/hex.ts';
import { systemClock } from '../../../observe/clock.ts';
import type { Config } from '../../config/options.ts';
import type { Network } from '../../signing/networks.ts';
import { openDynamoDBBackend } from '../../slashing/dynamodb/backend.ts';
import { rowIntegrity } from '../../slashing/history/integrity.ts';
import { type JumpFloor, jumpFloor } from '../../slashing/jump.ts';
import { unsafeNoopBackend } from '../../slashing/noop.ts';
import { openPostgresBackend } from '../../slashing/postgres/backend.ts';
import { type PostgresAddress, parsePostgresUrl } from '../../slashing/postgres/connection/address.ts';
import { openSqliteBackend } from '../../slashing/sqlite/backend.ts';
import type { OnJump, SlashingBackend } from '../../slashing/types.ts';
import { type AwsAccess, DEFAULT_AWS_ACCESS } from '../credentials.ts';
import type { Telemetry } from '../telemetry.ts';
import type { World } from '../world.ts';
import { openingFailure } from './failure.ts';

export interface SlashingStoreParts {
  /** As the SDK finds it, unless given. */
  readonly aws?: AwsAccess;
  readonly onCall?: Telemetry['dynamodbCalled'];
  readonly onJump?: OnJump;
  readonly network: Network;
  /** 32 bytes derived from the master key; without one rows carry checksums. */
  readonly integrityKey?: Uint8Array | undefined;
  /** What a jump raises the store to; by the system's clock unless given. */
  readonly floorOf?: JumpFloor;
  /** Open also a store that only a jump can put right (dynamodb: bound to another region, or without its record). */
  readonly isForJump?: boolean;
}

/** @throws Error, a startup failure or that of a command: which store, why, and what to do */
export async function openSlashingBackend(
  config: Config['anti_slashing'],
  parts: SlashingStoreParts,
  world: World,
): Promise<SlashingBackend> {
  try {
    return await openBackend(config, parts, world);
  } catch (error) {
    throw openingFailure(config, error);
  }
}

async function openBackend(
  options: Config['anti_slashing'],
  {
    aws = DEFAULT_AWS_ACCESS,
    onCall,
    onJump,
    network,
    integrityKey,
    isForJump,
    floorOf = jumpFloor(network.time, systemClock.now),
  }: SlashingStoreParts,
  { logger, clock }: World,
): Promise<SlashingBackend> {
  const { genesisValidatorsRoot } = network;
  const log = logger.module('slashing');
  const integrity = () => rowIntegrity({ genesisValidatorsRoot, key: integrityKey });
  switch (options.backend) {
    case 'sqlite':
      return openSqliteBackend(
        { path: options.path, genesisValidatorsRoot: encodeHex(genesisValidatorsRoot), integrityKey },
        { log },
      );
    case 'postgres':
      return openPostgresBackend(
        {
          address: addressOf(options.url),
          poolSize: options.pool_size,
          forceIpv4: options.force_ipv4,
          genesisValidatorsRoot,
          integrity: integrity(),
          jumpFloor: floorOf,
          ...(onJump === undefined ? {} : { onJump }),
        },
        { log, clock },
      );
    case 'dynamodb':
      return openDynamoDBBackend(
        {
          tableName: given(options.table, 'anti_slashing.table'),
          maxConcurrentWrites: options.max_concurrent_writes,
          genesisValidatorsRoot,
          integrity: integrity(),
          client: { ...aws.client, ...(onCall === undefined ? {} : { onCall }) },
          isForJump,
        },
        { log },
      );
    case 'noop':
      return unsafeNoopBackend(encodeHex(genesisValidatorsRoot));
  }
}

function addressOf(url: Config['anti_slashing']['url']): PostgresAddress {
  const reading = parsePostgresUrl(given(url, 'anti_slashing.url').reveal().toString('utf8'));
  if (reading.kind === 'invalid') throw new Error(`anti_slashing.url: ${reading.problem}`);
  return reading;
}

/** The configuration's rules require it: a missing one here is a bug. */
function given<T>(value: T | undefined, option: string): T {
  if (value === undefined) throw new Error(`${option} is missing`);
  return value;
}
