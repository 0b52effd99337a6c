// Recovers the master key from decrypted shares, of which some may be wrong. A result counts only when the share
// binding of the record verifies under it. Other candidates are wiped.

import { bindingVerifies, type MasterKeyRecord } from './record.ts';
import { combineShares } from './shares.ts';

export interface OpenedShare {
  readonly index: number;
  readonly arn: string;
  readonly bytes: Buffer;
}

/**
 * A share can be wrong although its key decrypted it, when the key service is at fault: AES-CBC to the enclave carries
 * no MAC of its own. So each run of `threshold` neighbours is tried, the last followed by the first: one of them is
 * without any given share, and they are no more than there are shares.
 */
export async function recover(
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
 * The shares that do not give the master key in place of one of the run that did, and those that came already: they
 * count once, so the redundancy that they seem to be is none (with a threshold of 1 all shares are copies). A share
 * carries its point and not its index, so nobody can tell which key gave another's share. It does not matter: the
 * binding proves what came out.
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
