// As tls-large-bodies.test.ts, for a signer in an enclave: large bodies behind large answers, one after another, on one
// attested connection, and through the operator's tunnel, which keeps its connections and uses them again.

import { Agent, request } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RunningTunnel, startTunnel } from '../operator/running-tunnel.ts';
import { type AttestedClient, attested, registersOf } from '../support/attested-client.ts';
import type { Parent } from '../support/enclave-parent.ts';
import { type EnclaveWorld, startEnclaveWorld } from '../support/enclave-world.ts';
import { randaoReveal } from '../support/requests.ts';

const BATCH = '/api/v1/eth2/sign';
const KEYS = '/api/v1/chamber/keys';
const ROUNDS = 150;
const MORE = 200;

let world: EnclaveWorld;
let parent: Parent;
let client: AttestedClient;
let token: string;
let body: { readonly identifiers: readonly string[]; readonly signing_request: unknown };

beforeAll(async () => {
  world = await startEnclaveWorld();
  parent = await world.startParent();
  const { nsm } = await world.startEnclave();
  await parent.readyToSign();
  client = await attested(parent.tlsUrl, world.pki, registersOf(nsm));
  const root = await world.custody.rootToken(world.stateTable);
  await client.call('/api/v1/auth/policies', { token: root, body: { name: 'all', rules: [{ effect: 'allow' }] } });
  const created = await client.call('/api/v1/auth/tokens', { token: root, body: { policies: ['all'] } });
  token = String(created.json['token']);
  const generated = await client.call(`${KEYS}/generate-keys`, { token, body: { count: 100 } });
  if (generated.status !== 201) throw new Error(generated.text);
  const own = (generated.json['keys'] as { readonly pubkey: string }[]).map(({ pubkey }) => pubkey);
  // Keys that nobody has make a body and an answer of any size, and no work.
  const others = Array.from(
    { length: MORE },
    (_, number) => `0x${'a'.repeat(88)}${number.toString(16).padStart(8, '0')}`,
  );
  body = { identifiers: [...own, ...others], signing_request: randaoReveal(3) };
});
afterAll(async () => {
  await client?.close();
  await parent?.close();
  await world.close();
});

const signedIn = (text: string): number =>
  (JSON.parse(text) as { signature?: string }[]).filter((key) => key.signature).length;

it('no batch is lost on one attested connection', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const { status, text } = await client.call(BATCH, { token, body });
    expect({ round, status, refused: status === 200 ? '' : text }).toEqual({ round, status: 200, refused: '' });
    expect(signedIn(text)).toBe(100);
  }
});

it('no batch is lost through the tunnel', async () => {
  const to = { url: parent.tlsUrl, token, rootFingerprint: world.pki.rootFingerprint };
  const tunnel = await startTunnel(to, { maxConnections: 1, maxBodyBytes: 2_000_000 });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { status, text } = await through(tunnel, agent, JSON.stringify(body));
      expect({ round, status, refused: status === 200 ? '' : text }).toEqual({ round, status: 200, refused: '' });
      expect(signedIn(text)).toBe(100);
    }
  } finally {
    agent.destroy();
    tunnel.stop();
    await tunnel.ended;
  }
});

async function through(
  { url }: RunningTunnel,
  agent: Agent,
  sent: string,
): Promise<{ readonly status: number | undefined; readonly text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number | undefined; text: string }>();
  const asked = request(`${url}${BATCH}`, { agent, method: 'POST' }, (response) => {
    Array.fromAsync(response as AsyncIterable<Buffer>).then(
      (parts) => resolve({ status: response.statusCode, text: Buffer.concat(parts).toString('utf8') }),
      reject,
    );
  });
  asked.on('error', reject).end(sent);
  return promise;
}
