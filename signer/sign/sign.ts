// The one path from a typed request to a signature, in its order. It trusts that the caller was authorised for this key
// and operation. It refuses other networks and forks, roots that it did not compute, every message that slashing
// protection does not call safe, and a second content where one was signed. The slashing record is durable before the
// key signs. What one operation alone needs hangs on its row (operations/row.ts).

import type { ErrorReason } from '../api/errors.ts';
import type { Lane } from '../bls/bls.ts';
import type { LoadedKey } from '../keys/loaded-key.ts';
import type { OperationRow } from '../operations/row.ts';
import { ROWS } from '../operations/rows.ts';
import type { SignRequest } from '../operations/sign-request.ts';
import { isEndedTenure } from '../tenure.ts';
import type { Refused, SigningContext, SigningDependencies, SignOutcome } from './dependencies.ts';
import { healedRoot } from './healing.ts';
import { computeSigningRoot, forkRefusal, messageFork, networkRefusal } from './message-root.ts';
import { ownBlockRefusal } from './own-blocks.ts';
import { assertMayRelease } from './right.ts';

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
      const isOnce = 'claim' in ROWS[request.operation];
      const claimed = isOnce ? dependencies.equivocation.claim(key.publicKey, request, root) : undefined;
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

/** 32 bytes, or why the message is not one to sign. */
export function rootToSign(
  request: SignRequest,
  { onHealed }: Pick<SigningContext, 'onHealed'>,
  { network, rootOf, builder }: SigningDependencies,
): Uint8Array | Refused {
  const { operation, givenSigningRoot: given } = request;
  const { option }: OperationRow = ROWS[operation];
  if (option === 'builder' && builder !== true) {
    const hint = `${operation} commits the money of a builder and is signed only with signing.builder: true`;
    return { kind: 'refused', reason: 'unsupported_operation', hint };
  }
  const otherNetwork = networkRefusal(request, network);
  if (otherNetwork !== undefined) return otherNetwork;
  const fork = messageFork(request, network);
  let refusal: Refused | undefined = forkRefusal(request, network, fork);
  if (refusal === undefined) {
    const root = rootOf?.(request, fork) ?? computeSigningRoot(request, network, fork);
    if (given === undefined || Buffer.compare(root, given) === 0) return root;
    refusal = { kind: 'refused', reason: 'signing_root_mismatch' };
  }
  const healed = healedRoot(request, network, fork);
  if (healed === undefined) return refusal;
  onHealed?.(healed.fault);
  return healed.root;
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
  if (isEndedTenure(key.tenure)) {
    onRetired?.(key.publicKey, key.tenure);
    return 'key_retired';
  }
  const row: OperationRow = ROWS[request.operation];
  const message = row.slashable?.(request.message, key, root);
  if (message === undefined) return undefined;
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
