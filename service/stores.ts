// The slashing stores of a service: those of many signers, sqlite for a lone one, and noop for tests. The look connects
// to a database and reads; nothing is made, upgraded or bound. The codes of rows are not looked at: with a signer state
// their key is one that only a start unseals.

import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { plural } from '../common/command-line/printable.ts';
import { encodeHex } from '../common/formats/hex.ts';
import type { Clock } from '../common/observe/clock.ts';
import type { Log, LogFields } from '../common/observe/log.ts';
import { SignerError } from '../signer/api/errors.ts';
import {
  addressOf,
  OTHER_NETWORK,
  problemOf,
  SHARED_STORES,
  type SlashingStores,
} from '../signer/boot/slashing-protection/store.ts';
import type { Config, OptionPath } from '../signer/config/options.ts';
import type { Network } from '../signer/sign/networks.ts';
import { latestBy, sayAhead } from '../signer/slashing/future.ts';
import { isRolledBack } from '../signer/slashing/history/rules.ts';
import { futureFloor, futureText } from '../signer/slashing/jump.ts';
import { parsePostgresUrl } from '../signer/slashing/postgres/connection/address.ts';
import { openSqliteBackend } from '../signer/slashing/sqlite/backend.ts';
import type { Marks } from '../signer/slashing/types.ts';
import type { KeyFilesFound } from './key-files.ts';
import {
  type CheckFinding,
  failureCode,
  onThisMachine,
  SILENT_LOGGER,
  type StoreGlimpse,
  whatAnswers,
} from './look.ts';
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
export function lookAtStoreFiles({ anti_slashing: { backend, path, url } }: Config, found: CheckFinding): void {
  if (backend === 'sqlite') lookAtFolder(resolve(dirname(path)), found);
  if (backend !== 'postgres' || url === undefined) return;
  const address = parsePostgresUrl(url.reveal().toString('utf8'));
  const roots = address.kind === 'address' ? address.rootCertificateFile : undefined;
  const code = roots && failureCode(() => readFileSync(roots));
  if (code === undefined) return;
  const problem = `names a file of root certificates that cannot be read: ${roots} (${code})`;
  found.violations.push(onThisMachine('anti_slashing.url', problem, 'correct sslrootcert'));
}

/** The database is made when it is missing, its folder is not. */
function lookAtFolder(folder: string, { violations }: CheckFinding): void {
  const code = failureCode(() => {
    if (!statSync(folder).isDirectory()) throw Object.assign(new Error(), { code: 'ENOTDIR' });
    accessSync(folder, constants.W_OK | constants.X_OK);
  });
  if (code === undefined) return;
  const problem = `lies in a folder that cannot be written: ${folder} (${code})`;
  violations.push(onThisMachine('anti_slashing.path', problem, 'create the folder, and give it to the signer’s user'));
}

interface StoreLook {
  readonly network: Network;
  /** A signer that runs has the database open. */
  readonly signerRuns: boolean;
  /** A first start without keys needs no record. */
  readonly keyFiles: KeyFilesFound;
  readonly clock: Clock;
}

const OPTION_OF = {
  sqlite: 'anti_slashing.path',
  postgres: 'anti_slashing.url',
  dynamodb: 'anti_slashing.table',
  noop: 'anti_slashing.backend',
} as const satisfies Record<Config['anti_slashing']['backend'], OptionPath>;

export async function lookAtStore(config: Config, { violations, warnings }: CheckFinding, look: StoreLook) {
  const at = OPTION_OF[config.anti_slashing.backend];
  const say = (says: string) => warnings.push({ at, says: `names a store of which is to be said: ${says}` });
  const log: Log = {
    ...SILENT_LOGGER.module('slashing'),
    warn: (_fields: LogFields, message: string) => void say(message),
  };
  try {
    const glimpse = await glimpseOf(config, look, log);
    const { keyFiles, clock, network } = look;
    const { state, floor, isWhole = false } = glimpse;
    const marks = new Map(glimpse.marks?.map(({ key, ...own }) => [key, own]));
    const future = network.time && futureFloor(floor ?? null, clock.now(), network.time);
    if (future !== undefined) say(futureText(future));
    const latest = network.time && latestBy(clock.now, network.time)();
    const ahead = latest && sayAhead(new Map([...marks].filter(([, own]) => isRolledBack(latest, own))), latest);
    if (ahead !== undefined) say(ahead);
    const unrecorded = keyFiles.publicKeys.filter((key) => isUnmarked(marks.get(key))).length;
    if (state === 'old') warnings.push({ at, says: OLD_STORE });
    else if (state === 'new') warnings.push({ at, says: NEW_STORE });
    else if (isWhole && unrecorded > 0) warnings.push({ at, says: unrecordedText(unrecorded) });
  } catch (error) {
    const { problem, remedy } = openingProblem(error);
    violations.push(whatAnswers(at, `names a store that cannot be used: ${problem}`, remedy));
  }
}

function isUnmarked(marks: Marks | undefined): boolean {
  return (marks?.slot ?? marks?.targetEpoch ?? null) === null;
}

const NEW_STORE =
  'names a store that is new: it knows nothing of what was signed. Import the slashing protection of whatever signed ' +
  'with these keys before the first start (strongroom slashing import)';
const unrecordedText = (keys: number) =>
  `names a store that has no readable record of ${plural(keys, 'key')} of the key files: if they signed elsewhere ` +
  'before, import their record before the start (strongroom slashing import)';
const OLD_STORE =
  'names a database of an earlier version, which the start upgrades: stop the signers of that version first';

async function glimpseOf(
  { anti_slashing: options, signer_state }: Config,
  { network: { genesisValidatorsRoot }, signerRuns, keyFiles, clock }: StoreLook,
  log: Log,
): Promise<StoreGlimpse> {
  switch (options.backend) {
    case 'sqlite': {
      const kind = signer_state.table === undefined ? 'checksum' : 'hmac';
      const expected = { path: options.path, genesisValidatorsRoot, kind, isInUse: signerRuns } as const;
      const glimpse = lookAtDatabase(expected, log);
      return glimpse.state === 'new' && !keyFiles.hasKeyFiles ? { state: 'good' } : glimpse;
    }
    case 'postgres': {
      const { lookAtPostgres } = await import('./store-looks/postgres.ts');
      const { force_ipv4: forceIpv4 } = options;
      const connection = { address: addressOf(options.url), poolSize: 1, forceIpv4, genesisValidatorsRoot };
      return await lookAtPostgres(connection, { log, clock });
    }
    case 'dynamodb': {
      const { lookAtSlashingTable } = await import('./store-looks/dynamodb.ts');
      return await lookAtSlashingTable({ tableName: options.table ?? '', genesisValidatorsRoot });
    }
    case 'noop':
      return { state: 'good' };
  }
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
