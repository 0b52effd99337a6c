// One audit line per request of an authenticated route. Names, not values: no token, no body, no signature is in it.

import type { ServerResponse } from 'node:http';
import { inTime } from '../../common/flow/in-time.ts';
import { encodeHex } from '../../common/formats/hex.ts';
import type { Clock } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import type { Logger } from '../../common/observe/logger.ts';
import { callerDigest, PUBLIC_KEY_BYTES } from '../../common/receipts/entry.ts';
import type { AuditLine } from '../api/audit-members.ts';
import { ERROR_REASONS, type ErrorReason, SignerError } from '../api/errors.ts';
import type { ClientFault } from '../api/forks.ts';
import type { Caller } from '../auth/authenticator.ts';
import { type ClientAddressOptions, clientAddress } from '../auth/client-address.ts';
import type { ReceiptLog } from '../receipts/log.ts';
import { type HttpRequest, headerValues, type RequestContext } from './context.ts';
import { toSignerError } from './replies.ts';

export interface HttpObserver {
  requestEnded(route: string, status: number, seconds: number): void;
  /** @param operation undefined when the body was not understood @param count more than one for the keys of a batch */
  signingEnded(operation: string | undefined, outcome: 'signed' | ErrorReason, seconds: number, count: number): void;
  requestHealed(fault: ClientFault, count: number): void;
  authRejected(reason: ErrorReason): void;
  routeFailed(kind: 'thrown' | 'escaped'): void;
}

interface RefusedKey {
  readonly publicKey: string;
  readonly reason: ErrorReason;
  readonly deniedBy: string | undefined;
}

export interface Audit {
  record(request: HttpRequest, response: ServerResponse): void;
  keyRefused(request: HttpRequest, key: RefusedKey): void;
  /** With audit.required, before signatures leave. @throws SignerError `audit_unavailable` */
  confirm(request: HttpRequest): Promise<void>;
}

interface AuditParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: HttpObserver;
  readonly required?: RequiredAudit | undefined;
}

export function createAudit(addresses: ClientAddressOptions, { clock, log, observer, required }: AuditParts): Audit {
  const addressOf = rememberedPeer(addresses);
  const confirmed = new WeakSet<HttpRequest>();
  const secondsOf = ({ startedAt }: RequestContext): number => (clock.monotonic() - startedAt) / 1000;
  const write = (request: HttpRequest, status: number, seconds: number): void => {
    const { context } = request;
    const { access, route } = context;
    const scope = access?.kind === 'scope' ? access.scope : undefined;
    const signed = context.batch?.outcomes.get('signed') ?? 0;
    log.info(
      {
        audit: true,
        client_ip: addressOf(context.peerAddress, forwardedFor(request)),
        accessor: context.caller?.accessor,
        scope,
        method: scope === undefined ? request.method : undefined,
        route: scope === undefined ? route : undefined,
        subject: context.subject,
        public_key: context.publicKey,
        keys: context.batch?.keys,
        signed: context.batch === undefined ? undefined : signed,
        refused: context.batch === undefined ? undefined : context.batch.keys - signed,
        ...messageMembers(context),
        ...paymentMembers(context),
        outcome: status < 400 ? 'ok' : 'refused',
        status,
        reason: context.reason,
        denied_by: context.deniedBy,
        request_id: request.id,
        duration_ms: Math.round(seconds * 1e6) / 1e3,
      } satisfies AuditLine,
      'request',
    );
  };
  return {
    record(request, response) {
      const { context } = request;
      const isAnswered = response.writableFinished || context.unanswered;
      if (!isAnswered) context.reason ??= 'client_closed';
      const status = isAnswered ? response.statusCode : ERROR_REASONS.client_closed.status;
      const seconds = secondsOf(context);
      const { access, route } = context;
      observer.requestEnded(access === undefined ? 'unknown' : (route ?? 'unknown'), status, seconds);
      if (access === undefined || access.kind === 'open') return;
      if (access.kind === 'scope' && access.scope === 'sign') countSigning(context, seconds, observer);
      if (!confirmed.has(request) || status >= 400) write(request, status, seconds);
    },
    async confirm(request) {
      if (required === undefined) return;
      confirmed.add(request);
      write(request, 200, secondsOf(request.context));
      if (await required.confirmed()) return;
      request.context.batch = undefined; // no signature of it leaves
      throw new SignerError('audit_unavailable');
    },
    keyRefused(request, { publicKey, reason, deniedBy }) {
      const { context } = request;
      log.info(
        {
          audit: true,
          client_ip: addressOf(context.peerAddress, forwardedFor(request)),
          accessor: context.caller?.accessor,
          scope: context.access?.kind === 'scope' ? context.access.scope : undefined,
          public_key: publicKey,
          ...messageMembers(context),
          outcome: 'refused',
          status: ERROR_REASONS[reason].status,
          reason,
          denied_by: deniedBy,
          request_id: request.id,
        } satisfies AuditLine,
        'key of a batch',
      );
    },
  };
}

// audit.required: no signature leaves before its audit line is with the system that the log goes to. A destination that
// takes no lines refuses all of them, before anything is signed, until it has taken what waits.

export interface RequiredAudit {
  /** Why nothing may be signed now. */
  hindrance(): 'audit_unavailable' | undefined;
  /** Whether the line that was written last, and those before it, are with the system. */
  confirmed(): Promise<boolean>;
}

