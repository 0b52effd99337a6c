// The one catalogue of refusals. Messages are constant text: no secret and no configured value can reach a client.

interface ReasonEntry {
  readonly status: number;
  readonly message: string;
}

export const ERROR_REASONS = {
  malformed_request: { status: 400, message: 'this is not an HTTP request that the signer understands' },
  malformed_body: { status: 400, message: 'the request body does not match the schema of its type' },
  malformed_parameter: { status: 400, message: 'a path or query parameter is malformed' },
  unsupported_operation: { status: 400, message: 'the signing request type is not supported' },
  unsupported_fork: { status: 400, message: 'the fork version of this message is not supported' },
  fork_mismatch: { status: 400, message: 'what the request says of the fork of its message contradicts itself' },
  signing_root_mismatch: { status: 400, message: 'the given signing root is not the root of the message' },
  network_mismatch: { status: 400, message: 'the request is for another network than the signer serves' },
  invalid_policy: { status: 400, message: 'the policy is not valid' },
  invalid_token_request: { status: 400, message: 'the token request is not valid' },
  recompute_not_allowed: { status: 400, message: 'recomputing deposit data is not allowed by the configuration' },
  too_many_items: { status: 400, message: 'the request names more items than one request may' },
  missing_credentials: { status: 401, message: 'the request carries neither a token nor a client certificate' },
  malformed_credentials: { status: 401, message: 'the Authorization header is malformed or of an unsupported scheme' },
  client_certificate_expired: { status: 401, message: 'the client certificate has expired, or is not valid yet' },
  client_certificate_untrusted: {
    status: 401,
    message: 'the client certificate is not pinned, and its chain does not lead to a CA in tls.client_ca',
  },
  client_certificate_unknown: {
    status: 401,
    message: 'the client certificate is of a CA in tls.client_ca, and tls.known_clients has nobody of its subject',
  },
  auth_sealed: { status: 401, message: 'the signer is sealed: no credential can be checked' },
  invalid_token: { status: 403, message: 'the token is invalid, expired or unknown' },
  peer_not_allowed: { status: 403, message: 'the credential is not valid from this address' },
  foreign_origin: {
    status: 403,
    message: 'a browser sent this for a web page of an origin that server.cors_allowed_origins does not list',
  },
  foreign_host: { status: 403, message: 'the request is addressed to a host that server.allowed_hosts does not list' },
  denied: { status: 403, message: 'no policy of the caller allows this request' },
  fee_recipient_not_allowed: {
    status: 403,
    message: 'the policies of the caller allow this message for other fee recipients only',
  },
  gas_limit_not_allowed: {
    status: 403,
    message: 'the policies of the caller allow this message up to a lower gas limit only',
  },
  builder_not_allowed: {
    status: 403,
    message: 'the policies of the caller allow this message for other builders only',
  },
  builder_index_not_allowed: {
    status: 403,
    message: 'the policies of the caller allow this message with another builder index only',
  },
  not_own_block: {
    status: 403,
    message: 'the policies of the caller allow an envelope only for a block that its key signed at this slot',
  },
  unknown_key: { status: 404, message: 'the public key is not loaded' },
  not_found: { status: 404, message: 'there is nothing at this address' },
  key_is_share: {
    status: 409,
    message:
      'this signer holds a share of the key, whose signatures are partial: ' +
      'point the client at the combiner, `strongroom operator tunnel --participants`',
  },
  policy_in_use: { status: 409, message: 'the policy is bound to a live token' },
  reload_in_progress: {
    status: 409,
    message: 'a reload is under way: ask again when GET /reload says that it is over',
  },
  already_exists: { status: 409, message: 'an object of this name exists already' },
  double_block: { status: 412, message: 'slashing protection refused the request' },
  block_below_low_water_mark: { status: 412, message: 'slashing protection refused the request' },
  double_vote: { status: 412, message: 'slashing protection refused the request' },
  surrounding_vote: { status: 412, message: 'slashing protection refused the request' },
  surrounded_vote: { status: 412, message: 'slashing protection refused the request' },
  source_after_target: { status: 412, message: 'slashing protection refused the request' },
  source_below_low_water_mark: { status: 412, message: 'slashing protection refused the request' },
  target_below_low_water_mark: { status: 412, message: 'slashing protection refused the request' },
  equivocation: {
    status: 412,
    message:
      'other content was signed for this key in this place; a slot has one payload attestation, one envelope, and one bid for each parent',
  },
  key_retired: {
    status: 412,
    message:
      'the key was deleted or made inactive here: nothing is signed with it until it is imported again or reinstated',
  },
  body_too_large: { status: 413, message: 'the request body is larger than the signer accepts' },
  client_closed: { status: 499, message: 'the client went away before it was answered' },
  internal_error: { status: 500, message: 'the signer failed; the request id finds the cause in its log' },
  starting: { status: 503, message: 'the signer is starting' },
  sealed: { status: 503, message: 'the signer is sealed' },
  state_stale: { status: 503, message: 'the signer has lost sight of its state backend' },
  shutting_down: { status: 503, message: 'the signer is shutting down' },
  overloaded: { status: 503, message: 'the signer is at its limit of concurrent work' },
  request_timeout: { status: 503, message: 'the request was not finished in time' },
  slashing_unavailable: { status: 503, message: 'the slashing protection backend is unavailable' },
  slashing_integrity: { status: 503, message: 'the slashing protection record of this key fails its integrity check' },
  slashing_rollback: { status: 503, message: 'the slashing protection backend has lost records that were written' },
  slashing_unbound: {
    status: 503,
    message: 'the fleet of this signer signs over another slashing store, or it is not yet known that it does not',
  },
  clock_unconfirmed: {
    status: 503,
    message: 'records may have been lost, and the clock that the slashing store would be raised by is not confirmed',
  },
  below_floor: { status: 503, message: 'the slashing store refuses everything up to a time that is still to come' },
  ahead_of_clock: { status: 503, message: 'the message lies ahead of the clock of the signer' },
  signing_unavailable: { status: 503, message: 'the signing core is unavailable' },
  audit_unavailable: { status: 503, message: 'the audit line cannot be written, and audit.required is set' },
  receipts_unavailable: { status: 503, message: 'the log of receipts cannot be kept, or cannot be read' },
  key_table_unavailable: { status: 503, message: 'the key table cannot be reached' },
  attestation_unavailable: { status: 503, message: 'the security module gives no attestation document now' },
  master_key_unavailable: { status: 503, message: 'the master key is not available' },
} as const satisfies Record<string, ReasonEntry>;

