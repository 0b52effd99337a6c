// Why the master key of a record was not opened or not wrapped. No reason contains a secret.

import { type CustodyKeyResult, describeKeyResult } from './custody-keys.ts';
import type { Ceremony, Deployment } from './definition.ts';
import type { MasterKeyRecord } from './record.ts';

export interface CustodyRefusal {
  readonly ok: false;
  readonly refusal:
    | 'malformed_record'
    | 'generation_behind'
    | 'other_ceremony'
    | 'other_deployment'
    | 'no_provenance'
    | 'below_threshold'
    | 'binding_mismatch'
    | 'key_refused_share';
  readonly startupFailure: 8 | 9;
  readonly message: string;
  readonly keys: readonly CustodyKeyResult[];
}

const RESTORE = 'restore the row from a point-in-time recovery of the table';

export function malformedRecord(): CustodyRefusal {
  return refuse(
    'malformed_record',
    9,
    `the MASTER_KEY row is not one that this version writes: it was altered, or a newer version wrote it; ${RESTORE}`,
  );
}

export function generationBehind(record: MasterKeyRecord, ceremony: Ceremony): CustodyRefusal {
  return refuse(
    'generation_behind',
    9,
    `the MASTER_KEY row is of ceremony generation ${record.generation} and this signer has generation ` +
      `${ceremony.generation}: give this signer the newer ceremony`,
  );
}

export function otherCeremony(record: MasterKeyRecord, ceremony: Ceremony): CustodyRefusal {
  const differs =
    record.threshold === ceremony.kmsThreshold
      ? 'other custody keys'
      : `the threshold ${record.threshold} where the ceremony says ${ceremony.kmsThreshold}`;
  return refuse(
    'other_ceremony',
    9,
    `the MASTER_KEY row is of ceremony generation ${record.generation}, as this signer's, and names ${differs}: ` +
      `a changed ceremony needs a higher generation, with the former keys in retired_kms_keys; ` +
      `if the ceremony was not changed the row was: ${RESTORE}`,
  );
}

export function otherDeployment(record: Deployment, ours: Deployment): CustodyRefusal {
  const ofId = `the MASTER_KEY row is of the deployment "${record.id}" and this signer is of "${ours.id}": if this table was restored or copied from `;
  return refuse(
    'other_deployment',
    9,
    record.network === ours.network
      ? `${ofId}that deployment's, set signer_state.deployment_id: ${record.id}; if it was not, the row was put there: ${RESTORE}`
      : `the MASTER_KEY row is of the network with the genesis validators root ${record.network} and this signer is of ${ours.network}: ` +
          `correct signer_state.table or the network; if both are right, the row was put there: ${RESTORE}`,
  );
}

export function retiredThresholdTooLow(record: MasterKeyRecord, ceremony: Ceremony): CustodyRefusal {
  return refuse(
    'other_ceremony',
    9,
    `the MASTER_KEY row is of generation ${record.generation} with the threshold ${record.threshold}, below the ` +
      `${ceremony.retiredKmsThreshold ?? ceremony.kmsThreshold} that this ceremony rotates from: if the earlier ceremony really ` +
      `had it, set retired_kms_threshold to ${record.threshold} for this rotation; if it had not, the row was changed: ${RESTORE}`,
  );
}

export function noProvenance(problem: string): CustodyRefusal {
  return refuse(
    'no_provenance',
    9,
    `the MASTER_KEY row does not prove that an accepted enclave made its key: ${problem}. No custody key was asked. ` +
      'Where the key comes from decides who knows it: the signer opens none that its custodians did not accept. If an image or ceremony of ' +
      'yours wrote the row, name it in tee.nitro.accepted_images or as previous_ceremony; if not, it was put there: ' +
      `${RESTORE}, or begin with an empty table`,
  );
}

export function foreignRootToken(problem: string): CustodyRefusal {
  return refuse(
    'no_provenance',
    9,
    `the ROOT_TOKEN_BOOTSTRAP row does not prove that an accepted enclave made its ciphertext: ${problem}. No custody key was asked. ` +
      'Participants would open what was put there. Delete the row and start: the enclave makes another root token and revokes the one before',
  );
}

export function foreignRemoval(problem: string): CustodyRefusal {
  return refuse(
    'no_provenance',
    9,
    `the MASTER_KEY row does not prove how its last seal was removed: ${problem}. No custody key was asked. Somebody changed the row: ${RESTORE}`,
  );
}

export function belowThreshold(record: MasterKeyRecord, keys: readonly CustodyKeyResult[]): CustodyRefusal {
  const served = keys.filter(({ ok }) => ok).length;
  return refuse(
    'below_threshold',
    8,
    `the master key needs ${record.threshold} of its ${record.shares.length} custody keys and ${served} served:\n` +
      keys.map((key) => `  ${describeKeyResult(key)}`).join('\n'),
    keys,
  );
}

export function bindingMismatch(keys: readonly CustodyKeyResult[]): CustodyRefusal {
  return refuse(
    'binding_mismatch',
    9,
    'the share binding of the MASTER_KEY row does not verify: the row was altered, or it was written under another ' +
      `ceremony key set; ${RESTORE}, or give this signer the ceremony that the row was written under:\n` +
      keys.map((key) => `  ${describeKeyResult(key)}`).join('\n'),
    keys,
  );
}

export function keyRefusedShare(keys: readonly CustodyKeyResult[]): CustodyRefusal {
  return refuse(
    'key_refused_share',
    8,
    'every custody key of the ceremony has to take its share of the master key, and not every one did; ' +
      'nothing was written. Repair the key, or leave it out of the ceremony:\n' +
      keys.map((key) => `  ${describeKeyResult(key)}`).join('\n'),
    keys,
  );
}

function refuse(
  refusal: CustodyRefusal['refusal'],
  startupFailure: 8 | 9,
  message: string,
  keys: readonly CustodyKeyResult[] = [],
): CustodyRefusal {
  return { ok: false, refusal, startupFailure, message, keys };
}
