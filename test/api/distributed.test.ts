// What the keystore of a share and a participant may say of a distributed key, and what they may not.

import { describe, expect, it } from 'vitest';
import {
  accountOf,
  accountSchema,
  keyShare,
  shareSchema,
  thresholdProblem,
  writtenShare,
} from '../../signer/api/distributed.ts';

const point = (digits: string): string => `0x${digits.repeat(48)}`;
const SHARE = {
  participant_id: '4',
  composite_public_key: point('a1'),
  signing_threshold: '3',
  participants: '4',
  set: '1',
  commitments: [point('a1'), point('b2'), point('c3')],
};

describe('the share of a keystore', () => {
  it('is read and written the same', () => {
    expect(writtenShare(keyShare(shareSchema.parse(SHARE), point('d4')))).toEqual(SHARE);
  });

  it.each([
    ['a participant of number zero', { participant_id: '0' }],
    ['a participant above their number', { participant_id: '5' }],
    ['a number that is not a decimal string', { signing_threshold: 3 }],
    ['a number with a zero before it', { set: '01' }],
    ['more participants than a key has', { participants: '33' }],
    ['a threshold that two sets can reach', { participants: '6' }],
    ['another composite key than the first commitment', { composite_public_key: point('d4') }],
    ['a commitment too few', { commitments: [point('a1'), point('b2')] }],
    ['a commitment too many', { commitments: [...SHARE.commitments, point('d4')] }],
    ['a commitment that is no 48 bytes', { commitments: [point('a1'), point('b2'), '0x00'] }],
    ['a member that nobody knows', { threshold: '3' }],
  ])('has not %s', (_, changed) => {
    expect(shareSchema.safeParse({ ...SHARE, ...changed }).success).toBe(false);
  });
});

describe('an account', () => {
  it('names every participant once', () => {
    const account = accountOf(keyShare(shareSchema.parse(SHARE), point('d4')));
    expect(account.participants).toEqual(['1', '2', '3', '4'].map((participant_id) => ({ participant_id })));
    expect(accountSchema.safeParse(account).success).toBe(true);
    const twice = [...account.participants.slice(0, 3), { participant_id: '1' }];
    expect(accountSchema.safeParse({ ...account, participants: twice }).success).toBe(false);
  });

  it('may say more, as other signers do', () => {
    const account = accountOf(keyShare(shareSchema.parse(SHARE), point('d4')));
    expect(accountSchema.safeParse({ ...account, name: 'mainnet' }).success).toBe(true);
  });
});

it('two sets of as many participants as the threshold have one in common', () => {
  for (let participants = 1; participants <= 40; participants++) {
    for (let threshold = 0; threshold <= 40; threshold++) {
      const isGood = threshold >= 2 && threshold <= participants && participants <= 32 && 2 * threshold > participants;
      expect([threshold, participants, thresholdProblem(threshold, participants) === undefined]).toEqual([
        threshold,
        participants,
        isGood,
      ]);
    }
  }
});
