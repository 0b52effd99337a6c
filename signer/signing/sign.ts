// The one path from a typed request to a signature. It trusts that the caller was authorised for this key and
// operation. It refuses other networks and forks, roots that it did not compute, every message that slashing protection
// does not call safe, and a second content where one was signed. The slashing record is durable before the key signs.

import type { Clock } from '../../common/observe/clock.ts';
import type { Span } from '../../common/observe/tracing.ts';
import { type ErrorReason, SignerError } from '../api/errors.ts';
import type { ClientFault } from '../api/forks.ts';
import type { Operation } from '../api/operations.ts';
import type { SignRequest } from '../api/sign-request.ts';
import type { LoadedKey } from '../keys/loaded-key.ts';
import type { SlashingProtection } from '../slashing/protection.ts';
import type { PublicKeyHex } from '../slashing/types.ts';
import { isEnded } from '../tenure.ts';
import type { BlsCore, Lane } from './bls/bls.ts';
import { healedRoot } from './healing.ts';
import { forkRefusal, networkRefusal } from './message-fork.ts';
import type { Network } from './networks.ts';
import type { Permits } from './permits.ts';
import { assertMayRelease } from './right.ts';
import { type ComputeRoot, computeSigningRoot, envelopeBlockSigningRoot, slashableMessage } from './roots/root.ts';

export interface SigningDependencies {
  readonly network: Network;
  readonly rootOf?: ComputeRoot | undefined;
  readonly core: BlsCore;
  readonly slashing: Pick<SlashingProtection, 'check' | 'checkGroup' | 'signedBlockRoot'>;
  readonly permits: Permits;
  /** A removed key's slashing history is exported only when nothing is under way with it. */
  readonly inFlight: Pick<InFlightSigning, 'begin' | 'end'>;
  readonly equivocation: Pick<EquivocationGuard, 'claim'>;
  /** Without it bids are refused, which commit the money of a builder. */
  readonly builder?: boolean;
  /** The schedule's fork is signed with where the client's root proves that it is meant. */
  readonly heal?: boolean;
  readonly priorityOperations: ReadonlySet<Operation>;
  /** Asked right before a signature is released. */
  readonly hindrance: () => ErrorReason | undefined;
  readonly onCanary: (publicKey: string, operation: Operation) => void;
  readonly canaryKeys: ReadonlySet<string>;
  /** A loaded copy of a key was refused as one of an ended tenure, by this number. */
  readonly onRetired?: (publicKey: string, tenure: number) => void;
}

export interface SigningContext {
  /** Work that has not begun is given up. */
  readonly signal: AbortSignal;
  readonly span?: Span | undefined;
  /** The accessor. All requests without one share their turns. */
  readonly caller?: string | undefined;
  /** Called before anything is asked about the root. */
  readonly onRoot?: ((root: Uint8Array) => void) | undefined;
  readonly onlyForOwnBlocks?: boolean | undefined;
  readonly onHealed?: ((fault: ClientFault) => void) | undefined;
}

export interface Refused {
  readonly kind: 'refused';
  readonly reason: ErrorReason;
  readonly hint?: string;
  /** For the log; `hint` is for the caller. */
  readonly detail?: Readonly<Record<string, unknown>>;
}

type SignOutcome = { readonly kind: 'signed'; readonly signature: Uint8Array } | Refused;

/** @throws SignerError for faults: overloaded, slashing_*, signing_unavailable; the signal's reason when it aborts */
export async function sign(
  request: SignRequest,
  key: LoadedKey,
  context: SigningContext,
  dependencies: SigningDependencies,
): Promise<SignOutcome> {
  const root = rootToSign(request, context, dependencies);
  if (!(root instanceof Uint8Array)) return root;
  context.onRoot?.(root);

  const lane = laneOf(request, dependencies);
  dependencies.inFlight.begin(key.publicKey); // nothing was awaited since the key was found
  try {
    const turn = dependencies.permits.acquire(lane, context.signal, context.caller);
    if (turn !== undefined) await turn;
    try {
      if (context.onlyForOwnBlocks === true) {
        const foreign = await ownBlockRefusal(request, key.publicKey, dependencies, context.signal);
        if (foreign !== undefined) return { kind: 'refused', reason: foreign };
      }
      const refusal = await slashingRefusal(request, key, root, context, dependencies);
      if (refusal !== undefined) return { kind: 'refused', reason: refusal };
      const claimed = dependencies.equivocation.claim(key.publicKey, request, root);
      if (claimed !== undefined) return { kind: 'refused', reason: claimed };

      const span = context.span?.child('sign');
      try {
        const signature = await dependencies.core.sign(key.handle, root, lane, context.caller);
        assertMayRelease(dependencies);
        if (dependencies.canaryKeys.has(key.publicKey)) dependencies.onCanary(key.publicKey, request.operation);
        return { kind: 'signed', signature };
      } finally {
        span?.end();
      }
    } finally {
      dependencies.permits.release(lane);
    }
  } finally {
    dependencies.inFlight.end(key.publicKey);
  }
}

const BIDS_ARE_OFF: Refused = {
  kind: 'refused',
  reason: 'unsupported_operation',
  hint: 'EXECUTION_PAYLOAD_BID commits the money of a builder and is signed only with signing.builder: true',
};

