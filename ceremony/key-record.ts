// Wraps the master key into its record and opens it (specification/custody.md#opening). It trusts nothing of a record
// until the share binding verifies, and returns one for writing only after it has opened it again.

import { type CustodyKeyResult, type CustodyKeys, type KeyAnswer, shareContext } from './custody-keys.ts';
import { type Ceremony, type CustodyKey, ceremonyArns, type Deployment, isSameDeployment } from './definition.ts';
import { bindingVerifies, bindRecord, type MasterKeyRecord, type WrappedShare } from './record.ts';
import {
  belowThreshold,
  bindingMismatch,
  type CustodyRefusal,
  generationBehind,
  keyRefusedShare,
  otherCeremony,
  otherDeployment,
  retiredThresholdTooLow,
} from './refusals.ts';
import { combineShares, splitSecret } from './shares.ts';

export interface CustodyTerms {
  readonly ceremony: Ceremony;
  readonly deployment: Deployment;
}

export interface Unwrapped {
  readonly ok: true;
  /** 32 bytes, the caller's to wipe. */
  readonly masterKey: Buffer;
  /** The record is of an earlier generation, and should be replaced. */
  readonly rotationDue: boolean;
  readonly keys: readonly CustodyKeyResult[];
}

export interface Wrapped {
  readonly ok: true;
  readonly record: MasterKeyRecord;
  readonly keys: readonly CustodyKeyResult[];
}

/** @param masterKey 32 bytes; stays the caller's */
export async function wrapMasterKey(
  masterKey: Buffer,
  terms: CustodyTerms,
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
  // A role that may encrypt and not decrypt would lock the master key away for ever.
  const proof = await unwrapMasterKey(record, terms, custodyKeys);
  if (!proof.ok) return proof;
  proof.masterKey.fill(0);
  return { ok: true, record, keys: proof.keys };
}

export async function unwrapMasterKey(
  record: MasterKeyRecord,
  terms: CustodyTerms,
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
    return { ok: true, masterKey: recovered.masterKey, rotationDue, keys };
  } finally {
    wipeAnswers(opened);
  }
}

interface ShareAnswer {
  readonly index: number;
  readonly arns: readonly string[];
  readonly answer: KeyAnswer;
}

/** For words that help: the encryption context already makes it impossible to open another deployment's shares. */
function refuseForeign(record: MasterKeyRecord, { deployment }: CustodyTerms): CustodyRefusal | undefined {
  return isSameDeployment(record.deployment, deployment) ? undefined : otherDeployment(record.deployment, deployment);
}

export function refuseRecord(record: MasterKeyRecord, terms: CustodyTerms): CustodyRefusal | undefined {
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

/** The binding does not show it: who may encrypt and write the row can state threshold 1 and bind a key of his own. */
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
  { ceremony, deployment }: CustodyTerms,
  custodyKeys: CustodyKeys,
): Promise<readonly ShareAnswer[]> {
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
): Promise<readonly ShareAnswer[]> {
  const accepted = ceremonyArns(ceremony);
  return askAll(record.shares, async ({ index, arns, ciphertext }: WrappedShare) => {
    // The row keeps them sorted; the ceremony says which replica comes first.
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

/** Waits for all, so that nothing opened is left behind. */
async function askAll<Key extends { readonly index: number; readonly arns: readonly string[] }>(
  keys: readonly Key[],
  ask: (key: Key) => Promise<KeyAnswer>,
): Promise<readonly ShareAnswer[]> {
  const settled = await Promise.allSettled(
    keys.map(async (key) => ({ index: key.index, arns: key.arns, answer: await ask(key) })),
  );
  const asked = settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const bug = settled.find((result) => result.status === 'rejected');
  if (bug === undefined) return asked;
  wipeAnswers(asked);
  throw bug.reason;
}

function keyResult({ index, arns, answer }: ShareAnswer): CustodyKeyResult {
  return { index, arns, ok: answer.ok, attempts: answer.ok ? [] : answer.attempts };
}

function wipeAnswers(asked: readonly ShareAnswer[]): void {
  for (const { answer } of asked) if (answer.ok) answer.bytes.fill(0);
}

interface OpenedShare {
  readonly index: number;
  readonly arn: string;
  readonly bytes: Buffer;
}

/** A share can be wrong although its key decrypted it (no MAC): some run of `threshold` neighbours is without it. */
async function recover(
  record: MasterKeyRecord,
  shares: readonly OpenedShare[],
): Promise<{ readonly masterKey: Buffer; readonly wrong: readonly OpenedShare[] } | undefined> {
  const runs = shares.length === record.threshold ? 1 : shares.length;
  const ring = [...shares, ...shares];
  for (let start = 0; start < runs; start++) {
    const run = ring.slice(start, start + record.threshold);
    const candidate = await combineShares(run.map(({ bytes }) => bytes));
    if (candidate === undefined) continue;
    if (bindingVerifies(candidate, record))
      return { masterKey: candidate, wrong: await strangers(candidate, shares, run) };
    candidate.fill(0);
  }
  return undefined;
}

/**
 * Wrong shares: with one of them in place of a share of the run the master key does not come out. And copies of shares,
 * which do not count as further ones.
 */
async function strangers(
  masterKey: Buffer,
  shares: readonly OpenedShare[],
  run: readonly OpenedShare[],
): Promise<readonly OpenedShare[]> {
  const wrong: OpenedShare[] = [];
  const right = [...run];
  const others = run.slice(1).map(({ bytes }) => bytes);
  for (const share of shares.filter((share) => !run.includes(share))) {
    const candidate = await combineShares([share.bytes, ...others]);
    const isRepeated = run.length > 1 && right.some(({ bytes }) => bytes.equals(share.bytes));
    if (candidate?.equals(masterKey) === true && !isRepeated) right.push(share);
    else wrong.push(share);
    candidate?.fill(0);
  }
  return wrong;
}
