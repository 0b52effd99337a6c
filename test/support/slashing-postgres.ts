// Backends on databases of a test's PostgreSQL.

import { decodeHex } from '../../common/formats/hex.ts';
import { type Clock, systemClock } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import { rowIntegrity } from '../../signer/slashing/history/codes.ts';
import { openPostgresBackend } from '../../signer/slashing/postgres/backend.ts';
import { type PostgresAddress, parsePostgresUrl } from '../../signer/slashing/postgres/connection/address.ts';
import type { PostgresConnectionOptions } from '../../signer/slashing/postgres/connection/connections.ts';
import type { SlashingBackend } from '../../signer/slashing/types.ts';
import { LONGEST_WAIT_MS } from './patience.ts';
import { MAIN_ROOT, quietLog } from './slashing.ts';

/** The key of the integrity codes in tests. */
export const INTEGRITY_KEY = Buffer.alloc(32, 7);

export interface TestBackendOptions extends Partial<Omit<PostgresConnectionOptions, 'address'>> {
  readonly genesisValidatorsRoot?: string;
  readonly integrityKey?: Uint8Array;
  readonly log?: Log;
  readonly clock?: Clock;
}

/** A test that is about a limit says which. */
const PATIENT = {
  connectMs: LONGEST_WAIT_MS,
  lockMs: LONGEST_WAIT_MS,
  statementMs: LONGEST_WAIT_MS,
  answerMs: LONGEST_WAIT_MS,
};

export function addressOf(url: string): PostgresAddress {
  const address = parsePostgresUrl(url);
  if (address.kind === 'invalid') throw new Error(`the URL of a test is refused: ${address.problem}`);
  return address;
}

export function openTestBackend(url: string, options: TestBackendOptions = {}): Promise<SlashingBackend> {
  const genesisValidatorsRoot = decodeHex(options.genesisValidatorsRoot ?? MAIN_ROOT, 32);
  if (genesisValidatorsRoot === undefined) throw new Error('not a root');
  return openPostgresBackend(
    {
      address: addressOf(url),
      poolSize: options.poolSize ?? 64,
      forceIpv4: options.forceIpv4 ?? false,
      timeouts: { ...PATIENT, ...options.timeouts },
      genesisValidatorsRoot,
      integrity: rowIntegrity({ key: options.integrityKey ?? INTEGRITY_KEY, genesisValidatorsRoot }),
    },
    { log: options.log ?? quietLog, clock: options.clock ?? systemClock },
  );
}
