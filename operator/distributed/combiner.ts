// The combiner of distributed keys: a listener for validator clients, and behind it the participants that hold shares
// of their keys. It holds no key, no record and no decision, so any number of combiners may run at once. What it
// answers as a signature was verified against the composite key.

import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { canonicalPublicKey, encodeHex } from '../../common/formats/hex.ts';
import { parseJson } from '../../common/formats/parse-json.ts';
import { requestPath } from '../../common/formats/request-path.ts';
import type { Addon } from '../../signer/native/load.ts';
import { createListener, hostNamesOf, type ListenerOptions, serveUntil } from '../tunnel/listener.ts';
import { LIST_OF_KEYS, refusalBody, refuse, refuseAtOnce, type TunnelRefusal } from '../tunnel/refusals.ts';
import { Accounts, held } from './accounts.ts';
import { Duty } from './duty.ts';
import { metricsText, ThresholdTimes } from './metrics.ts';
import { Participant, type ParticipantSettings } from './participants.ts';
import { askParticipant } from './question.ts';
import { carryOut, Pace } from './round.ts';
import { Verifier } from './verify.ts';

export interface CombinerOptions extends ListenerOptions {
  readonly participants: readonly ParticipantSettings[];
  readonly addon: Pick<Addon, 'combinePartials' | 'sharePublicKey'>;
  readonly pace?: Pick<Pace, 'lateMs' | 'note'>;
}

const SIGN_PATH = '/api/v1/eth2/sign';
/** As the signer (specification/signing.md#batches). */
const MAX_BATCH_KEYS = 2048;
/** As the signer holds it (specification/signing.md#public-keys). */
const LIST_HELD_MS = 60_000;
const HEALTH_MS = 2000;
/** Of all requests under way. */
const MAX_BODIES_BYTES = 256 * 1024 * 1024;
const UNREACHABLE = 'participants_unreachable';
const PASSED_HEADERS = ['content-type', 'content-encoding', 'x-request-id', 'traceparent', 'tracestate'] as const;

/** Serve until the signal. @throws CommandFailure when the address is taken */
export async function runCombiner(options: CombinerOptions, signal: AbortSignal): Promise<void> {
  const ended = new AbortController();
  const combiner = new Combiner(options, ended.signal);
  const server = createListener(options, (request, response) => combiner.serve(request, response));
  try {
    await serveUntil(server, { options, about: `${options.participants.length} participants sign`, signal });
  } finally {
    ended.abort();
  }
}

interface Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Aborted when the client goes away before its answer. */
  readonly gone: AbortSignal;
}

class Combiner {
  readonly #options: CombinerOptions;
  readonly #participants: readonly Participant[];
  readonly #accounts: Accounts;
  readonly #hostNames: ReadonlySet<string> | undefined;
  readonly #verifier: Verifier;
  readonly #pace: Pick<Pace, 'lateMs' | 'note'>;
  readonly #times = new ThresholdTimes();
  #bodyBytes = 0;

