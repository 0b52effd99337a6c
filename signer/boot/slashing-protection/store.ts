// The configured slashing store, opened: for the step "slashing protection", and for the offline `slashing` commands.

import type { Log } from '../../../common/observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import { type AwsAccess, DEFAULT_AWS_ACCESS } from '../../aws/access.ts';
import { lackingSetting } from '../../aws/errors.ts';
import type { Config } from '../../config/options.ts';
import type { Network } from '../../sign/networks.ts';
import { type RowIntegrity, rowIntegrity } from '../../slashing/history/codes.ts';
import { type PostgresAddress, parsePostgresUrl } from '../../slashing/postgres/connection/address.ts';
import type { SlashingBackend } from '../../slashing/types.ts';
import type { AuthoritiesOf } from '../../tee/authorities.ts';
import type { Telemetry } from '../telemetry.ts';
import type { World } from '../world.ts';

interface StoreOpening
  extends Omit<SlashingStoreParts, 'stores' | 'network'>,
    Pick<Network, 'genesisValidatorsRoot' | 'time'>,
    Pick<World, 'clock'> {
  readonly aws: AwsAccess;
  readonly integrity: () => RowIntegrity;
  readonly authorities: AuthoritiesOf | undefined;
  readonly log: Log;
}

type StoreOpener = (
  options: Config['anti_slashing'],
  opening: StoreOpening,
) => Promise<SlashingBackend> | SlashingBackend;

export type SlashingStores = Readonly<Partial<Record<Config['anti_slashing']['backend'], StoreOpener>>>;

interface SlashingStoreParts {
  readonly stores: SlashingStores;
  readonly aws?: AwsAccess;
  readonly onCall?: Telemetry['dynamodbCalled'];
  readonly network: Network;
  readonly integrityKey?: Uint8Array | undefined;
  /** Open also a store that only a jump can put right (dynamodb: bound to another region, or without its record). */
  readonly isForJump?: boolean;
}

/** @throws Error, a startup failure or that of a command: which store, why, and what to do */
export async function openSlashingBackend(
  options: Config['anti_slashing'],
  { stores, aws = DEFAULT_AWS_ACCESS, ...parts }: SlashingStoreParts,
  { logger, clock, enclave }: World,
): Promise<SlashingBackend> {
  const open = stores[options.backend];
  if (open === undefined) throw new Error(`this program has no ${options.backend} store`);
  const { genesisValidatorsRoot, time } = parts.network;
  try {
    return await open(options, {
      ...parts,
      aws,
      genesisValidatorsRoot,
      integrity: () => rowIntegrity({ genesisValidatorsRoot, key: parts.integrityKey }),
      time,
      authorities: enclave?.authorities,
      log: logger.module('slashing'),
      clock,
    });
  } catch (error) {
    throw openingFailure(options, error);
  }
}

export const SHARED_STORES = {
  postgres: async (options, { genesisValidatorsRoot, integrity, aws, authorities, log, clock }) => {
    const { openPostgresBackend } = await import('../../slashing/postgres/backend.ts');
    return await openPostgresBackend(
      {
        address: addressOf(options.url, aws.databasePassword),
        poolSize: options.pool_size,
        forceIpv4: options.force_ipv4,
        authorities,
        genesisValidatorsRoot,
        integrity: integrity(),
      },
      { log, clock },
    );
  },
  dynamodb: async (options, { genesisValidatorsRoot, integrity, aws, onCall, isForJump, log }) => {
    const { openDynamoDBBackend } = await import('../../slashing/dynamodb/backend.ts');
    return await openDynamoDBBackend(
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
  },
} as const satisfies SlashingStores;

export function addressOf(url: Config['anti_slashing']['url'], sealedPassword?: string): PostgresAddress {
  const reading = parsePostgresUrl(given(url, 'anti_slashing.url').reveal().toString('utf8'));
  if (reading.kind === 'invalid') throw new Error(`anti_slashing.url: ${reading.problem}`);
  return { ...reading, password: sealedPassword ?? reading.password };
}

function given<T>(value: T | undefined, option: string): T {
  if (value === undefined) throw new Error(`${option} is missing`);
  return value;
}

export const OTHER_NETWORK = 'correct `network`, or give each network a store of its own';

/** One line, often the only one that people read. It shows a URL without its password. */
export function openingFailure(config: Config['anti_slashing'], error: unknown): Error {
  const lacking = lackingSetting(error);
  if (lacking) return new Error(`${storeOf(config)}: ${lacking.problem}: ${lacking.remedy}`, { cause: error });
  if (!(error instanceof SignerError)) return error instanceof Error ? error : new Error(String(error));
  const { problem, isOtherNetwork } = problemOf(error);
  const remedy = isOtherNetwork ? `: ${OTHER_NETWORK}` : '';
  return new Error(`${storeOf(config)}: ${problem}${remedy}`, { cause: error });
}

export function problemOf(error: SignerError): { readonly problem: string; readonly isOtherNetwork: boolean } {
  const problem = error.hint ?? error.message;
  const said = [...saidBy(error)].filter((text) => text !== '' && !problem.includes(text));
  const because = said.length === 0 ? '' : ` (${[...new Set(said)].join(', ')})`;
  return { problem: `${problem}${because}`, isOtherNetwork: problem.includes('genesis validators root') };
}

function storeOf({ backend, path, url, table }: Config['anti_slashing']): string {
  switch (backend) {
    case 'sqlite':
      return `anti_slashing.path ${path}`;
    case 'postgres':
      return `anti_slashing.url ${String(url)}`;
    case 'dynamodb':
      return `anti_slashing.table ${table}`;
    case 'noop':
      return 'anti_slashing.backend noop';
  }
}

function* saidBy({ detail, cause }: SignerError): Generator<string> {
  if (typeof detail?.['error'] === 'string') yield detail['error'];
  for (const fact of [detail?.['code'], detail?.['fault']]) if (typeof fact === 'string') yield fact;
  if (cause instanceof SignerError) yield* saidBy(cause);
  if (!(cause instanceof Error) || cause instanceof SignerError) return;
  // A failed system call says it by its code; its words repeat the path.
  if ('code' in cause && typeof cause.code === 'string' && 'syscall' in cause) yield cause.code;
  else yield cause.message;
}
