// Distributed keys on the wire: what the keystore of a share says of it, and what a participant answers, in the shape
// of the distributed profile that is proposed for the remote signing API (ethereum/remote-signing-api, pull request
// 29): numbers are decimal strings.

import { z } from 'zod';
import { canonicalPublicKey } from '../../common/formats/hex.ts';

/** As native/shares.h. */
export const MAX_PARTICIPANTS = 32;
const MAX_SET = 2 ** 31;

/** One participant's share of a key, without its secret. Public keys are 0x and hex in lower case. */
export interface KeyShare {
  /** The validator's, and the first of the commitments. */
  readonly compositePublicKey: string;
  /** The share's own. Partial signatures verify against it. */
  readonly publicKey: string;
  readonly participantId: number;
  readonly threshold: number;
  readonly participants: number;
  /** Which polynomial: shares of two sets never combine. */
  readonly set: number;
  /** As many as the threshold, 48 bytes of hex each: the coefficients of the polynomial, times the generator of G1. */
  readonly commitments: readonly string[];
}

const publicKey = z.string().transform((text, context) => {
  const canonical = canonicalPublicKey(text);
  if (canonical !== undefined) return canonical;
  context.addIssue('expected 48 bytes of hex');
  return z.NEVER;
});

const count = (most: number) =>
  z
    .string()
    .regex(/^[1-9][0-9]{0,9}$/, 'expected a decimal number from 1 on, as a string')
    .transform(Number)
    .refine((number) => number <= most, `expected at most ${most}`);

const shareMembers = {
  participant_id: count(MAX_PARTICIPANTS),
  composite_public_key: publicKey,
  signing_threshold: count(MAX_PARTICIPANTS),
  set: count(MAX_SET),
  commitments: z.array(publicKey).min(2).max(MAX_PARTICIPANTS),
};

/** The member `distributed` of a keystore; its `pubkey` is the share's. */
export const shareSchema = z
  .strictObject({ ...shareMembers, participants: count(MAX_PARTICIPANTS) })
  .superRefine((share, context) => {
    const problem = shareProblem(share, share.participants);
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  });

/** `GET /api/v1/eth2/distributed/accounts/{identifier}`. */
export const accountSchema = z
  .object({
    ...shareMembers,
    public_key: publicKey,
    participants: z.array(z.object({ participant_id: count(MAX_PARTICIPANTS) })).max(MAX_PARTICIPANTS),
  })
  .superRefine((account, context) => {
    const ids = new Set(account.participants.map(({ participant_id }) => participant_id));
    const problem = shareProblem(account, ids.size === account.participants.length ? ids.size : 0);
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  });

export type Account = z.input<typeof accountSchema>;

/** Of one key; in a batch each result has them, and its `identifier`. */
export interface PartialSignature {
  readonly participant_id: string;
  readonly signing_root: string;
  readonly signature: string;
}

/** Two sets of as many participants as the threshold have one in common at least. */
export function thresholdProblem(threshold: number, participants: number): string | undefined {
  if (participants > MAX_PARTICIPANTS) return `a key has at most ${MAX_PARTICIPANTS} participants`;
  if (threshold < 2) return 'a threshold below 2 distributes nothing';
  if (threshold > participants)
    return `a threshold of ${threshold} needs as many participants, and there are ${participants}`;
  if (2 * threshold > participants) return undefined;
  const many = `${threshold} of ${participants} could sign two slashable messages`;
  return `${many}: the threshold is more than half of the participants`;
}

type Written = Omit<z.output<z.ZodObject<typeof shareMembers>>, 'set'>;

function shareProblem(share: Written, participants: number): string | undefined {
  const problem = thresholdProblem(share.signing_threshold, participants);
  if (problem !== undefined) return problem;
  if (share.participant_id > participants) return 'participant_id is above the number of participants';
  if (share.commitments.length !== share.signing_threshold) return 'there is one commitment for each of the threshold';
  if (share.commitments[0] !== share.composite_public_key) return 'the first commitment is the composite public key';
  return undefined;
}

export function keyShare(written: z.output<typeof shareSchema>, publicKeyOfShare: string): KeyShare {
  return {
    compositePublicKey: written.composite_public_key,
    publicKey: publicKeyOfShare,
    participantId: written.participant_id,
    threshold: written.signing_threshold,
    participants: written.participants,
    set: written.set,
    commitments: written.commitments,
  };
}

/** As the keystore of a share says it. */
export function writtenShare(share: KeyShare): z.input<typeof shareSchema> {
  return {
    participant_id: String(share.participantId),
    composite_public_key: share.compositePublicKey,
    signing_threshold: String(share.threshold),
    participants: String(share.participants),
    set: String(share.set),
    commitments: [...share.commitments],
  };
}

export function accountOf(share: KeyShare): Account {
  const ids = Array.from({ length: share.participants }, (_, index) => ({ participant_id: String(index + 1) }));
  return { ...writtenShare(share), public_key: share.publicKey, participants: ids };
}