  constructor(options: CombinerOptions, ended: AbortSignal) {
    this.#options = options;
    this.#participants = options.participants.map((settings) => new Participant(settings, options, ended));
    this.#accounts = new Accounts(this.#participants, { ...options, ended });
    this.#verifier = new Verifier(options.addon);
    this.#pace = options.pace ?? new Pace();
    this.#hostNames = hostNamesOf(options);
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { maxBodyBytes, log } = this.#options;
    const client = new AbortController();
    response.once('close', () => response.writableFinished || client.abort());
    const refusal =
      refuseAtOnce(request, { maxBodyBytes, hostNames: this.#hostNames }) ??
      (await this.#answer({ request, response, gone: client.signal }));
    if (refusal !== undefined) refuse(request, response, refusal, log);
  }

  /** @returns why there is no answer */
  async #answer(call: Call): Promise<TunnelRefusal | undefined> {
    const { request, response } = call;
    const path = requestPath(request.url);
    switch (`${request.method === 'HEAD' ? 'GET' : request.method} ${path}`) {
      case `GET ${LIST_OF_KEYS}`:
        return this.#list(call);
      case 'GET /api/v1/eth2/highWatermark':
        return send(response, 200, 'application/json', '{}');
      case 'GET /upcheck':
        return send(response, 200, 'text/plain; charset=utf-8', 'OK');
      case 'GET /healthcheck':
        return this.#health(call);
      case 'GET /metrics': {
        const { size: keys } = this.#accounts.served;
        const measured = { participants: this.#participants, times: this.#times, verifier: this.#verifier, keys };
        return send(response, 200, 'text/plain; version=0.0.4; charset=utf-8', metricsText(measured));
      }
    }
    const isSign = path === SIGN_PATH || path.startsWith(`${SIGN_PATH}/`);
    if (request.method !== 'POST' || !isSign) return 'not_found';
    const room = { bytes: 0 };
    return this.#sign(call, path.slice(SIGN_PATH.length + 1), room).finally(() => (this.#bodyBytes -= room.bytes));
  }

  /** @param identifier none for a batch */
  async #sign(call: Call, identifier: string, room: { bytes: number }): Promise<TunnelRefusal | undefined> {
    const { request, response, gone } = call;
    const body = await this.#readBody(request, room);
    if (typeof body === 'string') return body;
    const isBatch = identifier === '';
    const wanted = isBatch ? readBatch(body) : readIdentifiers([identifier], undefined);
    if (wanted === undefined) return 'malformed_request';
    const { identifiers, keys, signing_request } = wanted;
    const timeMs = this.#options.timeoutSeconds * 1000;
    const signal = AbortSignal.any([gone, AbortSignal.timeout(timeMs)]);
    const question = {
      headers: passedHeaders(request),
      body,
      batch: isBatch ? { size: keys.length, signing_request } : undefined,
    };
    const duties = await Promise.all(keys.map((key) => this.#dutyOf(key, gone, timeMs / 2)));
    const asked = duties.filter((duty) => typeof duty !== 'string');
    await carryOut(asked, (at, some) => askParticipant(at, question, some, signal), this.#pace.lateMs, signal);
    const outcomes = duties.map((duty) => (typeof duty === 'string' ? duty : (duty.outcome ?? UNREACHABLE)));
    // One whose share was missing when it listed last may have it now.
    if (outcomes.includes(UNREACHABLE)) this.#accounts.refresh();
    const [first = UNREACHABLE] = outcomes;
    const isOfAll = outcomes.every((outcome) => typeof outcome === 'object' && 'isOfAll' in outcome && outcome.isOfAll);
    if (isBatch && !isOfAll) {
      const results = outcomes.map((outcome, place) => ({ identifier: identifiers[place], ...resultOf(outcome) }));
      return send(response, 200, 'application/json', JSON.stringify(results));
    }
    if (typeof first === 'string') return first;
    if (first.kind === 'refused') {
      this.#options.log(`refused by the participants: status ${first.status}`);
      return send(response, first.status, 'application/json; charset=utf-8', JSON.stringify(first.body));
    }
    const hex = encodeHex(first.signature);
    return /application\/json|\*\/\*/i.test(request.headers.accept ?? '')
      ? send(response, 200, 'application/json', `{"signature":"${hex}"}`)
      : send(response, 200, 'text/plain; charset=utf-8', hex);
  }

  async #readBody(request: IncomingMessage, room: { bytes: number }): Promise<Buffer | TunnelRefusal> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        room.bytes += chunk.length;
        this.#bodyBytes += chunk.length;
        if (room.bytes > this.#options.maxBodyBytes) return 'body_too_large';
        if (this.#bodyBytes > MAX_BODIES_BYTES) return 'tunnel_busy';
        chunks.push(chunk);
      }
      return Buffer.concat(chunks);
    } catch {
      return 'malformed_request'; // the client went away
    }
  }

  async #dutyOf(key: string, gone: AbortSignal, waitMs: number): Promise<Duty | TunnelRefusal> {
    const wait = (): AbortSignal => AbortSignal.any([gone, AbortSignal.timeout(waitMs)]);
    const group = this.#accounts.served.get(key) ?? (await this.#accounts.find(key, wait()));
    if (group === undefined || typeof group === 'string') return group ?? UNREACHABLE;
    const began = performance.now();
    const onThreshold = (): void => {
      const milliseconds = performance.now() - began;
      this.#pace.note(milliseconds);
      this.#times.note(milliseconds / 1000);
    };
    return new Duty(group, { addon: this.#options.addon, verifier: this.#verifier, onThreshold });
  }

  async #list({ response, gone }: Call): Promise<TunnelRefusal | undefined> {
    const keys = await this.#accounts.list(AbortSignal.any([gone, AbortSignal.timeout(LIST_HELD_MS)]));
    return keys === undefined ? UNREACHABLE : send(response, 200, 'application/json', JSON.stringify(keys));
  }

  async #health({ response, gone }: Call): Promise<undefined> {
    const since = await this.#accounts.look(AbortSignal.any([gone, AbortSignal.timeout(HEALTH_MS)]));
    const served = [...this.#accounts.served.values()];
    const { lost, never } = this.#accounts.unserved;
    const isThere = ({ listedAt, isFailing }: Participant): boolean => listedAt >= since && !isFailing;
    const there = this.#participants.filter(isThere).length;
    const without = lost + served.filter((group) => held(group, isThere) < group.threshold).length;
    const of = this.#participants.length;
    const status = without === 0 && (served.length > 0 || there === of) ? 'UP' : 'DOWN';
    const checks = [
      { id: 'participants', status, detail: `${there} of ${of} answer` },
      { id: 'keys', status, detail: `${without} of ${served.length + lost} have too few of them` },
      { id: 'unserved', status: 'UP', detail: `${never} other keys are at too few participants` },
    ];
    const body = { status, checks, outcome: status, participants: { answering: there, of } };
    return send(response, status === 'UP' ? 200 : 503, 'application/json; charset=utf-8', JSON.stringify(body));
  }
}

function send(response: ServerResponse, status: number, type: string, body: string): undefined {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body);
}

function passedHeaders({ headers }: IncomingMessage): OutgoingHttpHeaders {
  const isPassed = (value: unknown): boolean => typeof value === 'string' && /^[\x20-\x7e]{1,1024}$/.test(value);
  return Object.fromEntries(
    PASSED_HEADERS.filter((name) => isPassed(headers[name])).map((name) => [name, headers[name]]),
  );
}

function readBatch(body: Buffer) {
  const value = parseJson(body.toString('utf8'));
  if (typeof value !== 'object' || value === null) return undefined;
  const { identifiers, signing_request } = value as Readonly<Record<string, unknown>>;
  if (!Array.isArray(identifiers) || identifiers.length === 0 || identifiers.length > MAX_BATCH_KEYS) return undefined;
  return readIdentifiers(identifiers, signing_request);
}

/** @returns undefined unless each is a public key, and another */
function readIdentifiers(identifiers: readonly unknown[], signing_request: unknown) {
  const keys = identifiers.flatMap(
    (identifier) => (typeof identifier === 'string' && canonicalPublicKey(identifier)) || [],
  );
  return new Set(keys).size === identifiers.length ? { identifiers, keys, signing_request } : undefined;
}

function resultOf(outcome: NonNullable<Duty['outcome']> | TunnelRefusal): object {
  if (typeof outcome === 'string') return { error: refusalBody(outcome) };
  if (outcome.kind === 'signed') return { signature: encodeHex(outcome.signature) };
  const { status: code, body } = outcome;
  return { error: { code, reason: body['reason'], message: body['message'] } };
}
