// How a replica gets its master key (specification/custody.md#states). Every write is one transaction with a condition,
// and a replica that loses a race starts over from what the winner wrote. It trusts nothing of the table before the
// share binding verifies.

import type { CustodyKeys } from '../../ceremony/custody-keys.ts';
import { type CustodyTerms, refuseRecord, unwrapMasterKey, wrapMasterKey } from '../../ceremony/key-record.ts';
import { serializeRecord } from '../../ceremony/record.ts';
import type { Clock } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import type { AuthHead, AuthWrite } from '../auth/stateful/state.ts';
import type { MemoryPolicy } from '../native/load.ts';
import type { KeyOrigin, KeyProvenance } from './key-provenance.ts';
import { MasterKey } from './master-key.ts';
import {
  CustodyFailure,
  masterKeyLost,
  patiently,
  recordIn,
  StateTableFailure,
  servedOrThrow,
} from './startup-failures.ts';
import type { Latch, MasterKeyRow, RootTokenRow } from './state-rows.ts';
import type { BootRows, StateTable } from './state-table.ts';

/** Each time something was written, so this ends early. */
const MAX_ROUNDS = 10;

/** A new root token and the auth rows that make it valid. The token is the receiver's to wipe. */
export interface NewRootToken extends AuthWrite {
  readonly token: Buffer;
  /** There was no head that is to be believed: no policy and no other token counts any more. */
  readonly dropsEverything: boolean;
}

export type MakeRootToken = (masterKey: MasterKey, head: AuthHead | undefined) => NewRootToken;

export interface BootChamberParts {
  readonly table: StateTable;
  readonly terms: CustodyTerms;
  readonly custodyKeys: CustodyKeys;
  readonly makeRootToken: MakeRootToken;
  /** 32 bytes that a new master key is mixed with; in an enclave the NSM's. */
  readonly randomness?: () => Promise<Uint8Array>;
  readonly memory: MemoryPolicy;
  /** In an enclave whose NSM signs: where a key comes from is proven and has to be; undefined elsewhere. */
  readonly provenance?: KeyProvenance | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export type UnsealParts = Pick<BootChamberParts, 'table' | 'terms' | 'custodyKeys' | 'memory' | 'provenance' | 'log'>;

export type Booted =
  | { readonly kind: 'sealed'; readonly latch: Latch }
  /** `isNewTable`: this start has initialised the table, so no other signer has used it yet. */
  | ({ readonly kind: 'unsealed'; readonly isNewTable: boolean } & Unsealed);

/** @throws StateTableFailure, CustodyFailure: the process cannot go on */
export async function bootChamber(parts: BootChamberParts): Promise<Booted> {
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    const rows = await patiently(parts.table, () => parts.table.readBoot());
    if (rows.latch !== undefined) {
      const { reason, sealedAt } = rows.latch;
      parts.log.warn({ reason, sealed_at: sealedAt }, 'SEAL_OVERRIDE is there: this replica stays sealed');
      return { kind: 'sealed', latch: rows.latch };
    }
    const isNewTable = rows.masterKey === undefined;
    const unsealed = await (rows.masterKey === undefined
      ? autoInit(rows, parts)
      : openWith(rows.masterKey, rows, parts));
    if (unsealed !== 'raced') return { kind: 'unsealed', ...unsealed, isNewTable };
    parts.log.info({ round }, 'another replica was faster: starting over from what it wrote');
  }
  throw new StateTableFailure(parts.table.tableName, 'it changes under every attempt; start again');
}

interface Unsealed {
  readonly masterKey: MasterKey;
  readonly origin: KeyOrigin | undefined;
}

async function autoInit(rows: BootRows, parts: BootChamberParts): Promise<Unsealed | 'raced'> {
  const { table, terms, custodyKeys, log } = parts;
  if (rows.rootToken !== undefined || rows.hasAuthHead) throw masterKeyLost(table);
  if (!(await patiently(table, () => table.isEmpty()))) {
    // What another replica writes at this moment comes with a MASTER_KEY; what is there without one was left behind.
    const { masterKey: written, latch } = await patiently(table, () => table.readBoot());
    if (written === undefined && latch === undefined) throw masterKeyLost(table);
    return 'raced';
  }
  const masterKey = MasterKey.generate(parts.memory, await parts.randomness?.());
  return keepIf(masterKey, async () => {
    const wrapped = servedOrThrow(await masterKey.use((bytes) => wrapMasterKey(bytes, terms, custodyKeys)), log);
    const row = await provenRow(serializeRecord(wrapped.record), undefined, parts);
    const origin = parts.provenance?.verify({ masterKey: row, rootToken: undefined });
    const fresh = parts.makeRootToken(masterKey, undefined);
    const rootToken = await sealedFor(fresh, origin, parts);
    const outcome = await patiently(table, () => table.initialise(row, rootToken, fresh));
    const ours = outcome === 'written' || (await readBack(parts))?.record === row.record;
    if (ours)
      log.info(
        { generation: row.generation, deployment: terms.deployment.id },
        'initialised: a new master key and root token are written',
      );
    return ours && parts.provenance?.verify({ masterKey: row, rootToken });
  });
}

async function openWith(row: MasterKeyRow, rows: BootRows, parts: BootChamberParts): Promise<Unsealed | 'raced'> {
  const opened = await autoUnseal({ masterKey: row, rootToken: rows.rootToken }, parts);
  const { masterKey, origin } = opened;
  return keepIf(masterKey, async () => {
    const accounted = await accountForSeal(row, origin, parts);
    if (accounted === undefined) return false;
    const rotated = opened.rotationDue ? await rotate(accounted, { masterKey, origin }, parts) : accounted;
    if (rotated === undefined) return false;
    const rootToken = rows.rootToken ?? (await recreateRootToken(masterKey, origin, parts));
    return rootToken !== undefined && parts.provenance?.verify({ masterKey: rotated, rootToken });
  });
}

