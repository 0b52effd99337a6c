// The members of audit lines (specification/operating.md#logs): the lines and docs/reference/audit.md are made from
// this table. Names and numbers only: no token, no body, no signature.

export const AUDIT_MEMBERS = {
  audit: 'Always `true`: what tells audit lines from others.',
  client_ip: 'Who sent the request, behind trusted proxies as well (`server.trust_proxy_headers`).',
  accessor: 'Which token: the accessor of a stored one, `static:NAME` of a static one. Absent without a valid token.',
  scope: 'The scope that admits to the route.',
  method: 'The HTTP method, on routes without a scope.',
  route: 'The route, on routes without a scope, and on those of shares, which sign partially.',
  subject: 'The policy (by name) or the token (by accessor) that the request is about.',
  public_key: 'The validator key that the path names; of a `key of a batch` that key.',
  keys: 'A batch: how many keys it names.',
  signed: 'A batch: how many of them were signed.',
  refused: 'A batch: how many of them were not; each of these has a line `key of a batch`.',
  operation: 'What was to be signed, once the body was understood.',
  slot: 'The slot of the message.',
  epoch: 'The epoch of the message, of operations that have no slot.',
  source_epoch: 'The source epoch of a vote.',
  target_epoch: 'The target epoch of a vote.',
  signing_root:
    'The 32 bytes that the signature is over, `0x` and hex, also when slashing protection refused them. Absent when the request was refused before the root was known to be right.',
  client_fault:
    'What was wrong with the fork that the client stated, when its message was signed with the fork of the schedule: `earlier_fork`, `later_fork`, `unknown_fork`, or `stated_version`.',
  fee_recipient: 'Where the message or its payload says that a proposer is paid.',
  gas_limit: 'The gas limit that the message or its payload states, as decimal text.',
  builder:
    'The builder that a message is for: its text where that is plain, else its bytes as `0x` and hex; at most 128 characters.',
  builder_index: 'The builder index of an envelope, as decimal text; 2^64 − 1 is the proposer itself.',
  outcome: '`ok`, or `refused` with the reason.',
  status: 'The HTTP status; 499 when the client went away before the answer.',
  reason: 'Why the request was refused: docs/reference/errors.md has every reason.',
  denied_by: 'The policy whose deny rule refused the request.',
  request_id: 'The `X-Request-Id` of the client, or one made here; the answer has it too.',
  duration_ms: 'From the headers of the request to the end of its answer, in milliseconds.',
} as const satisfies Readonly<Record<Lowercase<string>, string>>;

type AuditMember = keyof typeof AUDIT_MEMBERS;

export type AuditLine = Readonly<Partial<Record<AuditMember, unknown>>> & { readonly audit: true };
