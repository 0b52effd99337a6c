// The slashing stores of a service: those of many signers, sqlite for a lone one, and noop for tests. The look connects
// to a database and reads; nothing is made, upgraded or bound. The codes of rows are not looked at: with a signer state
// their key is one that only a start unseals.

import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { plural } from '../common/command-line/printable.ts';
import type { Violation } from '../common/command-line/violations.ts';
import { encodeHex } from '../common/formats/hex.ts';
import type { Clock } from '../common/observe/clock.ts';
import type { Log, LogFields } from '../common/observe/log.ts';
import { SignerError } from '../signer/api/errors.ts';
import {
  OTHER_NETWORK,
  problemOf,
  SHARED_STORES,
  type SlashingStores,
} from '../signer/boot/slashing-protection/store.ts';
import type { Config, OptionPath } from '../signer/config/options.ts';
import type { ConfigWarning } from '../signer/config/warnings.ts';
import type { Network } from '../signer/signing/networks.ts';
import { latestBy } from '../signer/slashing/future.ts';
import { futureFloor, futureText } from '../signer/slashing/jump.ts';
import { parsePostgresUrl } from '../signer/slashing/postgres/connection/address.ts';
import { openSqliteBackend } from '../signer/slashing/sqlite/backend.ts';
import type { StoreFloor } from '../signer/slashing/types.ts';
import type { KeyFilesFound } from './key-files.ts';
import { type CheckFinding, failureCode, onThisMachine, SILENT_LOG, whatAnswers } from './look.ts';
import { unsafeNoopBackend } from './noop-store.ts';
import { lookAtDatabase } from './store-looks/sqlite.ts';

export const SERVICE_STORES = {
  ...SHARED_STORES,
  sqlite: ({ path }, { genesisValidatorsRoot, integrityKey, time, log, clock: { now } }) => {
    const mostAwayMs = time && MOST_EPOCHS_AWAY * time.slotsPerEpoch * time.slotDurationMs;
    const root = encodeHex(genesisValidatorsRoot);
    return openSqliteBackend({ path, genesisValidatorsRoot: root, integrityKey, mostAwayMs }, { log, now });
  },
  noop: (_options, { genesisValidatorsRoot }) => unsafeNoopBackend(encodeHex(genesisValidatorsRoot)),
} as const satisfies SlashingStores;

/** A jump costs a vote at most, and a signer that was away for so long has missed as many. */
const MOST_EPOCHS_AWAY = 2;

/** The files of the store on this machine; it is not opened. */
export function lookAtStoreFiles(config: Config): CheckFinding {
  return { violations: storeFiles(config), warnings: [] };
}

function storeFiles({ anti_slashing: { backend, path, url } }: Config): Violation[] {
  if (backend === 'sqlite') return sqliteFolder(path);
  if (backend !== 'postgres' || url === undefined) return [];
  const address = parsePostgresUrl(url.reveal().toString('utf8'));
  const roots = address.kind === 'address' ? address.rootCertificateFile : undefined;
  if (roots === undefined) return [];
  const code = failureCode(() => readFileSync(roots));
  if (code === undefined) return [];
  return [
    onThisMachine(
      'anti_slashing.url',
      `names a file of root certificates that cannot be read: ${roots} (${code})`,
      'correct sslrootcert',
    ),
  ];
}

/** The database is made when it is missing, its folder is not. */
function sqliteFolder(path: string): Violation[] {
  const folder = resolve(dirname(path));
  const at: OptionPath = 'anti_slashing.path';
  const code = failureCode(() => {
    if (!statSync(folder).isDirectory()) throw Object.assign(new Error(), { code: 'ENOTDIR' });
    accessSync(folder, constants.W_OK | constants.X_OK);
  });
  if (code === undefined) return [];
  const remedy = 'create the folder, and give it to the signer’s user';
  return [onThisMachine(at, `lies in a folder that cannot be written: ${folder} (${code})`, remedy)];
}

interface StoreLook {
  readonly network: Network;
  /** A signer that runs has the database open. */
  readonly signerRuns: boolean;
  /** A first start without keys needs no record. */
  readonly keyFiles: Pick<KeyFilesFound, 'hasKeyFiles' | 'publicKeys'>;
  readonly clock: Clock;
}

/** What a store that is not opened says of its floor; nothing verifies it. */
interface FloorLook {
  readonly onFloor: (floor: StoreFloor | null) => void;
}

const OPTION_OF = {
  sqlite: 'anti_slashing.path',
  postgres: 'anti_slashing.url',
  dynamodb: 'anti_slashing.table',
  noop: 'anti_slashing.backend',
} as const satisfies Record<Config['anti_slashing']['backend'], OptionPath>;