export type ErrorReason = keyof typeof ERROR_REASONS;

export const SLASHING_REFUSALS = [
  'double_block',
  'block_below_low_water_mark',
  'double_vote',
  'surrounding_vote',
  'surrounded_vote',
  'source_after_target',
  'source_below_low_water_mark',
  'target_below_low_water_mark',
  'key_retired',
] as const satisfies readonly ErrorReason[];

export const SLASHING_KEY_FAULTS = [
  'slashing_integrity',
  'slashing_rollback',
  'slashing_unavailable',
  'ahead_of_clock',
  'below_floor',
] as const satisfies readonly ErrorReason[];

/** Why records may have been lost (specification/slashing.md#jump). */
export const DOUBT_CAUSES = [
  ...(['boot', 'by_hand', 'unclean_end', 'other_file', 'late_start'] as const),
  ...(['other_server', 'incarnation', 'lost_records', 'other_store'] as const),
] as const;

export interface ErrorBody {
  readonly code: number;
  readonly reason: ErrorReason;
  readonly message: string;
  readonly request_id: string;
}

interface SignerErrorOptions {
  /** What to add to the catalogue's message for the caller: never a secret, never a configured value. */
  readonly hint?: string;
  /** Logged, never sent. */
  readonly cause?: unknown;
  readonly detail?: Readonly<Record<string, unknown>>;
}

/** Expected refusals of pure modules are returned unions instead. */
export class SignerError extends Error {
  readonly reason: ErrorReason;
  readonly detail: Readonly<Record<string, unknown>> | undefined;
  readonly hint: string | undefined;

  constructor(reason: ErrorReason, options: SignerErrorOptions = {}) {
    const text = ERROR_REASONS[reason].message;
    super(options.hint === undefined ? text : `${text}: ${options.hint}`, { cause: options.cause });
    this.name = 'SignerError';
    this.reason = reason;
    this.detail = options.detail;
    this.hint = options.hint;
  }

  get status(): number {
    return ERROR_REASONS[this.reason].status;
  }
}

/** For a `catch`: the same fault of a service, with what its caller has to know of the change that it cut. */
export const telling =
  (more: string) =>
  (error: unknown): never => {
    if (!(error instanceof SignerError) || error.status !== 503) throw error;
    const { reason, hint, detail, cause } = error;
    throw new SignerError(reason, {
      hint: hint === undefined ? more : `${hint}; ${more}`,
      cause,
      ...(detail === undefined ? {} : { detail }),
    });
  };

/** As `telling`, unless the fault says already how far the change came. */
export const tellingUnlessTold =
  (more: string) =>
  (error: unknown): never => {
    if (error instanceof SignerError && error.hint !== undefined) throw error;
    return telling(more)(error);
  };
