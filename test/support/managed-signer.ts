// The parts of signers that keys come to and go from: replicas of one key table, with one directory of key files, each
// with slashing protection in memory of its own, and signing as a client would ask for it.

import { systemClock } from '../../common/observe/clock.ts';
import type { DynamoDBServer } from '../../rehearsal/dynamodb.ts';
import { type ErrorReason, SignerError } from '../../signer/api/errors.ts';
import { exportInterchangeText, mergeInterchangeText } from '../../signer/http/bodies/interchange.ts';
import { KeyFiles } from '../../signer/keys/files/key-files.ts';
import { KeystorePool } from '../../signer/keys/keystores/pool.ts';
import { type DeleteResult, deleteKeys } from '../../signer/keys/management/delete.ts';
import { type ImportResult, importKeys } from '../../signer/keys/management/import.ts';
import { type ListedPage, type ListQuery, listManagedKeys } from '../../signer/keys/management/list.ts';
import type { KeyManagementParts } from '../../signer/keys/management/management.ts';
import { changeStatus, type StatusResult } from '../../signer/keys/management/status.ts';
import type { KeyStatus } from '../../signer/keys/table/types.ts';
import { keyTurns } from '../../signer/keys/turns.ts';
import { parseSignRequest } from '../../signer/operations/parse.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { createPermits } from '../../signer/sign/permits.ts';
import { sign } from '../../signer/sign/sign.ts';
import { SlashingProtection } from '../../signer/slashing/protection.ts';
import type { SlashingBackend } from '../../signer/slashing/types.ts';
import { inFlightSigning } from '../../signer/tenure.ts';
import type { InterchangeFile } from './interchange.ts';
import { createKeyTableWorld, type KeyTableWorld, type Replica, type ReplicaOptions } from './key-table.ts';
import { encryptKeystore, makeKeyDirectory } from './keys.ts';
import { MAINNET_ROOT } from './messages.ts';
import { type LogLine, recordingLog } from './recording-log.ts';
import { unrestrained } from './restrained.ts';
import { memoryBackend, newMemoryRecords } from './slashing-memory.ts';

const PASSWORD = 'TEST password';

export interface ManagedSigner extends Replica {
  readonly parts: KeyManagementParts;
  readonly backend: SlashingBackend;
  /** What the changes of keys logged; `lines` are the table's. */
  readonly changeLines: readonly LogLine[];
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
export async function listAll(parts: KeyManagementParts, query: Partial<ListQuery> = {}): Promise<ListedPage['keys']> {
  const keys: ListedPage['keys'][number][] = [];
  let cursor: string | undefined;
  do {
    const page = await listManagedKeys({ limit: 1000, ...query, cursor }, parts);
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
  const log = recordingLog();
  const network = publicNetwork('mainnet');
  const backend = memoryBackend(newMemoryRecords(MAINNET_ROOT));
  replica.readTenuresFrom((publicKeys) => backend.tenures(publicKeys));
  const slashing = new SlashingProtection(unrestrained(backend), {}, { clock: systemClock, log });
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
      tenures: (publicKeys) => records.backend.tenures(publicKeys),
      endTenures: (publicKeys) => records.backend.endTenures(publicKeys),
      beginTenures: (from) => records.backend.beginTenures(from),
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
    hindrance: () => undefined,
  };
  return {
    ...replica,
    parts,
    backend,
    changeLines: log.lines,
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
    },
  };
}
