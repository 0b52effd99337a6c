// Heals what clients say of the fork of a message (specification/signing.md#healing): it is signed with the fork that
// the schedule gives for its epoch, when the client's own signingRoot is the root under that fork. So client and
// schedule agree on every byte that is signed. Everything slashable stays refused, and all of which one is signed a
// slot.

import type { ClientFault } from '../api/forks.ts';
import type { Operation } from '../api/operations.ts';
import type { SignRequest } from '../api/sign-request.ts';
import { forkOfVersion, forkRefusal, possibleForksAt, signedAt } from './message-fork.ts';
import type { Fork, Network } from './networks.ts';
import { computeSigningRoot } from './roots/root.ts';

export interface Healed {
  /** 32 bytes: the client's signingRoot, and the root under the schedule's fork. */
  readonly root: Uint8Array;
  readonly fault: ClientFault;
}

/** @param request of the network, refused for its fork or its root. Undefined: it stays refused. */
export function healedRoot(request: SignRequest, network: Network): Healed | undefined {
  const { givenSigningRoot: given } = request;
  if (given === undefined || !HEALABLE[request.operation]) return undefined;
  const sent = signedAt(request, network);
  if (sent === undefined) return undefined;
  const [fork, another] = possibleForksAt(network, sent.epoch);
  if (fork === undefined || another !== undefined) return undefined;
  const scheduled = withFork(request, fork);
  if (forkRefusal(scheduled, network) !== undefined) return undefined;
  const root = computeSigningRoot(scheduled, network);
  return Buffer.compare(root, given) === 0 ? { root, fault: faultOf(sent.version, fork, network) } : undefined;
}

const HEALABLE: Readonly<Record<Operation, boolean>> = {
  AGGREGATION_SLOT: true,
  AGGREGATE_AND_PROOF: true,
  ATTESTATION: false, // slashable
  BLOCK_V2: false, // slashable
  BUILDER_REQUEST_AUTH: false, // has no fork
  EXECUTION_PAYLOAD_BID: false, // one for a slot and parent
  EXECUTION_PAYLOAD_ENVELOPE: false, // one for a slot
  PAYLOAD_ATTESTATION_MESSAGE: false, // one for a slot
  PROPOSER_PREFERENCES: true,
  RANDAO_REVEAL: true,
  SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF: true,
  SYNC_COMMITTEE_MESSAGE: true,
  SYNC_COMMITTEE_SELECTION_PROOF: true,
  VALIDATOR_REGISTRATION: false, // has no fork
  VOLUNTARY_EXIT: false, // has Capella's, whatever is sent
};

function withFork(request: SignRequest, { version }: Fork): SignRequest {
  const forkInfo = { ...request.forkInfo, previousVersion: version, currentVersion: version, epoch: 0n };
  return { ...request, forkInfo, message: { ...request.message, version: undefined } } as SignRequest;
}

function faultOf(sent: Uint8Array, scheduled: Fork, network: Network): ClientFault {
  const fork = forkOfVersion(network, sent);
  if (fork === undefined) return 'unknown_fork';
  if (fork === scheduled) return 'stated_version';
  return network.forks.indexOf(fork) < network.forks.indexOf(scheduled) ? 'earlier_fork' : 'later_fork';
}
