// May this process sign now? One question with its reasons in the order of refusal (specification/signing.md#errors).
// Three places ask it, the second for messages that can be slashed:
// - at admission (http/admission.ts), so that a client hears it before it sends a body;
// - before the record (slashing/protection.ts), when a batch goes to the store: a message that was recorded without the
//   right could be released over one that came back by a jump, which knows nothing of the record;
// - before the release (here): a process that stood still since the store answered may have lost the right meanwhile.
// What comes in between needs no question of its own, because nothing leaves the process before the last one.

import type { ChamberState } from '../api/chamber.ts';
import { type ErrorReason, SignerError } from '../api/errors.ts';
import type { Hindrance, RestrainedStore } from '../slashing/restraints.ts';

/** What a signer needs to sign anything, whatever the message is. Later steps of the boot fill in the last three. */
export interface RightToSign {
  readonly custody: { readonly chamber: { readonly state: ChamberState } } | undefined;
  readonly store: Pick<RestrainedStore, 'hindrance'>;
  watcher?: { readonly stale: boolean } | undefined;
  receipts?: { readonly hindrance: Hindrance } | undefined;
  audit?: { readonly hindrance: Hindrance } | undefined;
}

/** Why nothing may be signed now. @param life without it, of what was admitted: a signer that ends finishes that */
export function hindranceOf(right: RightToSign, life?: { readonly shuttingDown: boolean }): Hindrance {
  return () =>
    custodyRefusal(right) ??
    (life?.shuttingDown === true
      ? 'shutting_down'
      : (right.store.hindrance() ?? right.receipts?.hindrance() ?? right.audit?.hindrance()));
}

export function custodyRefusal({ custody, watcher }: RightToSign): 'sealed' | 'state_stale' | undefined {
  if (custody?.chamber.state === 'Sealed') return 'sealed';
  return watcher?.stale === true ? 'state_stale' : undefined;
}

export function assertMayRelease({ hindrance }: { readonly hindrance: () => ErrorReason | undefined }): void {
  const reason = hindrance();
  if (reason !== undefined) throw new SignerError(reason);
}
