// Requests to one signer, each over a connection of its own, verified before a byte is sent (connect.ts); those of a
// session share such connections. Answers are bounded. Only a GET is repeated, once: repeating anything else could do
// it twice.

import { Agent, type ClientRequestArgs, request as httpRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { z } from 'zod';
import { EXIT } from '../common/command-line/exit-codes.ts';
import { renderPlace } from '../common/command-line/text.ts';
import { parseJson } from '../common/formats/parse-json.ts';
import { DEFAULT_SIGNER_URL } from './common-flags.ts';
import { connect, type Peer } from './connect.ts';
import { connectionFailure, isRefused, isReset } from './connection-failure.ts';
import { createDeadline, type Deadline } from './deadline.ts';
import { CommandFailure, ForeignAnswer } from './exit.ts';
import { type AskedRoute, readErrorBody, signerRefusal } from './refusal.ts';
import { authorizationHeader } from './token.ts';

/** A list of every policy of a large deployment, with its keys, stays below it. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const MAX_REFUSAL_BYTES = 64 * 1024;
const MAX_GET_ATTEMPTS = 2;
/** Where a signer without TLS listens when nothing else is said. */
const PLAIN_SIGNER_URL = 'http://127.0.0.1:9000';
const LOOK_SECONDS = 2;

export interface ApiRequest extends AskedRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly json?: unknown;
  readonly upload?: AsyncIterable<Uint8Array>;
  /** A status other than 2xx whose body is an answer, too, and no error. */
  readonly alsoAnswers?: number;
}

export const STATUS = { method: 'GET', path: '/api/v1/chamber/status' } as const;
/** A sealed signer says it with 503. */
export const HEALTH = { method: 'GET', path: '/healthcheck', alsoAnswers: 503 } as const;
export const STATEFUL = { needs: 'signer_state.backend' } as const;

export interface SignerAnswer<T> {
  readonly value: T;
  readonly text: string;
}

/** Every method throws a CommandFailure when the answer is not 2xx and when none comes. */
export interface Client {
  request<Schema extends z.ZodType>(request: ApiRequest, schema: Schema): Promise<SignerAnswer<z.output<Schema>>>;
  send(request: ApiRequest): Promise<void>;
  /** A path that everybody may ask. The answer's time, by the signer's clock. */
  probe(path: string): Promise<{ readonly date: Date | undefined }>;
  text(path: string): Promise<string>;
  /** The answer's body as it comes; only one that was read to its end is whole. */
  download(path: string, consume: (body: AsyncIterable<Buffer>) => Promise<void>): Promise<void>;
}

export interface ClientOptions {
  readonly peer: Peer;
  readonly token: string | undefined;
  readonly timeoutSeconds: number;
}

/** Many files, over one connection for each request that is under way. Close it. */
export interface Session {
  /** Undefined where the signer has nothing. @throws CommandFailure, also for more bytes than this */
  file(path: string, maxBytes: number): Promise<Buffer | undefined>;
  close(): void;
}

const NOT_FOUND = 404;

export function createSession(options: ClientOptions): Session {
  const ended = new AbortController();
  const agent = keptConnections(options.peer, ended.signal);
  return {
    file: (path, maxBytes) =>
      exchange(
        options,
        { method: 'GET', path, alsoAnswers: NOT_FOUND },
        (body, { status }) => {
          return status === NOT_FOUND
            ? readBytes(body, MAX_REFUSAL_BYTES).then(() => undefined)
            : readBytes(body, maxBytes);
        },
        agent,
      ),
    close: () => {
      agent.destroy();
      ended.abort();
    },
  };
}

const CONNECT_TIMEOUT_MS = 15_000;

/** Each is verified before it is used (connect.ts), and used again. @param ended ends them */
export function keptConnections(peer: Peer, ended: AbortSignal): Agent {
  const open = async (): Promise<Socket> => {
    const attempt = new AbortController();
    const timer = setTimeout(() => attempt.abort(), CONNECT_TIMEOUT_MS);
    const opened = connect(peer, AbortSignal.any([ended, attempt.signal]));
    return (await opened.finally(() => clearTimeout(timer))).setNoDelay();
  };
  return Object.assign(new Agent({ keepAlive: true }), {
    createConnection: (_: unknown, settle: (error: Error | null, socket?: Socket) => void): undefined =>
      void open().then((socket) => settle(null, socket), settle),
  });
}

export function createClient(options: ClientOptions): Client {
  return {
    request: async (request, schema) => {
      const text = await exchange(options, request, readAll);
      return { value: readAnswer(text, schema, request), text };
    },
    send: async (request) => void (await exchange(options, request, readAll)),
    probe: (path) =>
      exchange({ ...options, token: undefined }, { method: 'GET', path }, async (body, { date }) => {
        await readText(body, MAX_REFUSAL_BYTES);
        const time = Date.parse(date ?? '');
        return { date: Number.isNaN(time) ? undefined : new Date(time) };
      }),
    text: (path) => exchange(options, { method: 'GET', path }, readAll),
    download: (path, consume) => exchange(options, { method: 'GET', path }, consume),
  };
}

interface AnswerHead {
  readonly status: number;
  readonly date: string | undefined;
}

