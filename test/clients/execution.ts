// What a beacon node asks of the execution layer, for `make test-clients`: an engine that calls every payload valid and
// makes empty ones, and a builder that takes registrations and offers no header, so that proposers build their own
// payloads. Nothing is executed: the chain is about duties and their signatures.

import { createHash } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

interface PayloadAttributes {
  readonly timestamp: string;
  readonly prevRandao: string;
  readonly suggestedFeeRecipient: string;
  readonly withdrawals?: readonly unknown[];
}

interface Call {
  readonly id: unknown;
  readonly method: string;
  readonly params: readonly unknown[];
}

const NO_BYTES = (length: number) => `0x${'00'.repeat(length)}`;

/** execution-apis, engine API. @returns its URL */
export async function startEngine(): Promise<string> {
  const payloads = new Map<string, object>();
  let number = 0;
  const answer = ({ method, params }: Call): unknown => {
    if (method.startsWith('engine_newPayload')) {
      const { blockHash } = params[0] as { blockHash: string };
      return { status: 'VALID', latestValidHash: blockHash, validationError: null };
    }
    if (method.startsWith('engine_forkchoiceUpdated')) {
      const [{ headBlockHash }, attributes] = params as readonly [{ headBlockHash: string }, PayloadAttributes | null];
      const payloadStatus = { status: 'VALID', latestValidHash: headBlockHash, validationError: null };
      if (attributes === null || attributes === undefined) return { payloadStatus, payloadId: null };
      number += 1;
      const payloadId = `0x${number.toString(16).padStart(16, '0')}`;
      payloads.set(payloadId, payloadOn(headBlockHash, number, attributes));
      return { payloadStatus, payloadId };
    }
    if (method === 'engine_getPayloadV1') return payloads.get(String(params[0]));
    if (method === 'engine_getPayloadV2')
      return { executionPayload: payloads.get(String(params[0])), blockValue: '0x0' };
    if (method === 'engine_exchangeTransitionConfigurationV1') return params[0];
    throw new Error(`the engine of the tests has no ${method}`);
  };
  return listen(async (request, response) => {
    const call = (await json(request)) as Call;
    response.writeHead(200, { 'content-type': 'application/json' });
    try {
      response.end(JSON.stringify({ jsonrpc: '2.0', id: call.id, result: answer(call) }));
    } catch (error) {
      response.end(JSON.stringify({ jsonrpc: '2.0', id: call.id, error: { code: -32601, message: String(error) } }));
    }
  });
}

/** builder-specs. */
export async function startBuilder(): Promise<{ readonly url: string; readonly registrations: () => number }> {
  let registrations = 0;
  const url = await listen(async (request, response) => {
    if (request.url === '/eth/v1/builder/validators') registrations += ((await json(request)) as unknown[]).length;
    response.writeHead(request.url?.includes('/header/') === true ? 204 : 200, { 'content-type': 'application/json' });
    response.end();
  });
  return { url, registrations: () => registrations };
}

function payloadOn(parentHash: string, number: number, attributes: PayloadAttributes): object {
  const { timestamp, prevRandao, suggestedFeeRecipient, withdrawals } = attributes;
  return {
    parentHash,
    feeRecipient: suggestedFeeRecipient,
    stateRoot: NO_BYTES(32),
    receiptsRoot: NO_BYTES(32),
    logsBloom: NO_BYTES(256),
    prevRandao,
    blockNumber: `0x${number.toString(16)}`,
    gasLimit: '0x1c9c380',
    gasUsed: '0x0',
    timestamp,
    extraData: '0x',
    baseFeePerGas: '0x7',
    blockHash: `0x${createHash('sha256').update(`payload ${number} on ${parentHash}`).digest('hex')}`,
    transactions: [],
    ...(withdrawals === undefined ? {} : { withdrawals }),
  };
}

async function listen(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
