// docs/reference/errors.md, from the catalogue of reasons.

import { ERROR_REASONS, type ErrorReason } from '../../signer/api/errors.ts';
import { tableOfAlike } from './markdown.ts';

export function errorReference(): string {
  const byStatus = [...Map.groupBy(Object.entries(ERROR_REASONS), ([, { status }]) => status)];
  return `# Errors

Generated from the source by \`make docs\`.

The \`reason\` of [every error body](../specification/signing.md#errors), its \`message\`, which a hint may follow, and what
to do.

${byStatus.map(([status, reasons]) => `## ${status}\n\n${lines(reasons)}\n`).join('\n')}`;
}

/** Reasons with one message and one remedy share a line. */
function lines(reasons: readonly (readonly [string, { readonly message: string }])[]): string {
  return tableOfAlike(
    reasons,
    ([reason]) => reason,
    ([reason, { message }]) => `${message}. ${REMEDIES[reason as ErrorReason]}.`,
  );
}

// What to do about each refusal. The compiler demands one for every reason. Nothing of it
// goes over the wire.

const NOTHING_SLASHABLE =
  'Nothing was signed. Find who asked: two clients with one key, say ([runbook](../runbooks/slashing-incident.md#refused))';
const BELOW = 'Find who asks for what is old; once after a jump or an import it is nothing';
const RUNBOOK_BELOW = `${BELOW} ([runbook](../runbooks/slashing-incident.md#below-marks))`;
const WAIT = 'Ask again; clients do by themselves';

const REMEDIES: Readonly<Record<ErrorReason, string>> = {
  malformed_request: 'Look at what stands between client and signer; another protocol may be spoken to this port',
  malformed_body: 'Compare the body with `/api/openapi.json` of a service; the hint names the place',
  malformed_parameter: 'Correct the path or the query; a public key is `0x` and 96 hex digits',
  unsupported_operation: 'See `type`: the operations are in [authorization.md](authorization.md#operations)',
  unsupported_fork: 'Update the signer, or state the fork ([networks](../guides/networks.md))',
  fork_mismatch: 'Compare `network` and its forks here with those of the client; one of them is behind',
  signing_root_mismatch: 'Leave the root out, or correct it: client and signer see another message, domain or fork',
  network_mismatch: 'Point the client at the signer of its network, or correct `network`',
  invalid_policy: 'Correct what the hint names ([policies](../guides/authorization.md))',
  invalid_token_request: 'Correct what the hint names ([tokens](../guides/authorization.md#tokens))',
  recompute_not_allowed: 'Use the deposit data that was made first, or allow it in the configuration',
  too_many_items: 'Split the request ([limits](../specification/limits.md))',
  missing_credentials: 'Send the token as bearer or as the password of HTTP Basic, or a client certificate',
  malformed_credentials: 'Send `Authorization: Bearer TOKEN`, or HTTP Basic with the token as password',
  client_certificate_expired: 'Renew the certificate; compare the clocks',
  client_certificate_untrusted: 'Pin the certificate, or put its authority into `tls.client_ca`',
  client_certificate_unknown: 'Add its subject to `tls.known_clients`, and reload',
  auth_sealed: 'Follow [seal and recovery](../runbooks/seal-and-recovery.md)',
  invalid_token: 'Give the client a token that lives (`operator auth token create`, or `static_auth.tokens`)',
  peer_not_allowed: 'Correct `bound_cidrs` of the token, or the address that the client comes from',
  foreign_origin: 'List the origin, if the web page is yours',
  foreign_host: 'List the host name, if it is yours',
  denied: 'Add the scope, key or operation to a policy of the caller ([scopes](authorization.md))',
  fee_recipient_not_allowed: 'Correct the fee recipient of the client, or `fee_recipients` of the rule',
  builder_not_allowed: 'Correct the builder of the client, or `builders` of the rule',
  builder_index_not_allowed: 'Find out who built the payload; only then change `builder_indices` of the rule',
  not_own_block:
    'Find out who asked for this envelope: its block is not recorded for the key, or without a root (a minimal import)',
  gas_limit_not_allowed: 'Lower the gas limit of the client, or raise `max_gas_limit` of the rule',
  unknown_key: 'See which keys are loaded (`operator keys list`), and why one is not in the log; reload',
  not_found: 'Correct the path; a route may need `signer_state` or a key source',
  key_is_share: 'Give the validator client the URL of the combiner; no client signs with one participant',
  policy_in_use: 'Revoke the tokens that are bound to it, or give them another policy first',
  reload_in_progress: 'Wait until `GET /reload` says that it is over',
  already_exists: 'Take another name, or change what is there',
  double_block: NOTHING_SLASHABLE,
  block_below_low_water_mark: RUNBOOK_BELOW,
  double_vote: NOTHING_SLASHABLE,
  surrounding_vote: NOTHING_SLASHABLE,
  surrounded_vote: NOTHING_SLASHABLE,
  source_after_target: 'Report it to the client: the vote is not valid on any chain',
  source_below_low_water_mark: RUNBOOK_BELOW,
  target_below_low_water_mark: RUNBOOK_BELOW,
  equivocation: 'Nothing was signed. See that one client alone uses the key',
  key_retired:
    'It left this signer. Bring it back only with its record ([runbook](../runbooks/slashing-incident.md#retired))',
  body_too_large: 'Split the request, or raise the limit ([limits](../specification/limits.md))',
  client_closed: 'Raise the timeout of the client, if it comes often',
  internal_error:
    'Find the request id in the log, and report it ([runbook](../runbooks/signer-unavailable.md#internal-errors))',
  starting: `${WAIT}. What it waits for is in the log`,
  sealed: 'Follow [seal and recovery](../runbooks/seal-and-recovery.md)',
  state_stale: 'Mend the way to the state table ([runbook](../runbooks/store-unavailable.md#state-table))',
  shutting_down: `${WAIT}, of another replica or after the restart`,
  overloaded:
    'See who asks how much; a larger machine or more replicas ([runbook](../runbooks/signer-unavailable.md#overloaded))',
  request_timeout: 'Look at the slashing store and the load: what was slow is in the log',
  slashing_unavailable: 'Mend the store ([runbook](../runbooks/store-unavailable.md#slashing-store))',
  slashing_integrity: 'Do not repair rows. Follow the [runbook](../runbooks/slashing-database.md#damaged)',
  slashing_rollback: 'Follow the [runbook](../runbooks/slashing-database.md#jumped): the store is older than it was',
  slashing_unbound: 'Give the whole fleet one store ([runbook](../runbooks/slashing-database.md#unbound))',
  clock_unconfirmed:
    'Let a time service set the clock of the signer ([runbook](../runbooks/certificates-and-clocks.md#unconfirmed))',
  below_floor: 'Wait, or lower the floor ([runbook](../runbooks/certificates-and-clocks.md#floor))',
  ahead_of_clock: 'Compare the clocks ([runbook](../runbooks/certificates-and-clocks.md#clock))',
  signing_unavailable: 'Find the cause in the log, and restart the signer',
  audit_unavailable:
    'Make room where the log goes, or start its reader ([runbook](../runbooks/signer-unavailable.md#log))',
  receipts_unavailable: 'Mend the way to the folder or table of `receipts` ([guide](../guides/receipts.md#not-kept))',
  key_table_unavailable: 'Mend the way to the key table ([runbook](../runbooks/store-unavailable.md#key-table))',
  attestation_unavailable: `${WAIT}. If it stays: restart the enclave`,
  master_key_unavailable: 'See `operator status`: the signer is sealed, or runs without `signer_state`',
};
