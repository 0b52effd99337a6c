// A parent that does not play by the rules: what it can do is refuse service. What it alters shows in the measurements,
// what it forges is refused, what it floods is bounded, and when it behaves again the signer goes on by itself.

import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { extendedOnce } from '../../common/formats/register.ts';
import { testPcr } from '../../rehearsal/nsm/emulator.ts';
import { type AttestedClient, attested, registersOf } from '../support/attested-client.ts';
import type { Parent } from '../support/enclave-parent.ts';
import type { EnclaveProcess } from '../support/enclave-process.ts';
import { type EnclaveWorld, startEnclaveWorld } from '../support/enclave-world.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { latestEpoch } from '../support/present.ts';
import { attestation, call, rootOf } from '../support/requests.ts';
import { someOf } from '../support/scale.ts';

const WAIT = { timeout: LONGEST_WAIT_MS, interval: 50 };

const EPOCH_MS = 384_000;
let moved = 0;
const clock = { now: () => Date.now() + moved };
/** Lets it come: later than what a start has jumped to. */
function nextEpoch(): number {
  moved += EPOCH_MS;
  return latestEpoch(clock.now());
}

let world: EnclaveWorld;
let parent: Parent;
let enclave: EnclaveProcess;
let client: AttestedClient | undefined;

beforeAll(async () => {
  world = await startEnclaveWorld(clock);
});
afterAll(() => world.close());
afterEach(async () => {
  await client?.close();
  client = undefined;
  await enclave.kill();
  await parent.close();
});

const pcr16 = (yaml: string): string => extendedOnce(createHash('sha384').update(yaml).digest()).toString('hex');
const callsSince = (count: number) => world.custody.kms.calls.slice(count);

/** What the parent's log says of a start that failed. */
async function failure(): Promise<Record<string, unknown>> {
  expect(await enclave.exited).not.toBe(0);
  const line = parent.lines.find(({ msg, source }) => source === 'enclave' && msg === 'cannot start');
  expect(line).toBeDefined();
  return line ?? {};
}

async function token(): Promise<string> {
  const root = await world.custody.rootToken(world.stateTable);
  const ask = (client as AttestedClient).call;
  await ask('/api/v1/auth/policies', { token: root, body: { name: 'everything', rules: [{ effect: 'allow' }] } });
  const { json } = await ask('/api/v1/auth/tokens', { token: root, body: { policies: ['everything'] } });
  return String(json['token']);
}

/** Every custody key gives shares to this configuration only, as a key policy with RecipientAttestation:PCR16 does. */
function pinConfiguration(yaml: string): void {
  for (const { arns } of world.ceremony.kms_keys) {
    for (const arn of arns) {
      world.custody.kms.requireAttestation(arn, {
        'kms:RecipientAttestation:PCR0': [testPcr(0).toString('hex')],
        'kms:RecipientAttestation:PCR16': [pcr16(yaml)],
      });
    }
  }
}

