// At most one signature for different contents of messages that no protocol slashes but that would still do harm
// (specification/signing.md#equivocation). The first content claims its place before it is signed, until two epochs
// after the message's slot. A restarted process remembers no claims, and signers of a fleet do not see each other's.

import type { Clock } from '../../common/observe/clock.ts';
import { type ErrorReason, SignerError } from '../api/errors.ts';
import type { OperationRow } from '../operations/row.ts';
import { ROWS } from '../operations/rows.ts';
import type { SignRequest } from '../operations/sign-request.ts';
import type { PublicKeyHex } from '../slashing/types.ts';
import type { Network } from './networks.ts';

/** All payload attesters of a network (512 a slot) for two epochs are a quarter of it. */
export const MAX_CLAIMS = 131_072;
export const MAX_CLAIMS_PER_KEY = 4096;
/** Otherwise a client of 32 keys could take up all of the room. */
const FEW_CLAIMS = 16;
const MAX_CLAIMS_BESIDE_FEW = (MAX_CLAIMS / 4) * 3;
const HELD_EPOCHS = 2;

export interface EquivocationGuard {
  /**
   * A message too far ahead of the clock is refused: its claim would take room until that time.
   * @param root of the content @throws SignerError `overloaded` when there is no room to remember it
   */
  claim(publicKey: PublicKeyHex, request: SignRequest, root: Uint8Array): ErrorReason | undefined;
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
  const aheadMs = (time?.tolerance.aheadSeconds ?? 0) * 1000;
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
      const row: OperationRow = ROWS[request.operation];
      const place = row.claim?.(request.message);
      if (place === undefined) return undefined;
      const untilMs = untilSlotMs(place.slot);
      if (untilMs > aheadMs + (place.isMadeBefore === true ? slotDurationMs : 0)) return 'ahead_of_clock';
      const now = clock.monotonic();
      if (now >= nextSweepMs) forget(now);
      const places = keys.get(publicKey) ?? new Map<string, Claim>();
      const claimed = places.get(place.name);
      if (claimed !== undefined) return claimed.root.equals(root) ? undefined : 'equivocation';
      const room = places.size < FEW_CLAIMS ? MAX_CLAIMS : MAX_CLAIMS_BESIDE_FEW;
      if (claims >= room || places.size >= MAX_CLAIMS_PER_KEY) {
        throw new SignerError('overloaded', { hint: 'too many messages of two epochs are remembered' });
      }
      const heldUntilMs = now + Math.max(0, untilMs) + HELD_EPOCHS * epochMs;
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