export async function lookAtStore(config: Config, look: StoreLook): Promise<CheckFinding> {
  const at = OPTION_OF[config.anti_slashing.backend];
  const warnings: ConfigWarning[] = [];
  const say = (says: string) => warnings.push({ at, says: `names a store of which is to be said: ${says}` });
  const { clock, network } = look;
  const onFloor = (floor: StoreFloor | null) => {
    const future = network.time && futureFloor(floor, clock.now(), network.time);
    if (future !== undefined) say(futureText(future));
  };
  try {
    const found = await lookByBackend(config, { ...look, onFloor }, warningLog(say));
    if (found !== undefined) warnings.push({ at, says: found });
    return { violations: [], warnings };
  } catch (error) {
    return { violations: [violation(at, error)], warnings: [] };
  }
}

const NEW_STORE =
  'names a store that is new: it knows nothing of what was signed. Import the slashing protection of whatever signed ' +
  'with these keys before the first start (strongroom slashing import)';
const unrecordedText = (keys: number) =>
  `names a store that has no readable record of ${plural(keys, 'key')} of the key files: if they signed elsewhere ` +
  'before, import their record before the start (strongroom slashing import)';
const OLD_STORE =
  'names a database of an earlier version, which the start upgrades: stop the signers of that version first';

async function lookByBackend(
  { anti_slashing: options, signer_state }: Config,
  { network: { genesisValidatorsRoot, time }, signerRuns, keyFiles, clock, onFloor }: StoreLook & FloorLook,
  log: Log,
): Promise<string | undefined> {
  const latest = time && latestBy(clock.now, time)();
  const asked = new Set(keyFiles.publicKeys);
  let unrecorded = 0;
  const onRecorded = (recorded: ReadonlySet<string>): void => {
    unrecorded = asked.difference(recorded).size;
  };
  const saidOf = (found: 'new' | 'good' | 'old') =>
    found === 'old' ? OLD_STORE : found === 'new' ? NEW_STORE : unrecorded > 0 ? unrecordedText(unrecorded) : undefined;
  switch (options.backend) {
    case 'sqlite': {
      const kind = signer_state.table === undefined ? 'checksum' : 'hmac';
      const seen = { isInUse: signerRuns, onFloor, onRecorded, latest };
      const expected = { path: options.path, genesisValidatorsRoot, kind, ...seen } as const;
      const found = lookAtDatabase(expected, log);
      return found === 'new' && !keyFiles.hasKeyFiles ? undefined : saidOf(found);
    }
    case 'postgres': {
      const reading = parsePostgresUrl(options.url?.reveal().toString('utf8') ?? '');
      if (reading.kind === 'invalid') throw new Error(reading.problem);
      const { force_ipv4: forceIpv4 } = options;
      const connection = {
        address: reading,
        poolSize: 1,
        forceIpv4,
        genesisValidatorsRoot,
        onFloor,
        onRecorded,
        latest,
      };
      const { lookAtPostgres } = await import('./store-looks/postgres.ts');
      const found = await lookAtPostgres(connection, { log, clock });
      return saidOf(found);
    }
    case 'dynamodb': {
      const { createDynamoDBClient } = await import('../signer/aws/dynamodb.ts');
      const { lookAtSlashingTable } = await import('./store-looks/dynamodb.ts');
      const client = createDynamoDBClient({});
      try {
        const found = await lookAtSlashingTable(client, {
          tableName: options.table ?? '',
          genesisValidatorsRoot,
          onFloor,
        });
        return saidOf(found);
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
  return whatAnswers(path, `names a store that cannot be used: ${problem}`, remedy);
}

function warningLog(say: (text: string) => void): Log {
  return { ...SILENT_LOG, warn: (_fields: LogFields, message: string): void => say(message) };
}

function openingProblem(error: unknown): { readonly problem: string; readonly remedy: string } {
  if (!(error instanceof SignerError)) {
    const problem = error instanceof Error ? error.message : String(error);
    return { problem, remedy: 'correct the option, or what it names' };
  }
  const { problem, isOtherNetwork } = problemOf(error);
  const code = error.detail?.['code'];
  const remedy = typeof code === 'string' ? REMEDIES[code] : undefined;
  return { problem, remedy: isOtherNetwork ? OTHER_NETWORK : (remedy ?? 'put the store right, or name another') };
}

const CORRECT_HOST = 'start the database, or correct host and port; a firewall may be between';
/** By the code of the system and of PostgreSQL (Appendix A of its manual). */
const REMEDIES: Readonly<Record<string, string>> = {
  ECONNREFUSED: CORRECT_HOST,
  ETIMEDOUT: CORRECT_HOST,
  EHOSTUNREACH: CORRECT_HOST,
  ENOTFOUND: 'correct the name of the host',
  EAI_AGAIN: 'correct the name of the host, or the name server of this machine',
  '28000': 'correct user and password, or allow this user in pg_hba.conf',
  '28P01': 'correct user and password',
  '3D000': 'create the database, or correct its name',
  '53300': 'raise max_connections of the server, or end other clients',
};
