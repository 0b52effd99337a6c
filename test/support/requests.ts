// Requests as validator clients send them, and keys to send them for. All keys here are TEST keys.

import { SecretKey } from '@chainsafe/blst';

export const MAINNET_ROOT = '0x4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95';
export const TEST_TOKEN = 'sr_client_TEST_TOKEN_of_the_end_to_end_tests_0001';

export interface TestKey {
  readonly secret: string;
  readonly publicKey: string;
}

/** A key that is the same in every run. */
export function testKey(index: number): TestKey {
  const seed = Buffer.alloc(32, 0x5e);
  seed.writeUInt32BE(index);
  const key = SecretKey.fromKeygen(seed);
  return { secret: key.toHex(), publicKey: key.toPublicKey().toHex() };
}

export function forkInfo(genesisValidatorsRoot: string = MAINNET_ROOT): object {
  return {
    fork: { previous_version: '0x05000000', current_version: '0x06000000', epoch: '411392' },
    genesis_validators_root: genesisValidatorsRoot,
  };
}

/** A root whose bytes all are `byte`. */
export function rootOf(byte: number): string {
  return `0x${Buffer.alloc(32, byte).toString('hex')}`;
}

export function attestation(
  options: { source?: number; target?: number; head?: string; root?: string; index?: number } = {},
): Record<string, unknown> {
  const { source = 10, target = 11, head = rootOf(1), root = rootOf(3), index = 0 } = options;
  return {
    type: 'ATTESTATION',
    fork_info: forkInfo(),
    attestation: {
      slot: String(target * 32),
      index: String(index),
      beacon_block_root: head,
      source: { epoch: String(source), root },
      target: { epoch: String(target), root },
    },
  };
}

export function block(options: { slot?: number; body?: string } = {}): Record<string, unknown> {
  const { slot = 1000, body = rootOf(5) } = options;
  return {
    type: 'BLOCK_V2',
    fork_info: forkInfo(),
    beacon_block: {
      version: 'ELECTRA',
      block_header: {
        slot: String(slot),
        proposer_index: '7',
        parent_root: rootOf(6),
        state_root: rootOf(7),
        body_root: body,
      },
    },
  };
}

export function randaoReveal(epoch = 12): Record<string, unknown> {
  return { type: 'RANDAO_REVEAL', fork_info: forkInfo(), randao_reveal: { epoch: String(epoch) } };
}

export function voluntaryExit(): Record<string, unknown> {
  return { type: 'VOLUNTARY_EXIT', fork_info: forkInfo(), voluntary_exit: { epoch: '12', validator_index: '7' } };
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

/** One request; `body` is sent as JSON unless it is text already. */
export async function call(
  url: string,
  options: {
    readonly method?: string;
    readonly token?: string | null;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: unknown;
    readonly signal?: AbortSignal;
  } = {},
): Promise<Answer> {
  const { token = TEST_TOKEN, body } = options;
  const response = await fetch(url, {
    method: options.method ?? (body === undefined ? 'GET' : 'POST'),
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...options.headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : {} };
}

/** POST /api/v1/eth2/sign/{publicKey} */
export function signCall(
  base: string,
  publicKey: string,
  body: unknown,
  options: Omit<Parameters<typeof call>[1] & object, 'body' | 'method'> = {},
): Promise<Answer> {
  return call(`${base}/api/v1/eth2/sign/${publicKey}`, { ...options, body });
}