async function exchange<T>(
  options: ClientOptions,
  request: ApiRequest,
  consume: (body: AsyncIterable<Buffer>, head: AnswerHead) => Promise<T>,
  agent?: Agent,
): Promise<T> {
  const deadline = createDeadline(options.timeoutSeconds);
  try {
    const response = await ask(options, request, deadline, agent);
    const body = watch(response, deadline, (error) => failure(error, options, request, deadline));
    const status = response.statusCode ?? 0;
    const isAnswer = (status >= 200 && status <= 299) || status === request.alsoAnswers;
    if (!isAnswer) throw signerRefusal(status, await readText(body, MAX_REFUSAL_BYTES), request);
    return await consume(body, { status, date: response.headers.date });
  } finally {
    deadline.end();
  }
}

async function ask(
  options: ClientOptions,
  request: ApiRequest,
  deadline: Deadline,
  agent: Agent | undefined,
): Promise<IncomingMessage> {
  for (let attempt = 1; ; attempt++) {
    deadline.set();
    let sent = false;
    try {
      const way = agent === undefined ? over(await connect(options.peer, deadline.signal)) : { agent };
      sent = true;
      return await send(way, options, request, deadline);
    } catch (error) {
      const again = request.method === 'GET' && isReset(error) && !deadline.expired && attempt < MAX_GET_ATTEMPTS;
      if (again) continue;
      const plainSigner = isRefused(error) ? await findPlainSigner(options.peer) : undefined;
      throw failure(error, options, request, deadline, { sent, plainSigner });
    }
  }
}

function over(socket: Socket): ClientRequestArgs {
  return { createConnection: () => socket };
}

function send(
  way: ClientRequestArgs,
  { peer, token }: ClientOptions,
  { method, path, json, upload }: ApiRequest,
  deadline: Deadline,
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const body = json === undefined ? undefined : Buffer.from(JSON.stringify(json));
  const headers = {
    host: peer.url.host,
    // A server that is to close would do so on a body it refuses, and the refusal could be lost in the reset.
    connection: upload === undefined && way.agent === undefined ? 'close' : 'keep-alive',
    accept: 'application/json',
    ...(token === undefined ? {} : { authorization: authorizationHeader(token) }),
    ...(body !== undefined || upload !== undefined ? { 'content-type': 'application/json' } : {}),
    // Stated, because node:http frames no body of a DELETE by itself.
    ...(body === undefined ? {} : { 'content-length': body.length }),
  };
  let answer: IncomingMessage | undefined;
  const outgoing = httpRequest({ ...way, method, path, headers }, (response) => {
    answer = response;
    resolve(response);
  });
  outgoing.on('error', reject);
  // A connection of its own ends with the deadline; one of a session stays after a whole answer.
  const end = (): void => void (answer?.complete === true || outgoing.destroy());
  if (way.agent !== undefined) deadline.signal.addEventListener('abort', end, { once: true });
  if (upload === undefined) outgoing.end(body);
  else pipeline(Readable.from(paced(upload, deadline)), outgoing).catch(reject); // after an answer: of no interest
  return promise;
}

async function* paced(upload: AsyncIterable<Uint8Array>, deadline: Deadline): AsyncGenerator<Uint8Array> {
  for await (const chunk of upload) {
    deadline.set();
    yield chunk;
  }
}

/** What comes; the clock stands while it is being used. */
async function* watch(
  response: IncomingMessage,
  deadline: Deadline,
  explain: (error: unknown) => CommandFailure,
): AsyncGenerator<Buffer> {
  const chunks = (response as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  for (;;) {
    deadline.set();
    const next = await chunks.next().catch((error: unknown) => {
      throw explain(error);
    });
    deadline.stop();
    if (next.done === true) return;
    yield next.value;
  }
}

function failure(
  error: unknown,
  { peer, timeoutSeconds }: ClientOptions,
  { method }: ApiRequest,
  deadline: Deadline,
  { sent, plainSigner }: { readonly sent: boolean; readonly plainSigner?: string | undefined } = { sent: true },
): CommandFailure {
  if (error instanceof CommandFailure) return error; // the source of an upload
  const maybeDone = sent && method !== 'GET';
  return connectionFailure(error, { peer, timeoutSeconds, timedOut: deadline.expired, maybeDone, plainSigner });
}

/** Without a URL the client looks for a plain signer, and sends no token. */
async function findPlainSigner({ url, attestation }: Peer): Promise<string | undefined> {
  if (url.origin !== DEFAULT_SIGNER_URL || attestation !== undefined) return undefined;
  const peer = { url: new URL(PLAIN_SIGNER_URL), trustedCertificates: undefined, serverName: undefined, attestation };
  try {
    await createClient({ peer, token: undefined, timeoutSeconds: LOOK_SECONDS }).probe('/upcheck');
    return PLAIN_SIGNER_URL;
  } catch {
    return undefined; // nothing there, or no signer
  }
}

function readAll(body: AsyncIterable<Buffer>): Promise<string> {
  return readText(body, MAX_ANSWER_BYTES);
}

async function readText(body: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  return (await readBytes(body, maxBytes)).toString('utf8');
}

export async function readBytes(body: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new ForeignAnswer(EXIT.refused, `the answer is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function readAnswer<Schema extends z.ZodType>(text: string, schema: Schema, request: ApiRequest): z.output<Schema> {
  const { alsoAnswers } = request;
  const parsed = schema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  if (alsoAnswers !== undefined && readErrorBody(text) !== undefined) throw signerRefusal(alsoAnswers, text, request);
  const [issue] = parsed.error.issues;
  throw new ForeignAnswer(
    EXIT.refused,
    `the answer is not what this version of strongroom knows (at ${renderPlace(issue?.path ?? []) || 'the top'})`,
    'does the URL lead to the signer, and is it of the same version?',
  );
}
