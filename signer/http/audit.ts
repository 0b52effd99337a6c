// One audit line per request of an authenticated route. Names, not values: no token, no body, no signature is in it.

import type { ServerResponse } from 'node:http';
import { encodeHex } from '../../common/formats/hex.ts';
import type { Clock } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import type { AuditLine } from '../api/audit-members.ts';
import { ERROR_REASONS, type ErrorReason, SignerError } from '../api/errors.ts';
import type { ClientFault } from '../api/forks.ts';
import { type ClientAddressOptions, clientAddress } from '../auth/client-address.ts';
import { type HttpRequest, headerValues, type RequestContext } from './context.ts';
import type { RequiredAudit } from './required-audit.ts';

export interface HttpObserver {
  requestEnded(route: string, status: number, seconds: number): void;
  /** @param operation undefined when the body was not understood @param count more than one for the keys of a batch */
  signingEnded(operation: string | undefined, outcome: 'signed' | ErrorReason, seconds: number, count: number): void;
  requestHealed(fault: ClientFault, count: number): void;
  authRejected(reason: ErrorReason): void;
  routeFailed(kind: 'thrown' | 'escaped'): void;
}

const OF_SHARES = '/api/v1/eth2/distributed/';

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
        route: scope === undefined || route?.startsWith(OF_SHARES) === true ? route : undefined,
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
