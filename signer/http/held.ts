// Requests that came before their keys: held while keys load, without their bodies, each to a time of its own.
// Validator clients that start together with the signer read an error in place of the list of keys as no keys at all
// (Prysm for ever, docs/guides/clients.md), and miss the duties of the minutes that a load takes. A held request has no
// settled place yet: who opens connections to be held displaces its own (common/formats/places.ts). Looked at again and
// again, and not told: the keys, a seal, a lost right and the end of the signer all let it go.

import type { ErrorReason } from '../api/errors.ts';
import type { KeyStore } from '../keys/store.ts';
import type { HttpRequest } from './context.ts';

export const MAX_HELD_OF_CALLER = 4096;
/** Of all callers; beyond it a caller has one place. */
export const MAX_HELD = 2 * MAX_HELD_OF_CALLER;
const LOOK_MS = 50;
/** A start of thousands of requests leaves turns to other work. */
const MAX_PER_TURN = 64;

export interface HeldRequests {
  readonly size: number;
  /**
   * @param isThere whether it can go on although keys still load
   * @param proceed called once, unless the client goes away before
   * @returns false when there is no place; then `proceed` is not called
   */
  hold(request: HttpRequest, limitMs: number, isThere: () => boolean, proceed: () => void): boolean;
}

interface HeldParts {
  readonly keys: Pick<KeyStore, 'state'>;
  readonly signingRefusal: () => ErrorReason | undefined;
  readonly clock: { monotonic(): number };
}

interface HeldRequest {
  readonly request: HttpRequest;
  readonly caller: string;
  readonly until: number;
  readonly isThere: () => boolean;
  readonly proceed: () => void;
}

export function heldRequests({ keys, signingRefusal, clock }: HeldParts): HeldRequests {
  const held = new Set<HeldRequest>();
  const ofCaller = new Map<string, number>();
  let isLooking = false;

  const letGo = (one: HeldRequest): void => {
    held.delete(one);
    const left = (ofCaller.get(one.caller) ?? 0) - 1;
    if (left > 0) ofCaller.set(one.caller, left);
    else ofCaller.delete(one.caller);
  };
  const look = (): void => {
    const isOver = keys.state !== 'loading' || signingRefusal() !== undefined;
    const now = clock.monotonic();
    let went = 0;
    for (const one of held) {
      const isGone = one.request.context.released;
      if (!isGone && !isOver && now < one.until && !one.isThere()) continue;
      letGo(one);
      if (isGone) continue;
      one.proceed();
      went += 1;
      if (went === MAX_PER_TURN) break;
    }
    isLooking = held.size > 0;
    if (isLooking) setTimeout(look, went === MAX_PER_TURN ? 0 : LOOK_MS);
  };
  return {
    get size() {
      return held.size;
    },
    hold(request, limitMs, isThere, proceed) {
      const { caller: { accessor: caller = '' } = {}, startedAt } = request.context;
      const count = ofCaller.get(caller) ?? 0;
      if (count >= (held.size < MAX_HELD ? MAX_HELD_OF_CALLER : 1)) return false;
      ofCaller.set(caller, count + 1);
      held.add({ request, caller, until: startedAt + limitMs, isThere, proceed });
      if (!isLooking) setTimeout(look, LOOK_MS);
      isLooking = true;
      return true;
    },
  };
}
