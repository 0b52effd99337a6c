// The parts of signers that keys come to and go from: replicas of one key table, with one directory of key files, each
// with slashing protection on SQLite of its own, and signing as a client would ask for it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ErrorReason, SignerError } from '../../enclave/api/errors.ts';
import { parseSignRequest } from '../../enclave/api/sign-request.ts';
import { KeyFiles } from '../../enclave/keys/files/key-files.ts';
import { KeystorePool } from '../../enclave/keys/keystores/pool.ts';
import { type DeleteResult, deleteKeys } from '../../enclave/keys/management/delete.ts';
import { type ImportResult, importKeys } from '../../enclave/keys/management/import.ts';
import { type KeyPage, type ListQuery, listKeys } from '../../enclave/keys/management/list.ts';
import type { KeyManagementParts } from '../../enclave/keys/management/management.ts';
import { changeStatus, type StatusResult } from '../../enclave/keys/management/status.ts';
import type { KeyStatus } from '../../enclave/keys/table/types.ts';
import { keyTurns } from '../../enclave/keys/turns.ts';
import { inFlightSigning } from '../../enclave/signing/in-flight.ts';
import { publicNetwork } from '../../enclave/signing/networks.ts';
import { createPermits } from '../../enclave/signing/permits.ts';
import { sign } from '../../enclave/signing/sign.ts';
import { exportInterchangeText, mergeInterchangeText } from '../../enclave/slashing/interchange/text.ts';
import { SlashingProtection } from '../../enclave/slashing/protection.ts';
import { openSqliteBackend } from '../../enclave/slashing/sqlite/backend.ts';
import type { SlashingBackend } from '../../enclave/slashing/types.ts';
import { systemClock } from '../../observe/clock.ts';
import type { DynamoDBServer } from '../../rehearsal/dynamodb.ts';
import type { InterchangeFile } from './interchange.ts';
import { createKeyTableWorld, type KeyTableWorld, type Replica, type ReplicaOptions } from './key-table.ts';
import { encryptKeystore, makeKeyDirectory } from './keys.ts';
import { MAINNET_ROOT } from './messages.ts';
import { recordingLog } from './recording-log.ts';

const PASSWORD = 'TEST password';

export interface ManagedSigner extends Replica {
  readonly parts: KeyManagementParts;
  readonly backend: SlashingBackend;
  /** What a client gets: `signed`, `unknown_key`, or another refusal's reason. */
  ask(publicKey: string, body: object): Promise<string>;
  loadFiles(directory: string): Promise<void>;
}

export interface ManagedWorld {
  readonly table: KeyTableWorld;
  /** Where the key files of every signer are. */
  readonly directory: string;
  /** A signer whose first load is under way. */
  startLoading(options?: ReplicaOptions): Promise<ManagedSigner>;
  /** @param order of the sources that it has loaded */
  start(order?: readonly ('table' | 'files')[], options?: ReplicaOptions): Promise<ManagedSigner>;
  close(): Promise<void>;
}

export async function createManagedWorld(server: DynamoDBServer): Promise<ManagedWorld> {
  const table = await createKeyTableWorld(server);
  const directory = makeKeyDirectory();
  const signers: ManagedSigner[] = [];
  const startLoading = async (options?: ReplicaOptions): Promise<ManagedSigner> => {
    const signer = await manageKeys(await table.openReplica(options));
    signers.push(signer);
    return signer;
  };
  return {
    table,
    directory: directory.path,
    startLoading,
    async start(order = ['table'], options) {
      const signer = await startLoading(options);
      for (const source of order) await (source === 'table' ? signer.loader.load() : signer.loadFiles(directory.path));
      signer.store.completeFirstLoad();
      return signer;
    },
    async close() {
      for (const signer of signers) await signer.close();
      await table.close();
      directory.remove();
    },
  };
}

/** One keystore of the secret. */
export async function importOne(
  parts: KeyManagementParts,
  secret: Uint8Array,
  { persist }: { readonly persist: boolean },
): Promise<ImportResult | undefined> {
  const items = [{ keystore: encryptKeystore(secret, PASSWORD), password: Buffer.from(PASSWORD) }];
  const request = { items, slashingProtection: undefined, persist, allows: () => true };
  return (await importKeys(request, parts, new AbortController().signal))[0];
}