/** The latch of the last seal is gone, so an operator removed it: this enclave states that it found it so. */
async function accountForSeal(
  row: MasterKeyRow,
  origin: KeyOrigin | undefined,
  { table, provenance, log }: BootChamberParts,
): Promise<MasterKeyRow | undefined> {
  const { seal } = row;
  if (seal === undefined || provenance === undefined || origin === undefined) return row;
  const evidence = await provenance.attestRow('seal_removed', seal, origin);
  const next = { ...row, seal: undefined, removal: { seal, evidence } };
  const written = (await patiently(table, () => table.replaceMasterKey(row, next))) === 'written';
  if (written)
    log.warn(
      { seal },
      'SEAL_OVERRIDE was removed since the last seal: the MASTER_KEY row says which start found it so',
    );
  return written ? next : undefined;
}

export async function autoUnseal(
  rows: { readonly masterKey: MasterKeyRow; readonly rootToken: RootTokenRow | undefined },
  { terms, custodyKeys, memory, provenance, log }: UnsealParts,
): Promise<Unsealed & { readonly rotationDue: boolean }> {
  const record = recordIn(rows.masterKey);
  const refused = refuseRecord(record, terms);
  if (refused !== undefined) throw new CustodyFailure(refused); // its words say more than those of its evidence
  const origin = provenance?.verify(rows);
  const opened = servedOrThrow(await unwrapMasterKey(record, terms, custodyKeys), log);
  log.info({ generation: record.generation, threshold: record.threshold }, 'unsealed');
  return { masterKey: new MasterKey(opened.masterKey, memory), rotationDue: opened.rotationDue, origin };
}

async function provenRow(
  record: string,
  before: KeyOrigin | undefined,
  { terms, provenance }: BootChamberParts,
): Promise<MasterKeyRow> {
  const row = { generation: terms.ceremony.generation, record };
  return { ...row, evidence: await provenance?.attest(row, before?.links ?? []) };
}

/** Undefined: the row changed meanwhile. */
async function rotate(
  row: MasterKeyRow,
  { masterKey, origin }: Unsealed,
  parts: BootChamberParts,
): Promise<MasterKeyRow | undefined> {
  const { table, terms, custodyKeys, log } = parts;
  const wrapped = servedOrThrow(await masterKey.use((bytes) => wrapMasterKey(bytes, terms, custodyKeys)), log);
  const { seal, removal } = row;
  const next = { ...(await provenRow(serializeRecord(wrapped.record), origin, parts)), seal, removal };
  const outcome = await patiently(table, () => table.replaceMasterKey(row, next));
  const ours = outcome === 'written' || (await readBack(parts))?.record === next.record;
  if (ours)
    log.info(
      { generation: next.generation, was: row.generation, deployment: terms.deployment.id },
      'rotated: the master key is wrapped again',
    );
  return ours ? next : undefined;
}

/** Undefined: another replica came first (specification/authorization.md#root-token). */
async function recreateRootToken(
  masterKey: MasterKey,
  origin: KeyOrigin | undefined,
  parts: BootChamberParts,
): Promise<RootTokenRow | undefined> {
  const { table, makeRootToken, log } = parts;
  const head = await patiently(table, () => table.readHead());
  const fresh = makeRootToken(masterKey, head);
  const rootToken = await sealedFor(fresh, origin, parts);
  const outcome = await patiently(table, () => table.recreateRootToken(rootToken, head?.revision, fresh));
  const ours = outcome === 'written' || (await isStored(fresh.head, parts));
  if (!ours) return undefined;
  log.warn({}, 'ROOT_TOKEN_BOOTSTRAP was absent: a new root token is written, the earlier one is revoked');
  if (fresh.dropsEverything) log.error({ revision: head?.revision ?? null }, ALL_DROPPED);
  return rootToken;
}

const ALL_DROPPED =
  'the row AUTH_REVISION was altered or gone and is written anew: ALL POLICIES AND ALL OTHER TOKENS ARE DROPPED, only the new root token is ' +
  'valid. Find out who wrote the state table; a point-in-time recovery of it has what was lost';

async function sealedFor(
  { token }: NewRootToken,
  origin: KeyOrigin | undefined,
  { terms, clock, provenance }: BootChamberParts,
): Promise<RootTokenRow> {
  try {
    const { encryptRootToken } = await import('../../ceremony/root-token.ts');
    const value = await encryptRootToken(token, terms.ceremony.rootTokenRecipients);
    const evidence = origin && (await provenance?.attestRow('root_token', value, origin));
    return { value, createdAt: new Date(clock.now()).toISOString(), evidence };
  } finally {
    token.fill(0);
  }
}

/** After a failed condition: what is there may be our own write, whose answer was lost. */
function readBack({ table }: BootChamberParts): Promise<MasterKeyRow | undefined> {
  return patiently(table, () => table.readMasterKey());
}

async function isStored(head: AuthHead, { table }: BootChamberParts): Promise<boolean> {
  const stored = await patiently(table, () => table.readHead());
  return stored?.revision === head.revision && Buffer.from(stored.mac).equals(head.mac);
}

/** A master key that does not become this replica's is wiped, whatever happened. */
async function keepIf(
  masterKey: MasterKey,
  decide: () => Promise<false | Unsealed['origin']>,
): Promise<Unsealed | 'raced'> {
  let keep = false;
  try {
    const origin = await decide();
    keep = origin !== false;
    return origin === false ? 'raced' : { masterKey, origin };
  } finally {
    if (!keep) masterKey.wipe();
  }
}