describe('a parent that alters the configuration', () => {
  it('shows itself in PCR16: the operator’s CLI does not talk to the enclave, and KMS gives it no share', async () => {
    parent = await world.startParent();
    enclave = await world.startEnclave();
    await parent.said('ready'); // the first boot: the table is initialised
    const expected = registersOf(enclave.nsm);
    client = await attested(parent.tlsUrl, world.pki, expected);
    await client.close();
    await enclave.stop();
    await parent.close();

    const altered = world.yaml({ logging: { level: 'debug' } });
    parent = await world.startParent(undefined, { handsOver: Buffer.from(altered) });
    enclave = await world.startEnclave();
    await parent.said('ready');
    expect(enclave.nsm.pcr(16).value.toString('hex')).toBe(pcr16(altered));
    await expect(attested(parent.tlsUrl, world.pki, expected)).rejects.toThrow(/PCR16/);
    await enclave.stop();
    await parent.close();

    pinConfiguration(world.yaml());
    parent = await world.startParent(undefined, { handsOver: Buffer.from(altered) });
    enclave = await world.startEnclave();
    expect(await failure()).toMatchObject({ error: expect.stringMatching(/custody: .*attestation policy mismatch/s) });
    await parent.close();

    parent = await world.startParent();
    enclave = await world.startEnclave();
    await parent.said('ready');
  });

  const refused: readonly (readonly [string, string, RegExp])[] = [
    ['is no YAML', '{', /the file/],
    ['is for no enclave', 'network: hoodi\n', /tee\.platform/],
    ['turns attested TLS off', '', /tls\.mode/],
    ['reaches a host that is not declared', '', /tee\.nitro\.egress\.endpoints/],
    ['brings a ceremony of its own', '', /ceremony/],
  ];
  it.each(someOf(refused, 2))(
    'is refused when what it gives %s, with the reason in its log',
    async (name, text, path) => {
      const sections: Record<string, Record<string, unknown>> = {
        'turns attested TLS off': { tls: { mode: 'disabled' } },
        'reaches a host that is not declared': {
          opentelemetry: { enabled: true, endpoint: 'http://evil.example.org:4317' },
        },
        'brings a ceremony of its own': { ceremony: world.ceremony },
      };
      const before = world.custody.kms.calls.length;
      const handsOver = Buffer.from(text === '' ? world.yaml(sections[name]) : text);
      parent = await world.startParent(undefined, { handsOver });
      enclave = await world.startEnclave();
      expect(await enclave.exited).toBe(78);
      const { violations } = await failure();
      expect((violations as { path: string }[]).map((violation) => violation.path).join()).toMatch(path);
      expect(callsSince(before)).toEqual([]);
    },
  );

  const unfinished: readonly (readonly [string, (socket: Socket) => void])[] = [
    ['floods', flood],
    ['cuts it', (socket) => socket.end(Buffer.of(0, 0, 1, 0, 1))],
    ['announces a gigabyte', (socket) => socket.end(Buffer.of(0x40, 0, 0, 0))],
  ];
  it.each(someOf(unfinished, 1))('is given up after a bounded time when it %s', async (_, answer) => {
    parent = await world.startParent(undefined, { instead: { 7001: answer } });
    enclave = await world.startEnclave({ patienceMs: 300 });
    expect(await failure()).toMatchObject({ error: expect.stringContaining('the parent gives no configuration') });
    expect(enclave.nsm.pcr(16).locked).toBe(false);
  });
});

describe('a parent in the way of AWS', () => {
  const forgeries = [
    ['plaintext_instead', 'as if the enclave had not asked for an envelope'],
    ['plaintext_beside', 'readable beside the envelope'],
    ['truncated_envelope', 'cut'],
    ['foreign_envelope', 'an envelope for somebody else'],
    ['impostor', 'in the name of another key'],
  ] as const;
  it.each(someOf(forgeries, 2))('gets no master key in place with %s: %s', async (behaviour, _meaning) => {
    const arns = world.ceremony.kms_keys.flatMap((key) => key.arns);
    for (const arn of arns) world.custody.kms.setBehaviour(arn, behaviour, ['Decrypt']);
    try {
      parent = await world.startParent();
      enclave = await world.startEnclave();
      expect(await failure()).toMatchObject({ error: expect.stringMatching(/^custody: /) });
      expect(enclave.nsm.operations).toContain('Attestation');
    } finally {
      for (const arn of arns) world.custody.kms.setBehaviour(arn, 'enabled', ['Decrypt']);
    }
  });

  const silent: readonly (readonly [string, 'absent' | ((socket: Socket) => void)])[] = [
    ['is not there', 'absent'],
    ['floods', flood],
    ['says nothing', () => undefined],
  ];
  it.each(someOf(silent, 1))(
    'ends the start after a bounded time when the credentials port %s',
    async (_, credentials) => {
      parent = await world.startParent(undefined, { instead: { 7002: credentials } });
      enclave = await world.startEnclave({ patienceMs: 300 });
      expect(await failure()).toMatchObject({ error: expect.stringContaining('the parent gives no AWS credentials') });
    },
  );
});

