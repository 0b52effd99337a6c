// Signs one message with many keys (specification/signing.md#batches): one root, and one hash of it to the curve. It
// trusts that the caller was authorised for each of these keys.

import { SignerError } from '../api/errors.ts';
import type { GroupSignature, Lane } from '../bls/bls.ts';
import type { LoadedKey } from '../keys/loaded-key.ts';
import type { OperationRow } from '../operations/row.ts';
import { ROWS } from '../operations/rows.ts';
import type { SignRequest } from '../operations/sign-request.ts';
import type { SlashableMessage } from '../slashing/types.ts';
import { isEndedTenure } from '../tenure.ts';
import type { Refused, SigningContext, SigningDependencies } from './dependencies.ts';
import type { PermitGroup } from './permits.ts';
import { assertMayRelease } from './right.ts';
import { laneOf, rootToSign } from './sign.ts';

const MAX_PART_KEYS = 256;

export type KeyOutcome =
  | { readonly kind: 'signed'; readonly signature: Uint8Array }
  | Refused
  | { readonly kind: 'failed'; readonly error: unknown };

export interface BatchContext extends SigningContext {
  /** Called once for each key, with its place, as it is decided. */
  readonly onOutcome: (place: number, outcome: KeyOutcome) => void;
}

interface Work {
  readonly request: SignRequest;
  readonly root: Uint8Array;
  readonly lane: Lane;
  readonly keys: readonly LoadedKey[];
}

/**
 * In-flight signing has begun with each of the keys, which are all different; it ends here.
 * @throws SignerError `overloaded` when there are fewer places in the queue than keys: nothing was done
 */
export async function signBatch(
  request: SignRequest,
  keys: readonly LoadedKey[],
  context: BatchContext,
  dependencies: SigningDependencies,
): Promise<Refused | undefined> {
  let begun = 0;
  try {
    const root = rootToSign(request, context, dependencies);
    if (!(root instanceof Uint8Array)) return root;
    context.onRoot?.(root);
    if (keys.length === 0) return undefined;
    const lane = laneOf(request, dependencies);
    const permits = dependencies.permits.enter(lane, keys.length);
    const parts: Promise<void>[] = [];
    try {
      while (begun < keys.length) {
        const count = await permits.take(MAX_PART_KEYS, context.signal);
        const work: Work = { request, root, lane, keys: keys.slice(begun, begun + count) };
        parts.push(signPart(work, { begun, permits }, context, dependencies));
        begun += count;
      }
    } catch (error) {
      for (let place = begun; place < keys.length; place++) context.onOutcome(place, { kind: 'failed', error });
    } finally {
      permits.leave();
    }
    await Promise.all(parts);
    return undefined;
  } finally {
    for (const { publicKey } of keys.slice(begun)) dependencies.inFlight.end(publicKey);
  }
}

/** Never rejects: a fault is the outcome of its keys. */
async function signPart(
  work: Work,
  { begun, permits }: { readonly begun: number; readonly permits: PermitGroup },
  context: BatchContext,
  dependencies: SigningDependencies,
): Promise<void> {
  const { keys } = work;
  const isTold = new Uint8Array(keys.length);
  const tell = (place: number, outcome: KeyOutcome): void => {
    isTold[place] = 1;
    context.onOutcome(begun + place, outcome);
  };
  try {
    const safe = await checkKeys(work, tell, context, dependencies);
    context.signal.throwIfAborted();
    const claimed = claimPlaces(work, safe, tell, dependencies);
    await signKeys(work, claimed, tell, context, dependencies);
  } catch (error) {
    for (const place of keys.keys()) if (isTold[place] === 0) tell(place, { kind: 'failed', error });
  } finally {
    permits.release(keys.length);
    for (const { publicKey } of keys) dependencies.inFlight.end(publicKey);
  }
}

type Tell = BatchContext['onOutcome'];

/** The places of the keys that slashing protection has nothing against, their records durable. */
async function checkKeys(
  { request, root, keys }: Work,
  tell: Tell,
  { signal, span }: BatchContext,
  { slashing, onRetired }: SigningDependencies,
): Promise<number[]> {
  const refuse = (place: number, tenure: number): void => {
    onRetired?.(keys[place]?.publicKey ?? '', tenure);
    tell(place, { kind: 'refused', reason: 'key_retired' });
  };
  const places: number[] = [];
  const messages: SlashableMessage[] = [];
  const row: OperationRow = ROWS[request.operation];
  for (const [place, key] of keys.entries()) {
    if (isEndedTenure(key.tenure)) {
      refuse(place, key.tenure);
      continue;
    }
    const message = row.slashable?.(request.message, key, root);
    if (message !== undefined) messages.push(message);
    places.push(place);
  }
  if (messages.length === 0) return places;
  const child = span?.child('slashing');
  try {
    const outcomes = await slashing.checkGroup(messages, signal);
    return places.filter((place, index) => {
      const outcome = outcomes[index] ?? { kind: 'failed', error: new SignerError('slashing_unavailable') };
      if (outcome.kind === 'safe') return true;
      const tenure = messages[index]?.tenure ?? 0;
      if (outcome.kind === 'refused' && outcome.reason === 'key_retired') refuse(place, tenure);
      else tell(place, outcome);
      return false;
    });
  } finally {
    child?.end();
  }
}

function claimPlaces(
  { request, root, keys }: Work,
  safe: readonly number[],
  tell: Tell,
  { equivocation }: SigningDependencies,
): readonly number[] {
  return safe.filter((place) => {
    try {
      const reason = equivocation.claim(keys[place]?.publicKey ?? '', request, root);
      if (reason !== undefined) tell(place, { kind: 'refused', reason });
      return reason === undefined;
    } catch (error) {
      tell(place, { kind: 'failed', error });
      return false;
    }
  });
}

async function signKeys(
  { request, root, lane, keys }: Work,
  safe: readonly number[],
  tell: Tell,
  { span }: BatchContext,
  { core, canaryKeys, onCanary, hindrance }: SigningDependencies,
): Promise<void> {
  const signers = safe.length === keys.length ? keys : safe.flatMap((place) => keys[place] ?? []);
  const child = span?.child('sign');
  let signatures: readonly GroupSignature[];
  try {
    const handles = signers.map(({ handle }) => handle);
    signatures = await core.signGroup(handles, root, lane);
    assertMayRelease({ hindrance });
  } finally {
    child?.end();
  }
  let index = 0;
  for (const place of safe) {
    const signature = signatures[index];
    const publicKey = signers[index]?.publicKey;
    index += 1;
    if (!(signature instanceof Uint8Array) || publicKey === undefined) {
      tell(place, { kind: 'failed', error: signature ?? new SignerError('signing_unavailable') });
      continue;
    }
    if (canaryKeys.has(publicKey)) onCanary(publicKey, request.operation);
    tell(place, { kind: 'signed', signature });
  }
}
