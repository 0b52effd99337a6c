// A small HTTP proxy between a client and a real service, which loses answers, breaks connections and answers errors
// as it is told: what emulators never do and networks always do. A rule sees each request and names the fault, or none.
// It serves any AWS JSON service (DynamoDB, KMS): faults that answer do so in that protocol.

import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';

/** What befalls one request. `applied` faults reach the service first; the others never do. */
export type Fault =
  | { readonly kind: 'error'; readonly status: number; readonly name: string; readonly applied?: boolean }
  | { readonly kind: 'reset'; readonly applied: boolean } // RST instead of an answer
  | { readonly kind: 'drop_answer' } // applied, then the connection ends in the middle of the answer
  | { readonly kind: 'hang' } // applied, never answered: the client has to give up by itself
  | { readonly kind: 'answer'; readonly body: string } // 200 with this body, and the service is not asked
  | { readonly kind: 'delay'; readonly milliseconds: number };

export interface ProxiedRequest {
  /** 0 for the first request of the proxy's life. */
  readonly index: number;
  /** `PutItem` of `X-Amz-Target: DynamoDB_20120810.PutItem`. */
  readonly operation: string;
  readonly body: string;
  /** Whose signature it has; empty without one. */
  readonly accessKeyId: string;
}

/** The request waits while the rule does: a test can let something else happen first. */
export type FaultRule = (request: ProxiedRequest) => Fault | undefined | Promise<Fault | undefined>;

export interface FaultProxy {
  /** Base URL, to be used in place of the service's. */
  readonly endpoint: string;
  /** Requests that arrived. */
  readonly requests: number;
  /** Faults that were made. */
  readonly faults: number;
  /** From now on; undefined lets everything through. */
  setRule(rule: FaultRule | undefined): void;
  close(): Promise<void>;
}

export const FAULTS = {
  internalError: { kind: 'error', status: 500, name: 'InternalServerError' },
  internalErrorAfterApplying: { kind: 'error', status: 500, name: 'InternalServerError', applied: true },
  unavailable: { kind: 'error', status: 503, name: 'ServiceUnavailable' },
  provisionedThroughputExceeded: { kind: 'error', status: 400, name: 'ProvisionedThroughputExceededException' },
  throttled: { kind: 'error', status: 400, name: 'ThrottlingException' },
  transactionConflict: { kind: 'error', status: 400, name: 'TransactionConflictException' },
  accessDenied: { kind: 'error', status: 400, name: 'AccessDeniedException' },
  resetBefore: { kind: 'reset', applied: false },
  resetAfter: { kind: 'reset', applied: true },
  dropAnswer: { kind: 'drop_answer' },
  hang: { kind: 'hang' },
} as const satisfies Record<string, Fault>;

export type FaultName = keyof typeof FAULTS;

/** `times` requests of the operation meet the fault, the others pass. */
export function faultTimes(times: number, fault: Fault, operation?: string): FaultRule {
  let left = times;
  return (request) => {
    if (left === 0 || (operation !== undefined && request.operation !== operation)) return undefined;
    left -= 1;
    return fault;
  };
}

/** A part of all requests (0…1) meets one of the faults, chosen by a generator that the seed decides. */
export function randomFaults(seed: number, rate: number, faults: readonly Fault[]): FaultRule {
  const random = randomNumbers(seed);
  return () => (random() < rate ? faults[Math.floor(random() * faults.length)] : undefined);
}

/** Numbers in [0, 1) that the seed decides (mulberry32): for tests that can be run again, not for secrets. */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** @param now the clock of the service, where the test moves it: milliseconds since the Unix epoch */
export async function startFaultProxy(target: string, now?: () => number): Promise<FaultProxy> {
  const agent = new Agent({ keepAlive: true });
  let rule: FaultRule | undefined;
  let requests = 0;
  let faults = 0;

  const server = createServer((incoming, outgoing) => {
    outgoing.on('error', () => undefined); // the client may go at any time
    serve(incoming, outgoing).catch(() => outgoing.socket?.destroy());
  });
  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await readAll(incoming);
    const operation = String(incoming.headers['x-amz-target'] ?? '').replace(/^.*\./, '');
    const index = requests;
    requests += 1;
    const [, accessKeyId = ''] = /Credential=([^/]+)\//.exec(incoming.headers.authorization ?? '') ?? [];
    const fault = await rule?.({ index, operation, body: body.toString('utf8'), accessKeyId });
    if (fault !== undefined) faults += 1;
    await answer(outgoing, fault, async () => {
      const reply = await forward(agent, target, incoming, body);
      if (now !== undefined) reply.headers['date'] = new Date(now()).toUTCString();
      return reply;
    });
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP listener has an address');

  return {
    endpoint: `http://127.0.0.1:${address.port}`,
    get requests() {
      return requests;
    },
    get faults() {
      return faults;
    },
    setRule(next) {
      rule = next;
    },
    close() {
      agent.destroy();
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: Buffer;
}

async function answer(outgoing: ServerResponse, fault: Fault | undefined, apply: () => Promise<Answer>): Promise<void> {
  switch (fault?.kind) {
    case 'error': {
      if (fault.applied === true) await apply();
      outgoing.writeHead(fault.status, { 'content-type': 'application/x-amz-json-1.0' });
      outgoing.end(JSON.stringify({ __type: `com.amazonaws.service#${fault.name}`, message: 'injected' }));
      return;
    }
    case 'answer':
      outgoing.writeHead(200, { 'content-type': 'application/x-amz-json-1.0' }).end(fault.body);
      return;
    case 'reset':
      if (fault.applied) await apply();
      outgoing.socket?.resetAndDestroy();
      return;
    case 'drop_answer': {
      const { status, headers, body } = await apply();
      outgoing.writeHead(status, headers);
      // Half of the answer, and one byte less when that were all of it.
      outgoing.write(body.subarray(0, Math.max(0, Math.min(body.length - 1, body.length >> 1))), () =>
        outgoing.socket?.destroy(),
      );
      return;
    }
    case 'hang':
      await apply();
      return;
    case 'delay':
      await new Promise((resolve) => setTimeout(resolve, fault.milliseconds));
      break;
    case undefined:
      break;
  }
  const { status, headers, body } = await apply();
  outgoing.writeHead(status, headers).end(body);
}

async function forward(agent: Agent, target: string, incoming: IncomingMessage, body: Buffer): Promise<Answer> {
  const { method, headers } = incoming;
  const reply = await new Promise<IncomingMessage>((resolve, reject) => {
    const url = new URL(incoming.url ?? '/', target);
    request(url, { agent, method: method ?? 'POST', headers }, resolve)
      .on('error', reject)
      .end(body);
  });
  const { connection: _connection, ...rest } = reply.headers;
  return { status: reply.statusCode ?? 502, headers: rest, body: await readAll(reply) };
}

async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return Buffer.concat(parts);
}
