// What a start would find of its slashing store: `server --check` looks at it as far as that changes nothing. A
// database is connected to and read; nothing is made, upgraded or bound. The codes of rows are not looked at: with a
// signer state their key is one that only a start unseals.

import type { Violation } from '../../command-line/violations.ts';
import type { Clock } from '../../observe/clock.ts';
import type { Log, LogFields } from '../../observe/log.ts';
import { createDynamoDBClient } from '../aws/dynamodb.ts';
import { openingProblem } from '../boot/slashing-protection/failure.ts';
import type { Config, OptionPath } from '../config/options.ts';
import type { ConfigWarning } from '../config/warnings.ts';
import type { Network } from '../signing/networks.ts';
import { lookAtSlashingTable } from '../slashing/dynamodb/look.ts';
import { parsePostgresUrl } from '../slashing/postgres/connection/address.ts';
import { lookAtPostgres } from '../slashing/postgres/look.ts';
import { lookAtDatabase } from '../slashing/sqlite/look.ts';
import type { Found } from './check.ts';

export interface StoreLook {
  readonly network: Network;
  /** A signer that runs has the database open. */
  readonly signerRuns: boolean;
  readonly clock: Clock;
}

const OPTION_OF = {
  sqlite: 'anti_slashing.path',
  postgres: 'anti_slashing.url',
  dynamodb: 'anti_slashing.table',
  noop: 'anti_slashing.backend',
} as const satisfies Record<Config['anti_slashing']['backend'], OptionPath>;

export async function lookAtStore(config: Config, look: StoreLook): Promise<Found> {
  const at = OPTION_OF[config.anti_slashing.backend];
  const warnings: ConfigWarning[] = [];
  const log = warningLog((says) => warnings.push({ at, says: `names a store of which is to be said: ${says}` }));
  try {
    const found = await lookByBackend(config, look, log);
    if (found !== undefined) warnings.push({ at, says: found });
    return { violations: [], warnings };
  } catch (error) {
    return { violations: [violation(at, error)], warnings: [] };
  }
}

const NEW_STORE =
  'names a store that is new: it knows nothing of what was signed. Import the slashing protection of whatever signed ' +
  'with these keys before the first start (strongroom slashing import)';
const OLD_STORE =
  'names a database of an earlier version, which the start upgrades: stop the signers of that version first';

/** What there is to say of a store that can be used. */
async function lookByBackend(
  { anti_slashing: options, signer_state }: Config,
  { network: { genesisValidatorsRoot }, signerRuns, clock }: StoreLook,
  log: Log,
): Promise<string | undefined> {
  switch (options.backend) {
    case 'sqlite': {
      const kind = signer_state.table === undefined ? 'checksum' : 'hmac';
      const expected = { path: options.path, genesisValidatorsRoot, kind, isInUse: signerRuns } as const;
      lookAtDatabase(expected, log); // a start says itself that a database is new: each has a first start
      return undefined;
    }
    case 'postgres': {
      const reading = parsePostgresUrl(options.url?.reveal().toString('utf8') ?? '');
      if (reading.kind === 'invalid') throw new Error(reading.problem);
      const connection = { address: reading, poolSize: 1, forceIpv4: options.force_ipv4, genesisValidatorsRoot };
      const found = await lookAtPostgres(connection, { log, clock });
      return found === 'good' ? undefined : found === 'new' ? NEW_STORE : OLD_STORE;
    }
    case 'dynamodb': {
      const client = createDynamoDBClient({});
      try {
        const found = await lookAtSlashingTable(client, { tableName: options.table ?? '', genesisValidatorsRoot });
        return found === 'new' ? NEW_STORE : undefined;
      } finally {
        client.destroy();
      }
    }
    case 'noop':
      return undefined;
  }
}

function violation(path: OptionPath, error: unknown): Violation {
  const { problem, remedy } = openingProblem(error);
  return { path, problem: `names a store that cannot be used: ${problem}`, remedy, origin: 'what answers there' };
}

/** What the start would log as warnings, as texts. */
function warningLog(say: (text: string) => void): Log {
  const ignore = (): void => undefined;
  const warn = (_fields: LogFields, message: string): void => say(message);
  return { debug: ignore, info: ignore, warn, error: ignore };
}
