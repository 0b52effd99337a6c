// Master key records with a share that was altered or forged by whoever holds keys, and which keys of a ceremony are
// lost.

import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { shareContext } from '../../ceremony/custody-keys.ts';
import { bindRecord, type MasterKeyRecord } from '../../ceremony/record.ts';
import { splitSecret } from '../../ceremony/shares.ts';
import { keyArn } from '../config/loading.ts';
import { type custodyKeys, DEPLOYMENT } from './custody.ts';

/** k of n, and which keys are lost. */
export const losses = fc
  .integer({ min: 1, max: 7 })
  .chain((count) =>
    fc.tuple(
      fc.constant(count),
      fc.integer({ min: 1, max: count }),
      fc.subarray([...Array(count).keys()].map((at) => keyArn(at + 1))),
    ),
  );

export function flip(share: Buffer): void {
  share[0] = (share[0] ?? 0) ^ 1;
}

export function replaceShare(
  record: MasterKeyRecord,
  index: number,
  members: { readonly ciphertext: Buffer },
): MasterKeyRecord {
  return {
    ...record,
    shares: record.shares.map((share) => (share.index === index ? { ...share, ...members } : share)),
  };
}

/** What one can do who may encrypt under key 1 and write the row: key 2 keeps a share of some other secret. */
export async function forge(
  { threshold, generation, shareAt }: { threshold: number; generation: number; shareAt: (secret: Buffer) => Buffer },
  keys: ReturnType<typeof custodyKeys>,
): Promise<MasterKeyRecord> {
  const chosen = randomBytes(32);
  const honest = await splitSecret(randomBytes(32), 2, 2);
  const payloads = threshold === 1 ? [shareAt(chosen)] : [shareAt(chosen), honest[1] ?? Buffer.alloc(0)];
  const shares = await Promise.all(
    payloads.map(async (payload, at) => {
      const index = at + 1;
      const context = shareContext(DEPLOYMENT, generation, index);
      const answer = await keys.encryptShare(index, [keyArn(index)], payload, context);
      if (!answer.ok) throw new Error('the key serves');
      return { index, arns: [keyArn(index)], ciphertext: answer.bytes };
    }),
  );
  return bindRecord(chosen, { deployment: DEPLOYMENT, generation, threshold, shares });
}
