// The one path from a typed request to a signature; sign-batch.ts uses it for many keys. Nothing else in the program
// asks a BlsCore to sign for a client. This file trusts that the caller was authorised for this key and operation. It
// refuses other networks and forks, roots that it did not compute, every message that slashing protection does not call
// safe, and a second content where one was signed (equivocation.ts). The slashing record is durable before the key
// signs.

import type { Span } from '../../observe/tracing.ts';
import type { ErrorReason } from '../api/errors.ts';
import type { Operation } from '../api/operations.ts';
import type { SignRequest } from '../api/sign-request.ts';
import type { LoadedKey } from '../keys/loaded-key.ts';
import type { SlashingProtection } from '../slashing/protection.ts';
import type { BlsCore, Lane } from './bls/bls.ts';
import type { EquivocationGuard } from './equivocation.ts';
import type { InFlightSigning } from './in-flight.ts';
import { forkRefusal } from './message-fork.ts';
import type { Network } from './networks.ts';
import type { Permits } from './permits.ts';
import type { ComputeRoot } from './remembered.ts';
import { computeSigningRoot, slashableMessage } from './roots/root.ts';

export interface SigningDependencies {
  readonly network: Network;
  /** computeSigningRoot on this network, unless something remembers roots. */
  readonly rootOf?: ComputeRoot | undefined;
  readonly core: BlsCore;
  readonly slashing: Pick<SlashingProtection, 'check' | 'checkGroup'>;
  readonly permits: Permits;
  /** A removed key's slashing history is exported only when nothing is under way with it. */
  readonly inFlight: Pick<InFlightSigning, 'begin' | 'end'>;
  /** Shared by everything that signs: it remembers what was signed. */
  readonly equivocation: Pick<EquivocationGuard, 'claim'>;
  /** signing.builder: without it bids are refused, which commit the money of a builder. */
  readonly builder?: boolean;
  /** signing.priority.operations, when the priority pool is on. */
  readonly priorityOperations: ReadonlySet<Operation>;
  /** Called for each signature made with a configured canary key, before it is released. */
  readonly onCanary: (publicKey: string, operation: Operation) => void;
  readonly canaryKeys: ReadonlySet<string>;
}

export interface SigningContext {
  /** Aborts when the client goes away or the request times out: work that has not begun is given up. */
  readonly signal: AbortSignal;
  readonly span?: Span | undefined;
  /** Called with what is to be signed, before anything is asked about it: for the audit line. */
  readonly onRoot?: ((root: Uint8Array) => void) | undefined;
}

export interface Refused {
  readonly kind: 'refused';
  readonly reason: ErrorReason;
  /** For the caller. */
  readonly hint?: string;
  /** For the log. */
  readonly detail?: Readonly<Record<string, unknown>>;
}

export type SignOutcome = { readonly kind: 'signed'; readonly signature: Uint8Array } | Refused;

/**
 * Sign one request with a loaded key.
 * @returns the 96-byte signature, or why it is refused
 * @throws SignerError for faults: overloaded, slashing_*, signing_unavailable; the signal's reason when it aborts
 */
export async function sign(
  request: SignRequest,
  key: LoadedKey,
  context: SigningContext,
  dependencies: SigningDependencies,
): Promise<SignOutcome> {
  const root = rootToSign(request, dependencies);
  if (!(root instanceof Uint8Array)) return root;
  context.onRoot?.(root);

  const lane = laneOf(request, dependencies);
  dependencies.inFlight.begin(key.publicKey); // nothing was awaited since the key was found
  try {
    const turn = dependencies.permits.acquire(lane, context.signal);
    if (turn !== undefined) await turn;
    try {
      const refusal = await slashingRefusal(request, key, root, context, dependencies);
      if (refusal !== undefined) return { kind: 'refused', reason: refusal };
      const claimed = dependencies.equivocation.claim(key.publicKey, request, root);
      if (claimed !== undefined) return { kind: 'refused', reason: claimed };

      const span = context.span?.child('sign');
      try {
        const signature = await dependencies.core.sign(key.handle, root, lane);
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

/** 32 bytes, or why the message is not one to sign, whichever key is asked for. */
export function rootToSign(
  request: SignRequest,
  { network, rootOf, builder }: SigningDependencies,
): Uint8Array | Refused {
  if (request.operation === 'EXECUTION_PAYLOAD_BID' && builder !== true) return BIDS_ARE_OFF;
  const refusal = networkRefusal(request, network) ?? forkRefusal(request, network);
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

/** The configured and the received root go to the log only (specification/signing.md#networks). */
function networkRefusal(request: SignRequest, network: Network): Refused | undefined {
  const received = request.forkInfo?.genesisValidatorsRoot;
  if (received === undefined || Buffer.compare(received, network.genesisValidatorsRoot) === 0) return undefined;
  return {
    kind: 'refused',
    reason: 'network_mismatch',
    detail: {
      network: network.name,
      expected_genesis_validators_root: Buffer.from(network.genesisValidatorsRoot).toString('hex'),
      received_genesis_validators_root: Buffer.from(received).toString('hex'),
      received_fork: {
        previous_version: Buffer.from(request.forkInfo?.previousVersion ?? []).toString('hex'),
        current_version: Buffer.from(request.forkInfo?.currentVersion ?? []).toString('hex'),
        epoch: String(request.forkInfo?.epoch),
      },
    },
  };
}

async function slashingRefusal(
  request: SignRequest,
  key: LoadedKey,
  root: Uint8Array,
  { signal, span }: SigningContext,
  { slashing }: SigningDependencies,
): Promise<ErrorReason | undefined> {
  const message = slashableMessage(request, key.publicKey, root);
  if (message === null) return undefined;
  const child = span?.child('slashing');
  try {
    const verdict = await slashing.check(message, signal);
    return verdict.kind === 'safe' ? undefined : verdict.reason;
  } finally {
    child?.end();
  }
}
