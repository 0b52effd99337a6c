// Requests to one signer. Each takes a connection of its own, verified before a byte is sent (connect.ts); redirects
// are not followed, answers are bounded and read with the schemas of enclave/api. Only a GET is repeated, once, when
// the connection was reset: repeating anything else could do it twice.

import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { z } from 'zod';
import { EXIT } from '../command-line/exit-codes.ts';
import { renderPlace } from '../command-line/text.ts';
import { connect, type Peer } from './connect.ts';
import { connectionFailure, isReset } from './connection-failure.ts';
import { createDeadline, type Deadline } from './deadline.ts';
import { CommandFailure, ForeignAnswer } from './exit.ts';
import { type Asked, readErrorBody, refusal } from './refusal.ts';
import { authorizationHeader } from './token.ts';

/** A list of every policy of a large deployment, with its keys, stays below it. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const MAX_REFUSAL_BYTES = 64 * 1024;
const MAX_GET_ATTEMPTS = 2;

/** Its path begins with a slash; every part of it is escaped. */
export interface ApiRequest extends Asked {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The body: a value, or a stream of JSON text. */
  readonly json?: unknown;
  readonly upload?: AsyncIterable<Uint8Array>;
  /** A status beside 2xx whose body is the answer, too. */
  readonly alsoAnswers?: number;
}

/** Requests about policies, tokens and the latch need it. */
export const STATEFUL = { needs: 'signer_state.backend' } as const;

export interface Answer<T> {
  readonly value: T;
  /** As it came. */
  readonly text: string;
}

/** Every method throws a CommandFailure when the answer is not 2xx and when none comes. */
export interface Client {
  request<Schema extends z.ZodType>(request: ApiRequest, schema: Schema): Promise<Answer<z.output<Schema>>>;
  /** A request that is answered without content. */
  send(request: ApiRequest): Promise<void>;
  /** A path that everybody may ask. The answer's time, by the signer's clock. */
  probe(path: string): Promise<{ readonly date: Date | undefined }>;
  /** An answer that is text. */
  text(path: string): Promise<string>;
  /** The answer's body as it comes; only one that was read to its end is whole. */
  download(path: string, consume: (body: AsyncIterable<Buffer>) => Promise<void>): Promise<void>;
}

export interface ClientOptions {
  readonly peer: Peer;
  readonly token: string | undefined;
  readonly timeoutSeconds: number;
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

async function exchange<T>(
  options: ClientOptions,
  request: ApiRequest,
  consume: (body: AsyncIterable<Buffer>, head: { readonly date?: string | undefined }) => Promise<T>,
): Promise<T> {
  const deadline = createDeadline(options.timeoutSeconds);
  try {
    const response = await ask(options, request, deadline);
    const body = watch(response, deadline, (error) => failure(error, options, request, deadline));
    const status = response.statusCode ?? 0;
    const isAnswer = (status >= 200 && status <= 299) || status === request.alsoAnswers;
    if (!isAnswer) throw refusal(status, await readText(body, MAX_REFUSAL_BYTES), request);
    return await consume(body, { date: response.headers.date });
  } finally {
    deadline.end();
  }
}

/** The answer's head. */
async function ask(options: ClientOptions, request: ApiRequest, deadline: Deadline): Promise<IncomingMessage> {
  for (let attempt = 1; ; attempt++) {
    deadline.set();
    let sent = false;
    try {
      const socket = await connect(options.peer, deadline.signal);
      sent = true;
      return await send(socket, options, request, deadline);
    } catch (error) {
      const again = request.method === 'GET' && isReset(error) && !deadline.expired && attempt < MAX_GET_ATTEMPTS;
      if (!again) throw failure(error, options, request, deadline, sent);
    }
  }
}

function send(
  socket: Socket,
  { peer, token }: ClientOptions,
  { method, path, json, upload }: ApiRequest,
  deadline: Deadline,
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const body = json === undefined ? undefined : Buffer.from(JSON.stringify(json));
  const headers = {
    host: peer.url.host,
    // A server that is to close would do so on a body it refuses, and the refusal could be lost in the reset.
    connection: upload === undefined ? 'close' : 'keep-alive',
    accept: 'application/json',
    ...(token === undefined ? {} : { authorization: authorizationHeader(token) }),
    ...(body !== undefined || upload !== undefined ? { 'content-type': 'application/json' } : {}),
    // Stated, because node:http frames no body of a DELETE by itself.
    ...(body === undefined ? {} : { 'content-length': body.length }),
  };
  const outgoing = httpRequest({ createConnection: () => socket, method, path, headers }, resolve);
  outgoing.on('error', reject);
  if (upload === undefined) outgoing.end(body);
  else pipeline(Readable.from(paced(upload, deadline)), outgoing).catch(reject); // after an answer: of no interest
  return promise;
}

/** What is sent, as it goes out. */
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
  sent = true,
): CommandFailure {
  if (error instanceof CommandFailure) return error; // the source of an upload
  const maybeDone = sent && method !== 'GET';
  return connectionFailure(error, { peer, timeoutSeconds, timedOut: deadline.expired, maybeDone });
}

function readAll(body: AsyncIterable<Buffer>): Promise<string> {
  return readText(body, MAX_ANSWER_BYTES);
}

async function readText(body: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new ForeignAnswer(EXIT.refused, `the answer is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function readAnswer<Schema extends z.ZodType>(text: string, schema: Schema, request: ApiRequest): z.output<Schema> {
  const { alsoAnswers } = request;
  const parsed = schema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  if (alsoAnswers !== undefined && readErrorBody(text) !== undefined) throw refusal(alsoAnswers, text, request);
  const [issue] = parsed.error.issues;
  throw new ForeignAnswer(
    EXIT.refused,
    `the answer is not what this version of strongroom knows (at ${renderPlace(issue?.path ?? []) || 'the top'})`,
    'does the URL lead to the signer, and is it of the same version?',
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
