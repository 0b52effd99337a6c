// An initialised enclave with its keys, for all tests of a file, that a test powers on under a parent of its choice. A
// start waits, and jumps to the present, because the one before was killed: votes are of the epoch after it, which the
// test lets come. All keys are TEST keys.

import { afterAll, beforeAll, expect, vi } from 'vitest';
import { type AttestedClient, attested, registersOf } from '../support/attested-client.ts';
import type { Parent, ParentOptions } from '../support/enclave-parent.ts';
import type { EnclaveProcess, StartOptions } from '../support/enclave-process.ts';
import { type EnclaveWorld, startEnclaveWorld } from '../support/enclave-world.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { latestEpoch } from '../support/present.ts';
import { attestation } from '../support/requests.ts';

export let world: EnclaveWorld;
export let parent: Parent | undefined;
export let enclave: EnclaveProcess | undefined;
const clients: AttestedClient[] = [];
export const opened: { close(): Promise<unknown> }[] = [];

let root: string;
export let token: string;
/** The key of the vote that `signs` asks for. */
let publicKey: string;
/** Keys that have signed nothing, for one vote each. */
export let spareKeys: readonly string[];
/** The epoch of the votes of this start. */
export let target: number;

const SPARE_KEYS = 16;
const EPOCH_MS = 384_000;
let moved = 0;
const clock = { now: () => Date.now() + moved };

beforeAll(async () => {
  world = await startEnclaveWorld(clock);
  await (await powerOn()).parent.readyToSign();
  const first = await connectAttested();
  root = await world.custody.rootToken(world.stateTable);
  await first.call('/api/v1/auth/policies', {
    token: root,
    body: { name: 'everything', rules: [{ effect: 'allow' }] },
  });
  const made = await first.call('/api/v1/auth/tokens', { token: root, body: { policies: ['everything'] } });
  token = String(made.json['token']);
  const generated = await first.call('/api/v1/chamber/keys/generate-keys', { token, body: { count: 1 + SPARE_KEYS } });
  const keys = generated.json['keys'] as readonly { readonly pubkey: string }[];
  [publicKey = '', ...spareKeys] = keys.map(({ pubkey }) => pubkey);
  await stop();
});
afterAll(() => world.close());

/** Of a start and of what was opened for it. */
export async function end(): Promise<void> {
  await stop();
  for (const each of opened.splice(0).toReversed()) await each.close();
}

async function stop(): Promise<void> {
  for (const client of clients.splice(0)) await client.close();
  await enclave?.kill();
  await parent?.close();
  enclave = undefined;
  parent = undefined;
}

export async function powerOn(options?: ParentOptions, image?: StartOptions) {
  parent = await world.startParent(undefined, options);
  enclave = await world.startEnclave(image);
  return { parent, enclave };
}

/** Power on under this parent, and connect as an operator who knows the honest measurements. */
export async function start(options?: ParentOptions): Promise<AttestedClient> {
  const powered = await powerOn(options);
  await powered.parent.readyToSign();
  moved += EPOCH_MS;
  target = latestEpoch(clock.now());
  const client = await connectAttested();
  // The security module is asked for the time now and then.
  await vi.waitFor(() => signs(client), { timeout: LONGEST_WAIT_MS, interval: 100 });
  return client;
}

export async function connectAttested(): Promise<AttestedClient> {
  if (parent === undefined || enclave === undefined) throw new Error('nothing runs');
  const client = await attested(parent.tlsUrl, world.pki, registersOf(enclave.nsm), clock.now);
  clients.push(client);
  return client;
}

export async function signs(client: AttestedClient): Promise<void> {
  const vote = attestation({ source: target - 1, target });
  expect(await client.call(`/api/v1/eth2/sign/${publicKey}`, { token, body: vote })).toMatchObject({ status: 200 });
}

export function expectNoSecrets(...texts: readonly string[]): void {
  for (const text of texts) for (const secret of [root, token]) expect(text).not.toContain(secret);
}

/** Clients try again; how often is the machine's affair, that it ends well is the enclave's. */
export async function eventually(attempt: () => Promise<void>): Promise<void> {
  await vi.waitFor(attempt, { timeout: LONGEST_WAIT_MS, interval: 100 });
}
