// Wraps the master key into the MASTER_KEY record and opens it (specification/custody.md#opening). It compares the
// record with the ceremony before it calls any key. It trusts nothing of the record until the share binding verifies
// under the master key that came out. It returns a record for writing only after it has opened this record again. It
// wipes shares in every case.

import { type CustodyKeys, type KeyAnswer, type KeyResult, shareContext } from './custody-keys.ts';
import { type Ceremony, type CustodyKey, ceremonyArns } from './definition.ts';
import { type Deployment, isSameDeployment } from './deployment.ts';
import { bindRecord, type MasterKeyRecord, type WrappedShare } from './record.ts';
import { recover } from './recovery.ts';
import {
  belowThreshold,
  bindingMismatch,
  type CustodyRefusal,
  generationBehind,
  keyRefusedShare,
  otherCeremony,
  otherDeployment,
  retiredThresholdTooLow,
  unboundRecord,
} from './refusals.ts';
import { splitSecret } from './shares.ts';

/** What a record has to match when it is opened, and is made for when it is written. */
export interface EnvelopeTerms {
  readonly ceremony: Ceremony;
  /** This signer's. */
  readonly deployment: Deployment;
  /** Refuse a record that names no deployment; every record that is written names one. */
  readonly requireBound: boolean;
}

export interface Unwrapped {
  readonly ok: true;
  /** 32 bytes, the caller's to wipe. */
  readonly masterKey: Buffer;
  /** The record is of an earlier generation: wrap the same master key for this ceremony and replace the record. */
  readonly rotationDue: boolean;
  /** False: the record names no deployment, so another signer with the same custody keys could have written it. */
  readonly bound: boolean;
  /** In the order of the shares; those that did not serve deserve a warning. */
  readonly keys: readonly KeyResult[];
}

export interface Wrapped {
  readonly ok: true;
  readonly record: MasterKeyRecord;
  /** How each key opened its share again; those that did not deserve a warning. */
  readonly keys: readonly KeyResult[];
}

/**
 * For the first initialisation, and for a rotation with the master key that `unwrapMasterKey` returned.
 * @param masterKey 32 bytes; stays the caller's
 */
export async function wrapMasterKey(
  masterKey: Buffer,
  terms: EnvelopeTerms,
  custodyKeys: CustodyKeys,
): Promise<Wrapped | CustodyRefusal> {
  const { deployment } = terms;
  const encrypted = await encryptShares(masterKey, terms, custodyKeys);
  if (!encrypted.every(({ answer }) => answer.ok)) return keyRefusedShare(encrypted.map(keyResult));
  const { generation, kmsThreshold: threshold } = terms.ceremony;
  const shares = encrypted.flatMap(({ index, arns, answer }) =>
    answer.ok ? [{ index, arns: [...arns].sort(), ciphertext: answer.bytes }] : [],
  );
  const record = bindRecord(masterKey, { deployment, generation, threshold, shares });
  // A role that may encrypt and not decrypt would seal the master key for ever: found out here, before anything depends
  // on it.
  const proof = await unwrapMasterKey(record, terms, custodyKeys);
  if (!proof.ok) return proof;
  proof.masterKey.fill(0);
  return { ok: true, record, keys: proof.keys };
}

export async function unwrapMasterKey(
  record: MasterKeyRecord,
  terms: EnvelopeTerms,
  custodyKeys: CustodyKeys,
): Promise<Unwrapped | CustodyRefusal> {
  const { ceremony } = terms;
  const refused = refuseRecord(record, terms);
  if (refused !== undefined) return refused;
  const opened = await decryptShares(record, ceremony, custodyKeys);
  try {
    const shares = opened.flatMap(({ index, answer }) =>
      answer.ok ? [{ index, arn: answer.arn, bytes: answer.bytes }] : [],
    );
    if (shares.length < record.threshold) return belowThreshold(record, opened.map(keyResult));
    const recovered = await recover(record, shares);
    if (recovered === undefined) return bindingMismatch(opened.map(keyResult));
    const wrong = new Map(recovered.wrong.map(({ index, arn }) => [index, arn]));
    const keys = opened.map((one) => {
      const arn = wrong.get(one.index);
      const result = keyResult(one);
      return arn === undefined ? result : { ...result, ok: false, attempts: [{ arn, fault: 'wrong_share' as const }] };
    });
    const rotationDue = record.generation < ceremony.generation;
    const bound = record.deployment !== undefined;
    return { ok: true, masterKey: recovered.masterKey, rotationDue, bound, keys };
  } finally {
    wipeAnswers(opened);
  }
}

interface Asked {
  readonly index: number;
  readonly arns: readonly string[];
  readonly answer: KeyAnswer;
}

