// Gives at most one signature for different contents of messages that no protocol slashes but that would still do harm
// (specification/signing.md#gloas): a payload attestation and an envelope by key and slot, a bid by key, slot and
// parent. The first content claims its place before it is signed, in one turn of the event loop, so of two concurrent
// contents only one is signed. The claim stays in memory for two epochs after the message's slot and after its
// signature, whichever is later. A restarted process remembers no claims, and the signers of a fleet do not see each
// other's. When there is no room for a claim, the message is not signed.

import type { Clock } from '../../observe/clock.ts';
import { type ErrorReason, SignerError } from '../api/errors.ts';
import type { SignRequest } from '../api/sign-request.ts';
import type { PublicKeyHex } from '../slashing/types.ts';
import type { Network } from './networks.ts';

/** All payload attesters of a network (512 a slot) for two epochs are a quarter of it. */
export const MAX_CLAIMS = 131_072;
/** 64 slots with as many parents each. No client of a key can take up the room of all others. */
export const MAX_CLAIMS_PER_KEY = 4096;
/**
 * The last quarter of the room is for keys with few claims: a payload attester has one or two. Otherwise a client of 32
 * keys could take up all of it, with slots that are far ahead for good, and nobody else's keys would attest.
 */
const FEW_CLAIMS = 16;
const MAX_CLAIMS_BESIDE_FEW = (MAX_CLAIMS / 4) * 3;
const HELD_EPOCHS = 2;

export interface EquivocationGuard {
  /**
   * Claim the message's place for its content, or find that other content has it. Nothing to claim for most operations.
   * @param root of the content
   * @throws SignerError `overloaded` when there is no room to remember it
   */
  claim(publicKey: PublicKeyHex, request: SignRequest, root: Uint8Array): ErrorReason | undefined;
  /** How many places are claimed. */
  readonly claims: number;
}

interface Claim {
  readonly root: Buffer;
  readonly heldUntilMs: number;
}

export function equivocationGuard(
  { time, slotsPerEpoch, slotDurationMs }: Pick<Network, 'time' | 'slotsPerEpoch' | 'slotDurationMs'>,
  clock: Clock,
): EquivocationGuard {
  const epochMs = slotsPerEpoch * slotDurationMs;
  const keys = new Map<PublicKeyHex, Map<string, Claim>>();
  let claims = 0;
  let nextSweepMs = clock.monotonic() + epochMs;

  const forget = (now: number): void => {
    nextSweepMs = now + epochMs;
    for (const [publicKey, places] of keys) {
      for (const [place, { heldUntilMs }] of places) {
        if (heldUntilMs <= now && places.delete(place)) claims -= 1;
      }
      if (places.size === 0) keys.delete(publicKey);
    }
  };
  const untilSlotMs = (slot: number): number =>
    time === undefined ? 0 : time.genesisTimeSeconds * 1000 + slot * slotDurationMs - clock.now();

  return {
    claim(publicKey, request, root) {
      const place = placeOf(request);
      if (place === undefined) return undefined;
      const now = clock.monotonic();
      if (now >= nextSweepMs) forget(now);
      const places = keys.get(publicKey) ?? new Map<string, Claim>();
      const claimed = places.get(place.name);
      if (claimed !== undefined) return claimed.root.equals(root) ? undefined : 'equivocation';
      const room = places.size < FEW_CLAIMS ? MAX_CLAIMS : MAX_CLAIMS_BESIDE_FEW;
      if (claims >= room || places.size >= MAX_CLAIMS_PER_KEY) {
        throw new SignerError('overloaded', { hint: 'too many messages of two epochs are remembered' });
      }
      const heldUntilMs = now + Math.max(0, untilSlotMs(place.slot)) + HELD_EPOCHS * epochMs;
      places.set(place.name, { root: Buffer.from(root), heldUntilMs });
      keys.set(publicKey, places);
      claims += 1;
      return undefined;
    },
    get claims() {
      return claims;
    },
  };
}

/** What may be signed only once; undefined for all operations but three. */
function placeOf(request: SignRequest): { readonly name: string; readonly slot: number } | undefined {
  switch (request.operation) {
    case 'PAYLOAD_ATTESTATION_MESSAGE':
      return { name: `payload ${request.message.slot}`, slot: request.message.slot };
    case 'EXECUTION_PAYLOAD_ENVELOPE':
      return { name: `envelope ${request.message.slot}`, slot: request.message.slot };
    case 'EXECUTION_PAYLOAD_BID': {
      const { slot, parent_block_root, parent_block_hash } = request.message;
      // The parent's payload may be missing from the chain or not: two parents of one block root.
      const parent = [parent_block_root, parent_block_hash]
        .map((part) => Buffer.from(part).toString('latin1'))
        .join('');
      return { name: `bid ${slot} ${parent}`, slot };
    }
    default:
      return undefined;
  }
}
