// The signing route as validator clients use it, served without the framework's road to it, which costs as much as half a signature. Only
// the road is another: admission, limits, records and the route's own code are those of every other request. Whatever is not
// the plain request of a client (another path, a chunked or large body, an unusual content type) is left to the framework, untouched.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../../observe/clock.ts';
import { SignerError } from '../../api/errors.ts';
import type { Admission } from '../admission.ts';
import { readBody } from '../bodies/request.ts';
import { type HttpRequest, newContext, requestId } from '../context.ts';
import { peerAddressOf } from '../listeners/connections.ts';
import type { OpenRequests } from '../open-requests.ts';
import { type Answer, refusalAnswer } from '../replies.ts';
import { SIGN_PATH, SIGN_ROUTE, type SignHandler } from './sign.ts';

/** Longer bodies are those of whole blocks. */
export const MAX_DIRECT_BODY_BYTES = 16_384;
/** `0x` and 96 digits. */
const MAX_IDENTIFIER_CHARACTERS = 98;
const IDENTIFIER = /^(?:0x)?[0-9a-fA-F]{96}$/;
const CONTENT_TYPES: ReadonlySet<string | undefined> = new Set([
  undefined,
  'application/json',
  'application/json; charset=utf-8',
  'application/json; charset=UTF-8',
]);

export interface DirectSigningParts {
  readonly admission: Admission;
  readonly openRequests: OpenRequests;
  readonly sign: SignHandler;
  /** The answer to whatever was thrown, after it is logged. */
  readonly answerThrown: (request: HttpRequest, thrown: unknown) => Answer;
  readonly clock: Clock;
}

/** @returns whether the request is served here; if not, nothing was done with it */
export function directSigning(parts: DirectSigningParts): (raw: IncomingMessage, response: ServerResponse) => boolean {
  return (raw, response) => {
    const identifier = plainIdentifier(raw);
    if (identifier === undefined) return false;
    const context = newContext(SIGN_ROUTE, parts.clock.monotonic(), peerAddressOf(raw.socket));
    const { headers } = raw;
    const request = { raw, headers, id: requestId(raw), method: 'POST', params: { identifier }, context };
    if (parts.openRequests.begin(request, response)) begin(request, response, parts);
    return true;
  };
}

function begin(request: HttpRequest, response: ServerResponse, parts: DirectSigningParts): void {
  const refusal = admissionRefusal(request, parts);
  if (refusal !== undefined) write(response, request.id, refusal);
  else readBody(request, request.raw, parts.admission, (body) => void serve(request, response, body, parts));
}

/** A fault is the answer to this request, as it is on the framework's road: thrown from here it would end the process. */
function admissionRefusal(request: HttpRequest, { admission, answerThrown }: DirectSigningParts): Answer | undefined {
  try {
    const reason = admission.admit(request);
    return reason === undefined ? undefined : refusalAnswer(request, reason);
  } catch (thrown) {
    return answerThrown(request, thrown);
  }
}

/** The identifier of a plain request, or undefined. */
export function plainIdentifier({
  method,
  url = '',
  headers,
}: Pick<IncomingMessage, 'method' | 'url' | 'headers'>): string | undefined {
  if (method !== 'POST' || !url.startsWith(SIGN_PATH)) return undefined;
  if (url.length > SIGN_PATH.length + MAX_IDENTIFIER_CHARACTERS) return undefined;
  if (headers['transfer-encoding'] !== undefined || !CONTENT_TYPES.has(headers['content-type'])) return undefined;
  const length = Number(headers['content-length']);
  if (!(length > 0 && length <= MAX_DIRECT_BODY_BYTES)) return undefined;
  const identifier = url.slice(SIGN_PATH.length);
  return IDENTIFIER.test(identifier) ? identifier : undefined;
}

async function serve(
  request: HttpRequest,
  response: ServerResponse,
  body: Buffer | Error,
  parts: DirectSigningParts,
): Promise<void> {
  write(response, request.id, await answerTo(request, body, parts));
}

/** Never rejects. */
async function answerTo(
  request: HttpRequest,
  body: Buffer | Error,
  { admission, sign, answerThrown }: DirectSigningParts,
): Promise<Answer> {
  if (body instanceof Error) return closing(answerThrown(request, body));
  try {
    admission.bodyRead(request, body.length);
    const refusal = admission.readmit(request);
    if (refusal === undefined) return await sign(request, body);
    body.fill(0); // it may hold anything, and the route does not get to see it
    return closing(answerThrown(request, new SignerError(refusal)));
  } catch (thrown) {
    return answerThrown(request, thrown);
  }
}

/** As the framework answers when a body does not come to its route. */
function closing(answer: Answer): Answer {
  return { ...answer, headers: { connection: 'close', ...answer.headers } };
}

/** Head and text in one write: bytes would be a second one. */
function write(response: ServerResponse, id: string, { status, headers, contentType, body }: Answer): void {
  response.writeHead(status, {
    'x-request-id': id,
    ...headers,
    'content-type': contentType,
    'content-length': String(Buffer.byteLength(body)),
  });
  response.end(body);
}