/**
 * Before a key is called, for words that help. What makes it certain is the encryption context: a record that gives
 * itself out for one of this deployment has shares that no key opens for it.
 */
function refuseForeign(
  record: MasterKeyRecord,
  { deployment, requireBound }: EnvelopeTerms,
): CustodyRefusal | undefined {
  if (record.deployment === undefined) return requireBound ? unboundRecord(record) : undefined;
  return isSameDeployment(record.deployment, deployment) ? undefined : otherDeployment(record.deployment, deployment);
}

/** Why a signer with these terms does not open the record, as far as that is known before a key is called. */
export function refuseRecord(record: MasterKeyRecord, terms: EnvelopeTerms): CustodyRefusal | undefined {
  const { ceremony } = terms;
  const foreign = refuseForeign(record, terms);
  if (foreign !== undefined) return foreign;
  if (record.generation > ceremony.generation) return generationBehind(record, ceremony);
  if (record.generation === ceremony.generation && !isOfCeremony(record, ceremony)) {
    return otherCeremony(record, ceremony);
  }
  if (record.generation < ceremony.generation && record.threshold < leastRetiredThreshold(ceremony)) {
    return retiredThresholdTooLow(record, ceremony);
  }
  return undefined;
}

/**
 * Threshold and key set, whatever the order of the entries. The binding cannot replace this: whoever may encrypt under
 * one of the keys and write the row could state the threshold 1 and bind a master key of their own. A record of an
 * earlier generation is held to the accepted keys and to `leastRetiredThreshold`, for the same reason.
 */
function isOfCeremony(record: MasterKeyRecord, ceremony: Ceremony): boolean {
  return record.threshold === ceremony.kmsThreshold && keySet(record.shares) === keySet(ceremony.kmsKeys);
}

function leastRetiredThreshold({ retiredKmsThreshold, kmsThreshold }: Ceremony): number {
  return retiredKmsThreshold ?? kmsThreshold;
}

function keySet(keys: readonly CustodyKey[]): string {
  return JSON.stringify(keys.map(({ arns }) => [...arns].sort().join(' ')).sort());
}

async function encryptShares(
  masterKey: Buffer,
  { ceremony, deployment }: EnvelopeTerms,
  custodyKeys: CustodyKeys,
): Promise<readonly Asked[]> {
  const { generation, kmsKeys, kmsThreshold } = ceremony;
  const shares = await splitSecret(masterKey, kmsKeys.length, kmsThreshold);
  try {
    return await askAll(
      kmsKeys.map(({ arns }, at) => ({ index: at + 1, arns, share: shares[at] ?? Buffer.alloc(0) })),
      ({ index, arns, share }) =>
        custodyKeys.encryptShare(index, arns, share, shareContext(deployment, generation, index)),
    );
  } finally {
    for (const share of shares) share.fill(0);
  }
}

function decryptShares(
  record: MasterKeyRecord,
  ceremony: Ceremony,
  custodyKeys: CustodyKeys,
): Promise<readonly Asked[]> {
  const accepted = ceremonyArns(ceremony);
  return askAll(record.shares, async ({ index, arns, ciphertext }: WrappedShare) => {
    // In the ceremony's order: the row keeps them sorted, the ceremony says which replica comes first.
    const callable = accepted.filter((arn) => arns.includes(arn));
    if (callable.length > 0) {
      return custodyKeys.decryptShare(
        index,
        callable,
        ciphertext,
        shareContext(record.deployment, record.generation, index),
      );
    }
    return { ok: false, attempts: arns.map((arn) => ({ arn, fault: 'outside_ceremony' })) };
  });
}

/**
 * All at once: at most MAX_CUSTODY_KEYS of them, and a lost key costs its timeout once. Waits for all, so that nothing
 * opened is left behind.
 */
async function askAll<Key extends { readonly index: number; readonly arns: readonly string[] }>(
  keys: readonly Key[],
  ask: (key: Key) => Promise<KeyAnswer>,
): Promise<readonly Asked[]> {
  const settled = await Promise.allSettled(
    keys.map(async (key) => ({ index: key.index, arns: key.arns, answer: await ask(key) })),
  );
  const asked = settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const bug = settled.find((result) => result.status === 'rejected');
  if (bug === undefined) return asked;
  wipeAnswers(asked);
  throw bug.reason;
}

function keyResult({ index, arns, answer }: Asked): KeyResult {
  return { index, arns, ok: answer.ok, attempts: answer.ok ? [] : answer.attempts };
}

/** Wipes decrypted shares. */
function wipeAnswers(asked: readonly Asked[]): void {
  for (const { answer } of asked) if (answer.ok) answer.bytes.fill(0);
}
