// Heals what clients say of the fork of a message (specification/signing.md#healing): it is signed with the fork that
// the schedule gives for its epoch, when the client's own signingRoot is the root under that fork. So client and
// schedule agree on every byte that is signed. Everything slashable stays refused, and all of which one is signed a
// slot.

import type { ClientFault } from '../api/forks.ts';
import type { OperationRow } from '../operations/row.ts';
import { ROWS } from '../operations/rows.ts';
import type { SignRequest } from '../operations/sign-request.ts';
import {
  computeSigningRoot,
  forkOfVersion,
  forkRefusal,
  type MessageFork,
  messageFork,
  possibleForksAt,
} from './message-root.ts';
import type { Fork, Network } from './networks.ts';

export interface Healed {
  /** 32 bytes: the client's signingRoot, and the root under the schedule's fork. */
  readonly root: Uint8Array;
  readonly fault: ClientFault;
}

/** @param request of the network, refused for its fork or its root. Undefined: it stays refused. */
export function healedRoot(
  request: SignRequest,
  network: Network,
  sent: MessageFork = messageFork(request, network),
): Healed | undefined {
  const { givenSigningRoot: given } = request;
  const { epoch } = sent;
  const row: OperationRow = ROWS[request.operation];
  if (given === undefined || epoch === undefined || row.isHealable !== true) return undefined;
  const [scheduled, another] = possibleForksAt(network, epoch);
  if (scheduled === undefined || another !== undefined) return undefined;
  const { version } = scheduled;
  const unstated = { ...request, message: { ...request.message, version: undefined } } as SignRequest;
  const fork: MessageFork = { epoch, version, container: forkOfVersion(network, version) };
  if (forkRefusal(unstated, network, fork) !== undefined) return undefined;
  const root = computeSigningRoot(unstated, network, fork);
  return Buffer.compare(root, given) === 0 ? { root, fault: faultOf(sent, scheduled, network) } : undefined;
}

function faultOf({ container: sent }: MessageFork, scheduled: Fork, { forks }: Network): ClientFault {
  if (sent === undefined) return 'unknown_fork';
  if (sent === scheduled) return 'stated_version';
  return forks.indexOf(sent) < forks.indexOf(scheduled) ? 'earlier_fork' : 'later_fork';
}
