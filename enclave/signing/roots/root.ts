// Computes, from a typed request, the 32 bytes to sign, and the facts that slashing protection needs. Only this code
// makes signing roots: the caller compares a root from a client with this one, and never signs the client's. It trusts
// the parser's types. The chain is always that of the configured network. Only the fork comes from the request
// (message-fork.ts).

import type { Operation } from '../../api/operations.ts';
import type { SignRequest } from '../../api/sign-request.ts';
import type { PublicKeyHex, SlashableMessage } from '../../slashing/types.ts';
import { containerFork, signedAt } from '../message-fork.ts';
import type { Network } from '../networks.ts';
import { attestationSigningRoot } from './attestation-root.ts';
import { SigningData } from './containers.ts';
import { type ComputeDomain, computeDomain, DOMAIN_TYPES, type DomainType } from './domains.ts';
import { objectRoot } from './object-root.ts';

const ZERO_ROOT = new Uint8Array(32);

/**
 * The root of the message bound to its domain (consensus-specs, compute_signing_root). 32 bytes.
 * @param request one that forkRefusal has nothing against on this network
 * @param domains computeDomain, or one that remembers
 */
export function computeSigningRoot(
  request: SignRequest,
  network: Network,
  domains: ComputeDomain = computeDomain,
): Uint8Array {
  const domain = domainOf(request, network, domains);
  if (request.operation === 'ATTESTATION') return attestationSigningRoot(request.message, domain);
  return SigningData.hashTreeRoot({ object_root: objectRoot(request, containerFork(request, network)), domain });
}

/** What slashing protection has to judge before this request is signed; null where nothing is slashable. */
export function slashableMessage(
  request: SignRequest,
  publicKey: PublicKeyHex,
  signingRoot: Uint8Array,
): SlashableMessage | null {
  switch (request.operation) {
    case 'BLOCK_V2':
      return { kind: 'block', publicKey, slot: request.message.slot, signingRoot };
    case 'ATTESTATION': {
      const { source, target } = request.message;
      return { kind: 'attestation', publicKey, sourceEpoch: source.epoch, targetEpoch: target.epoch, signingRoot };
    }
    case 'AGGREGATION_SLOT':
    case 'AGGREGATE_AND_PROOF':
    case 'BUILDER_REQUEST_AUTH':
    case 'EXECUTION_PAYLOAD_BID':
    case 'EXECUTION_PAYLOAD_ENVELOPE':
    case 'PAYLOAD_ATTESTATION_MESSAGE':
    case 'PROPOSER_PREFERENCES':
    case 'RANDAO_REVEAL':
    case 'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF':
    case 'SYNC_COMMITTEE_MESSAGE':
    case 'SYNC_COMMITTEE_SELECTION_PROOF':
    case 'VALIDATOR_REGISTRATION':
    case 'VOLUNTARY_EXIT':
      return null;
    default:
      return unreachable(request);
  }
}

/** specification/signing.md#bodies: the columns with the domains. */
const DOMAIN_OF: Readonly<Record<Operation, DomainType>> = {
  AGGREGATION_SLOT: DOMAIN_TYPES.SELECTION_PROOF,
  AGGREGATE_AND_PROOF: DOMAIN_TYPES.AGGREGATE_AND_PROOF,
  ATTESTATION: DOMAIN_TYPES.BEACON_ATTESTER,
  BLOCK_V2: DOMAIN_TYPES.BEACON_PROPOSER,
  BUILDER_REQUEST_AUTH: DOMAIN_TYPES.BUILDER_REQUEST_AUTH,
  EXECUTION_PAYLOAD_BID: DOMAIN_TYPES.BEACON_BUILDER,
  EXECUTION_PAYLOAD_ENVELOPE: DOMAIN_TYPES.BEACON_BUILDER,
  PAYLOAD_ATTESTATION_MESSAGE: DOMAIN_TYPES.PTC_ATTESTER,
  PROPOSER_PREFERENCES: DOMAIN_TYPES.PROPOSER_PREFERENCES,
  RANDAO_REVEAL: DOMAIN_TYPES.RANDAO,
  SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF: DOMAIN_TYPES.CONTRIBUTION_AND_PROOF,
  SYNC_COMMITTEE_MESSAGE: DOMAIN_TYPES.SYNC_COMMITTEE,
  SYNC_COMMITTEE_SELECTION_PROOF: DOMAIN_TYPES.SYNC_COMMITTEE_SELECTION_PROOF,
  VALIDATOR_REGISTRATION: DOMAIN_TYPES.APPLICATION_BUILDER,
  VOLUNTARY_EXIT: DOMAIN_TYPES.VOLUNTARY_EXIT,
};

function domainOf(request: SignRequest, network: Network, domains: ComputeDomain): Uint8Array {
  const type = DOMAIN_OF[request.operation];
  const { genesisValidatorsRoot, genesisForkVersion, capellaForkVersion } = network;
  switch (request.operation) {
    case 'VOLUNTARY_EXIT': // EIP-7044: valid for ever under Capella's version, whatever fork the client sent.
      return domains(type, capellaForkVersion, genesisValidatorsRoot);
    case 'BUILDER_REQUEST_AUTH':
    case 'VALIDATOR_REGISTRATION': // builder-specs: no fork and no chain but the genesis fork version.
      return domains(type, genesisForkVersion, ZERO_ROOT);
    default: {
      const signed = signedAt(request, network);
      if (signed === undefined) throw new Error(`no fork version for this operation: ${request.operation}`);
      return domains(type, signed.version, genesisValidatorsRoot);
    }
  }
}

function unreachable(request: never): never {
  throw new Error(`nothing known of this operation: ${(request as SignRequest).operation}`);
}