export type Deleted = DeleteResult & { readonly records: InterchangeFile };

export async function deleteOne(parts: KeyManagementParts, publicKey: string, fromTable: boolean): Promise<Deleted> {
  const { results, slashingProtection } = await deleteKeys({ publicKeys: [publicKey], fromTable }, parts);
  return { ...(results[0] as DeleteResult), records: JSON.parse(slashingProtection) as InterchangeFile };
}

export async function changeOne(
  parts: KeyManagementParts,
  publicKey: string,
  status: KeyStatus,
): Promise<StatusResult | undefined> {
  return (await changeStatus([{ publicKey, status }], parts))[0];
}

/** Every page. */
export async function listAll(parts: KeyManagementParts, query: Partial<ListQuery> = {}): Promise<KeyPage['keys']> {
  const keys: KeyPage['keys'][number][] = [];
  let cursor: string | undefined;
  do {
    const page = await listKeys({ limit: 1000, ...query, cursor }, parts);
    keys.push(...page.keys);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return keys;
}

/** A key that goes while it signs is a fault and no refusal: nothing was handed over. */
function faultOf(error: unknown): { readonly kind: 'refused'; readonly reason: ErrorReason } {
  if (error instanceof SignerError) return { kind: 'refused', reason: error.reason };
  throw error;
}

async function manageKeys(replica: Replica): Promise<ManagedSigner> {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-managed-'));
  const log = recordingLog();
  const network = publicNetwork('mainnet');
  const path = join(folder, 'slashing.sqlite');
  const backend = await openSqliteBackend({ path, genesisValidatorsRoot: MAINNET_ROOT }, { log });
  const slashing = new SlashingProtection(backend, {}, { clock: systemClock, log });
  const pool = new KeystorePool({ keystoreLoadConcurrency: 1, memoryLimitBytes: 2 ** 31, cores: 1 }, { log });
  const inFlight = inFlightSigning();
  const records = { backend, genesisValidatorsRoot: MAINNET_ROOT };
  const parts: KeyManagementParts = {
    store: replica.store,
    pool,
    table: { rows: replica.table, loader: replica.loader },
    slashing: {
      merge: (text, allows) => mergeInterchangeText(text, allows, records),
      export: (publicKeys) => exportInterchangeText(publicKeys, records),
      retire: (publicKeys) => records.backend.retire(publicKeys),
      retired: (publicKeys) => records.backend.retiredKeys(publicKeys),
      reinstate: (publicKeys) => records.backend.reinstate(publicKeys),
      assertInForce: () => undefined,
    },
    drain: inFlight.drain,
    turns: keyTurns(),
    log,
  };
  const signing = {
    network,
    core: replica.core,
    slashing,
    permits: createPermits({ maxConcurrentJobs: 2, queueLimit: 100, priorityJobs: 0 }),
    inFlight,
    equivocation: { claim: () => undefined },
    priorityOperations: new Set<never>(),
    canaryKeys: new Set<string>(),
    onCanary: () => undefined,
  };
  return {
    ...replica,
    parts,
    backend,
    async ask(publicKey, body) {
      const parsed = parseSignRequest(Buffer.from(JSON.stringify(body)));
      if (parsed.kind !== 'request') throw new Error('not a request to sign');
      const key = replica.store.find(publicKey);
      if (key === undefined) return 'unknown_key';
      const context = { signal: new AbortController().signal };
      const outcome = await sign(parsed.request, key, context, signing).catch(faultOf);
      return outcome.kind === 'signed' ? 'signed' : outcome.reason;
    },
    async loadFiles(directory) {
      const parts = { store: replica.store, pool, log, clock: systemClock };
      await new KeyFiles({ paths: [directory], rawLoadConcurrency: 1 }, parts).load();
    },
    async close() {
      await slashing.close();
      await pool.close();
      await replica.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