const CONFIRM_TIMEOUT_MS = 2_000;

export function requiredAudit(log: Pick<Logger, 'isLosing' | 'confirmed'>): RequiredAudit {
  /** Lines that are late, and neither taken nor dropped yet. */
  let late = 0;
  return {
    hindrance: () => (late > 0 || log.isLosing() ? 'audit_unavailable' : undefined),
    async confirmed() {
      const line = log.confirmed();
      const isTaken = await inTime(line, CONFIRM_TIMEOUT_MS, () => {
        late += 1;
        void line.then(() => {
          late -= 1;
        });
        return false;
      });
      return isTaken && !log.isLosing();
    },
  };
}

function messageMembers({ operation, position, signingRoot, healed }: RequestContext) {
  return {
    operation,
    slot: position?.slot,
    epoch: position?.epoch,
    source_epoch: position?.sourceEpoch,
    target_epoch: position?.targetEpoch,
    signing_root: signingRoot === undefined ? undefined : encodeHex(signingRoot),
    client_fault: healed,
  };
}

function paymentMembers({ payment }: RequestContext) {
  return {
    fee_recipient: payment?.feeRecipient,
    gas_limit: payment?.gasLimit?.toString(),
    builder: payment?.builder === undefined ? undefined : builderName(payment.builder),
    builder_index: payment?.builderIndex?.toString(),
  };
}

const MAX_SHOWN_CHARACTERS = 128;

function builderName(builder: string): string {
  const text = Buffer.from(builder.slice(2), 'hex').toString('latin1');
  const name = /^[\x21-\x7e]+$/.test(text) ? text : builder;
  return name.length > MAX_SHOWN_CHARACTERS ? `${name.slice(0, MAX_SHOWN_CHARACTERS)}…` : name;
}

/** Each key of a batch counts as a single request would; what was signed for a client that is gone was not answered. */
function countSigning(context: RequestContext, seconds: number, observer: HttpObserver): void {
  const { batch, operation, reason, healed } = context;
  const healedCount = reason === undefined ? (batch === undefined ? 1 : (batch.outcomes.get('signed') ?? 0)) : 0;
  if (healed !== undefined && healedCount > 0) observer.requestHealed(healed, healedCount);
  if (batch === undefined) {
    observer.signingEnded(operation, reason ?? 'signed', seconds, 1);
    return;
  }
  let answered = 0;
  for (const [outcome, count] of batch.outcomes) {
    if (outcome === 'signed' && reason !== undefined) continue;
    observer.signingEnded(operation, outcome, seconds, count);
    answered += count;
  }
  if (answered < batch.keys)
    observer.signingEnded(operation, reason ?? 'internal_error', seconds, batch.keys - answered);
}

function forwardedFor({ raw, headers }: HttpRequest): string[] | undefined {
  return headers['x-forwarded-for'] === undefined ? undefined : headerValues(raw, 'x-forwarded-for');
}

type AddressOf = (peer: string | undefined, forwardedFor: readonly string[] | undefined) => string;

function rememberedPeer(addresses: ClientAddressOptions): AddressOf {
  let lastPeer: string | undefined;
  let lastAddress = clientAddress(addresses, undefined, undefined);
  return (peer, forwardedFor) => {
    if (forwardedFor !== undefined) return clientAddress(addresses, peer, forwardedFor);
    if (peer !== lastPeer) {
      lastAddress = clientAddress(addresses, peer, undefined);
      lastPeer = peer;
    }
    return lastAddress;
  };
}

// What a request that was understood ended with, as entries of the log of receipts (specification/receipts.md#log). The
// entry is there before the answer.

/** @param reason why it was refused; null: it was signed */
export type RecordDecision = (context: RequestContext, publicKey: string, reason: ErrorReason | null) => void;

/** Without a token or a certificate (auth/static.ts). */
const ANONYMOUS = 'anonymous';

export function recordsDecisions(log: Pick<ReceiptLog, 'record'>): RecordDecision {
  const digests = new WeakMap<Caller, Buffer>();
  /** Of the decision that is recorded: the log copies it. */
  const key = Buffer.alloc(PUBLIC_KEY_BYTES);
  const digestOf = (caller: Caller): Buffer => {
    const known = digests.get(caller);
    if (known !== undefined) return known;
    const { allows, denies } = caller.access;
    const policies = new Set([...allows, ...denies].map(({ policy }) => policy));
    const digest = callerDigest(caller.accessor === ANONYMOUS ? '' : caller.accessor, [...policies]);
    digests.set(caller, digest);
    return digest;
  };
  return ({ caller, operation, position = {}, signingRoot = null }, publicKey, reason) => {
    if (caller === undefined || operation === undefined) return; // admission and the parser have seen to both
    if (key.write(publicKey.slice(2), 'hex') !== PUBLIC_KEY_BYTES) throw new RangeError('a decision is on no key');
    log.record({ operation, reason, publicKey: key, position, signingRoot, caller: digestOf(caller) });
  };
}

export async function told<
  Outcome extends { readonly kind: 'signed' } | { readonly kind: 'refused'; reason: ErrorReason },
>(work: Promise<Outcome>, tell: (reason: ErrorReason | null) => void): Promise<Outcome> {
  try {
    const outcome = await work;
    tell(outcome.kind === 'signed' ? null : outcome.reason);
    return outcome;
  } catch (error) {
    tell(toSignerError(error).reason);
    throw error;
  }
}
