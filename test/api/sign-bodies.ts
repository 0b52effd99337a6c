// Signing requests that are right in every member, for tests that change one.

import { parseSignRequest } from '../../signer/operations/parse.ts';
import type { SignRequest } from '../../signer/operations/sign-request.ts';

export const ROOT = '0x'.padEnd(66, '1');
export const SIGNATURE = '0x'.padEnd(194, 'a');

export const forkInfo = {
  fork: { previous_version: '0x05000000', current_version: '0x06000000', epoch: '411392' },
  genesis_validators_root: ROOT,
};

export const attestation = {
  slot: '32',
  index: '0',
  beacon_block_root: ROOT,
  source: { epoch: '0', root: ROOT },
  target: { epoch: '1', root: ROOT },
};

export const header = { slot: '1', proposer_index: '2', parent_root: ROOT, state_root: ROOT, body_root: ROOT };

export const aggregateAndProof = {
  aggregator_index: '1',
  aggregate: { aggregation_bits: '0x03', data: attestation, signature: SIGNATURE },
  selection_proof: SIGNATURE,
};

export function parseText(text: string): ReturnType<typeof parseSignRequest> {
  return parseSignRequest(Buffer.from(text));
}

export function parse(body: unknown): ReturnType<typeof parseSignRequest> {
  return parseText(JSON.stringify(body));
}

export function accepted(body: unknown): SignRequest {
  const parsed = parse(body);
  if (parsed.kind === 'refused') throw new Error(`${parsed.reason}: ${parsed.hint}`);
  return parsed.request;
}

export const attesting = (members: object) => ({
  type: 'ATTESTATION',
  fork_info: forkInfo,
  attestation: { ...attestation, ...members },
});

export const aggregating = (aggregate: object, type = 'AGGREGATE_AND_PROOF_V2') => ({
  type,
  fork_info: forkInfo,
  aggregate_and_proof: aggregate,
});

export const proposing = (block: object) => ({ type: 'BLOCK_V2', fork_info: forkInfo, beacon_block: block });
export const refusal = (reason: string, hint: string) => ({ kind: 'refused', reason, hint });
export const malformed = (hint: string) => refusal('malformed_body', hint);