/** 32 bytes, or why the message is not one to sign. */
export function rootToSign(
  request: SignRequest,
  { onHealed }: Pick<SigningContext, 'onHealed'>,
  dependencies: SigningDependencies,
): Uint8Array | Refused {
  const { network, builder, heal } = dependencies;
  if (request.operation === 'EXECUTION_PAYLOAD_BID' && builder !== true) return BIDS_ARE_OFF;
  const otherNetwork = networkRefusal(request, network);
  if (otherNetwork !== undefined) return otherNetwork;
  const asSent = rootAsSent(request, dependencies);
  if (asSent instanceof Uint8Array || heal !== true) return asSent;
  const healed = healedRoot(request, network);
  if (healed === undefined) return asSent;
  onHealed?.(healed.fault);
  return healed.root;
}

function rootAsSent(request: SignRequest, { network, rootOf }: SigningDependencies): Uint8Array | Refused {
  const refusal = forkRefusal(request, network);
  if (refusal !== undefined) return refusal;
  const root = rootOf?.(request) ?? computeSigningRoot(request, network);
  if (request.givenSigningRoot !== undefined && Buffer.compare(root, request.givenSigningRoot) !== 0) {
    return { kind: 'refused', reason: 'signing_root_mismatch' };
  }
  return root;
}

export function laneOf({ operation }: SignRequest, { priorityOperations }: SigningDependencies): Lane {
  return priorityOperations.has(operation) ? 'priority' : 'normal';
}

/** A key that left signs no message of any kind. Of those that can be slashed the store decides, by the same tenure. */
async function slashingRefusal(
  request: SignRequest,
  key: LoadedKey,
  root: Uint8Array,
  { signal, span }: SigningContext,
  { slashing, onRetired }: SigningDependencies,
): Promise<ErrorReason | undefined> {
  if (isEnded(key.tenure)) {
    onRetired?.(key.publicKey, key.tenure);
    return 'key_retired';
  }
  const message = slashableMessage(request, key, root);
  if (message === null) return undefined;
  const child = span?.child('slashing');
  try {
    const verdict = await slashing.check(message, signal);
    if (verdict.kind === 'safe') return undefined;
    if (verdict.reason === 'key_retired') onRetired?.(key.publicKey, message.tenure ?? 0);
    return verdict.reason;
  } finally {
    child?.end();
  }
}

// Whether an execution payload envelope is for a block that its own key signed
// (specification/authorization.md#own-blocks): the slashing store holds the signing root of its header.

interface OwnBlockParts {
  readonly network: Network;
  readonly slashing: Pick<SlashingProtection, 'signedBlockRoot'>;
}

/** @param request one that forkRefusal has nothing against; of another operation it has no block, and is refused */
async function ownBlockRefusal(
  request: SignRequest,
  publicKey: PublicKeyHex,
  { network, slashing }: OwnBlockParts,
  signal: AbortSignal,
): Promise<ErrorReason | undefined> {
  if (request.operation !== 'EXECUTION_PAYLOAD_ENVELOPE') return 'not_own_block';
  const signed = await slashing.signedBlockRoot(publicKey, request.message.slot, signal);
  if (signed === null) return 'not_own_block';
  const asked = envelopeBlockSigningRoot(request, network);
  return Buffer.compare(signed, asked) === 0 ? undefined : 'not_own_block';
}

// At most one signature for different contents of messages that no protocol slashes but that would still do harm
// (specification/signing.md#equivocation). The first content claims its place before it is signed, until two epochs
// after the message's slot. A restarted process remembers no claims, and signers of a fleet do not see each other's.

/** All payload attesters of a network (512 a slot) for two epochs are a quarter of it. */
export const MAX_CLAIMS = 131_072;
export const MAX_CLAIMS_PER_KEY = 4096;
/** Otherwise a client of 32 keys could take up all of the room. */
const FEW_CLAIMS = 16;
const MAX_CLAIMS_BESIDE_FEW = (MAX_CLAIMS / 4) * 3;
const HELD_EPOCHS = 2;

interface EquivocationGuard {
  /**
   * What lies ahead of the clock takes no room: it would keep it until then.
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
      const place = placeOf(request);
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

interface Place {
  readonly name: string;
  readonly slot: number;
  /** In the slot before its own. */
  readonly isMadeBefore?: boolean;
}

function placeOf(request: SignRequest): Place | undefined {
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
      return { name: `bid ${slot} ${parent}`, slot, isMadeBefore: true };
    }
    default:
      return undefined;
  }
}

// Keys that are signing now. A key that leaves is first removed from the store; after the wait here its slashing
// history is final.

export interface InFlightSigning {
  /** In the same turn in which the key was found, so that no removal falls between the two. */
  begin(publicKey: string): void;
  end(publicKey: string): void;
  /** It terminates, because a removed key cannot start new work. */
  drain(publicKeys: readonly string[]): Promise<void>;
}

export function inFlightSigning(): InFlightSigning {
  const counts = new Map<string, number>();
  const waiting = new Map<string, PromiseWithResolvers<void>>();

  return {
    begin: (publicKey) => void counts.set(publicKey, (counts.get(publicKey) ?? 0) + 1),
    end(publicKey) {
      const left = (counts.get(publicKey) ?? 0) - 1;
      if (left > 0) {
        counts.set(publicKey, left);
        return;
      }
      counts.delete(publicKey);
      if (waiting.size === 0) return;
      waiting.get(publicKey)?.resolve();
      waiting.delete(publicKey);
    },
    async drain(publicKeys) {
      for (const publicKey of publicKeys) {
        if (!counts.has(publicKey)) continue;
        const ended = waiting.get(publicKey) ?? Promise.withResolvers<void>();
        waiting.set(publicKey, ended);
        await ended.promise;
      }
    },
  };
}