describe('a parent in the way of the log', () => {
  const deaf: readonly (readonly [string, 'absent' | ((socket: Socket) => void)])[] = [
    ['does not read', (socket) => void socket.pause()],
    ['is not there', 'absent'],
    ['floods', flood],
  ];
  it.each(someOf(deaf, 1))('does not keep the signer from its work when it %s', async (_, log) => {
    parent = await world.startParent(undefined, { instead: { 7000: log } });
    enclave = await world.startEnclave();
    const isUp = async () =>
      expect((await call(`${parent.probesUrl}/healthcheck`, { token: null })).json).toMatchObject({ status: 'UP' });
    await vi.waitFor(isUp, WAIT);
    client = await attested(parent.tlsUrl, world.pki, registersOf(enclave.nsm), clock.now);
    expect((await client.call('/api/v1/eth2/publicKeys', { token: await token() })).status).toBe(200);
  });
});

describe('a parent proxy that restarts', () => {
  it('takes the way to the signer and the signer’s to AWS, and gives both back: it signs, and knows what it signed', async () => {
    parent = await world.startParent();
    enclave = await world.startEnclave();
    await parent.readyToSign();
    client = await attested(parent.tlsUrl, world.pki, registersOf(enclave.nsm), clock.now);
    const bearer = await token();
    const ask = client.call;
    const generated = await ask('/api/v1/chamber/keys/generate-keys', { token: bearer, body: { count: 1 } });
    const [{ pubkey }] = generated.json['keys'] as [{ pubkey: string }];
    const path = `/api/v1/eth2/sign/${pubkey}`;
    const first = nextEpoch();
    const signsVote = (by: AttestedClient, target: number) =>
      vi.waitFor(async () => {
        const answer = await by.call(path, { token: bearer, body: attestation({ source: target - 1, target }) });
        expect(answer.status).toBe(200);
      }, WAIT);
    await signsVote(client, first);
    await client.close();
    await parent.close();
    await expect(attested(parent.tlsUrl, world.pki, registersOf(enclave.nsm), clock.now)).rejects.toThrow(
      /ECONNREFUSED/,
    );

    // Whoever gets to the enclave all the same, as root on the parent can, has no signature while it has no way to its
    // tables.
    parent = await world.startParent(undefined, { instead: { 8001: 'absent' } });
    client = await attested(parent.tlsUrl, world.pki, registersOf(enclave.nsm), clock.now);
    const aside = client.call;
    const votes = [1, 2, 3].map((head) => attestation({ source: first - 1, target: first, head: rootOf(head) }));
    const unsigned = await Promise.all(votes.map((body) => aside(path, { token: bearer, body })));
    expect(unsigned.map(({ status, json }) => [status, json['reason']])).toEqual(
      votes.map(() => [503, 'slashing_unavailable']),
    );
    await client.close();
    await parent.close();

    parent = await world.startParent();
    const back = await vi.waitFor(
      async () => attested(parent.tlsUrl, world.pki, registersOf(enclave.nsm), clock.now),
      WAIT,
    );
    client = back;
    await parent.healthy();
    const next = nextEpoch();
    await signsVote(back, next);
    // Nor has it one afterwards: the first vote of their target is recorded.
    for (const body of votes) expect((await back.call(path, { token: bearer, body })).status).toBe(412);
    expect(
      (await back.call(path, { token: bearer, body: attestation({ source: first - 9, target: next }) })).status,
    ).toBe(412);
  });
});

function flood(socket: Socket): void {
  socket.on('error', () => undefined);
  const bytes = Buffer.alloc(65_536, 0x7b);
  const write = (): void => {
    while (!socket.destroyed && socket.write(bytes));
    socket.once('drain', write);
  };
  write();
}
