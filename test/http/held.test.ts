// Requests that come while keys load, and refusals where a client expects the list of keys, over real connections: the
// whole list or the end of the connection, and never an error (specification/signing.md#public-keys). TEST keys.

import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../common/observe/clock.ts';
import type { ErrorReason } from '../../signer/api/errors.ts';
import type { Policy } from '../../signer/api/policy.ts';
import { parseSafeCidrs } from '../../signer/auth/cidr.ts';
import { createStaticAuthenticator, type StaticAuthenticator } from '../../signer/auth/static.ts';
import type { BlsCore } from '../../signer/bls/bls.ts';
import { openBlsCore } from '../../signer/bls/open-either.ts';
import { NO_ROUTE, newContext } from '../../signer/http/context.ts';
import { heldRequests, MAX_HELD, MAX_HELD_OF_CALLER } from '../../signer/http/held.ts';
import { listenPlain, listenTls } from '../../signer/http/listeners/ports.ts';
import { KeyStore } from '../../signer/keys/store.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { createPermits } from '../../signer/sign/permits.ts';
import { inFlightSigning } from '../../signer/tenure.ts';
import { keylessApp } from '../support/auth-app.ts';
import { makeCertificate } from '../support/certificates.ts';
import { publicKeyOf, testSecret } from '../support/keys.ts';
import { type LogLine, recordingLog } from '../support/recording-log.ts';
import { randaoReveal } from '../support/requests.ts';

const [ONE, TWO, NEVER] = [1, 2, 3].map((number) => publicKeyOf(testSecret(number))) as [string, string, string];
const LIST = '/api/v1/eth2/publicKeys';
const CLIENT = 'TEST token of a validator client';
const FOR_ONE = 'TEST token for one key';
const ELSEWHERE = 'TEST token from elsewhere';
const NONE = 'TEST token of an operator';
const POLICIES: Policy[] = [
  { name: 'client', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys', 'reload'] }] },
  { name: 'one', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'], keys: [ONE] }] },
  { name: 'operator', rules: [{ effect: 'allow', scopes: ['reload'] }] },
];

let core: BlsCore;
let keys: KeyStore;
let app: FastifyInstance;
let tls: Server;
let folder: string;
let authenticator: StaticAuthenticator;
let refusal: ErrorReason | undefined;
let aheadMs: number;
let audit: readonly LogLine[];
let sockets: Socket[];
let waiting: () => number;
let looks: number;

beforeEach(async () => {
  [refusal, aheadMs, sockets, looks] = [undefined, 0, [], 0];
  core = await openBlsCore({ prefer: 'portable', cores: 1, log: recordingLog() });
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs };
  keys = new KeyStore({}, { vault: core, clock });
  authenticator = createStaticAuthenticator(tokensOf([CLIENT, 'client'], [FOR_ONE, 'one'], [NONE, 'operator']));
  const auditLog = recordingLog();
  audit = auditLog.lines;
  app = await keylessApp({
    authenticator,
    keys,
    clock,
    log: recordingLog(),
    auditLog,
    signingRefusal: () => {
      looks += 1;
      return refusal;
    },
    onTurns: (count) => {
      waiting = count;
    },
    network: publicNetwork('mainnet'),
    core,
    slashing: { check: safe, checkGroup: safe, signedBlockRoot: safe },
    permits: createPermits({ maxConcurrentJobs: 8, queueLimit: 8, priorityJobs: 0 }),
    inFlight: inFlightSigning(),
    equivocation: { claim: () => undefined },
    priorityOperations: new Set(),
    canaryKeys: new Set(),
    onCanary: () => undefined,
    hindrance: () => refusal,
  });
  folder = mkdtempSync(join(tmpdir(), 'held-'));
  const pair = makeCertificate(folder, 'tls');
  const at = { host: '127.0.0.1', port: 0 };
  await listenPlain(app, at);
  const secureContext = { cert: readFileSync(pair.cert), key: readFileSync(pair.key) };
  tls = (await listenTls(app, { ...at, maxConnections: 64, secureContext })).server;
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  tls.closeAllConnections();
  await new Promise((resolve) => tls.close(resolve));
  await app.close();
  await core.close();
  rmSync(folder, { recursive: true });
});

/** Nothing here is slashable. */
const safe = (): never => expect.unreachable('a check');

function tokensOf(...tokens: readonly (readonly [secret: string, policy: string])[]) {
  const elsewhere = parseSafeCidrs(['192.0.2.0/24']);
  if ('refused' in elsewhere) throw new Error(elsewhere.refused);
  return {
    policies: POLICIES,
    anonymousPolicies: [],
    tokens: [
      ...tokens.map(([secret, policy]) => ({ secret: Buffer.from(secret), policies: [policy], boundCidrs: [] })),
      { secret: Buffer.from(ELSEWHERE), policies: ['client'], boundCidrs: elsewhere },
    ],
  };
}

interface Asking {
  readonly socket: Socket;
  readonly said: () => string;
  /** All that came, when the connection has ended. */
  readonly ended: Promise<string>;
}

type Listener = 'http' | 'tls';

async function send(text: string, listener: Listener = 'http'): Promise<Asking> {
  const { port } = (listener === 'http' ? app.server : tls).address() as AddressInfo;
  const socket: Socket =
    listener === 'http'
      ? connect(port, '127.0.0.1')
      : connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
  sockets.push(socket);
  socket.on('error', () => undefined);
  let said = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (said += chunk));
  const ended = once(socket, 'close').then(() => said);
  socket.on('end', () => socket.end());
  await once(socket, listener === 'http' ? 'connect' : 'secureConnect');
  socket.write(text);
  return { socket, said: () => said, ended };
}

const head = (method: string, path: string, token: string | null = CLIENT, more = '') =>
  `${method} ${path} HTTP/1.1\r\nHost: signer\r\n${token === null ? '' : `Authorization: Bearer ${token}\r\n`}${more}\r\n`;
const list = (token: string | null = CLIENT, more = '') => head('GET', LIST, token, more);
const sign = (key: string, token = CLIENT) => post(`/api/v1/eth2/sign/${key}`, randaoReveal(), token);
const post = (path: string, body: unknown, token = CLIENT) => {
  const text = JSON.stringify(body);
  return head('POST', path, token, `Content-Length: ${text.length}\r\nContent-Type: application/json\r\n`) + text;
};

/** The bodies of a connection's answers so far, one status each. */
const statuses = ({ said }: Asking) => [...said().matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
async function expectStatuses(asking: Asking, ...wanted: number[]): Promise<void> {
  await expect.poll(() => statuses(asking)).toEqual(wanted);
}
async function expectAudit(more: object): Promise<void> {
  await expect.poll(() => audit.map(({ fields }) => fields)).toContainEqual(expect.objectContaining(more));
}
/** Until the signer holds these, and then for as long as it looks at them three times. */
async function expectHeld(...asking: readonly Asking[]): Promise<void> {
  await expect.poll(() => waiting()).toBe(asking.length);
  const before = looks;
  await expect.poll(() => looks).toBeGreaterThan(before + 3);
  for (const one of asking) expect([one.said(), one.socket.destroyed]).toEqual(['', false]);
}
const add = (number: number) => keys.add(testSecret(number), 'filesystem');

describe.each(['http', 'tls'] as const)('over %s, while keys load', (listener) => {
  it('the list is held, and then whole; the connection goes on', async () => {
    add(1);
    const asking = await send(list(), listener);
    await expectHeld(asking);
    add(2);
    keys.completeFirstLoad();
    await expectStatuses(asking, 200);
    expect(asking.said()).toContain(JSON.stringify([ONE, TWO].toSorted()));
    asking.socket.write(list());
    await expectStatuses(asking, 200, 200);
    await expectAudit({ scope: 'public_keys', outcome: 'ok', status: 200 });
  });

  it.each(['GET', 'HEAD'])('%s of the list is held for 60 s, and ends without a byte', async (method) => {
    const asking = await send(head(method, LIST), listener);
    await expectHeld(asking);
    aheadMs = 59_000;
    await expectHeld(asking);
    aheadMs = 60_001;
    expect(await asking.ended).toBe('');
    await expectAudit({ scope: 'public_keys', outcome: 'refused', status: 503, reason: 'starting' });
  });

  it('a signature is made as soon as its key is there', async () => {
    const [one, two] = [await send(sign(ONE), listener), await send(sign(TWO), listener)];
    await expectHeld(one, two);
    add(1);
    await expectStatuses(one, 200);
    expect([keys.state, one.said(), two.said()]).toEqual(['loading', expect.stringContaining('0x'), '']);
    add(2);
    await expectStatuses(two, 200);
  });
});

describe('while keys load', () => {
  it('a signature is refused at its own timeout, or when the load has ended without its key', async () => {
    const late = await send(sign(NEVER));
    await expectHeld(late);
    aheadMs = 29_000;
    await expectHeld(late);
    aheadMs = 30_001;
    await expectStatuses(late, 503);
    expect(late.said()).toContain('"reason":"starting"');
    const other = await send(sign(NEVER));
    await expectHeld(other);
    keys.completeFirstLoad();
    await expectStatuses(other, 404);
  });

  it('is asked for a key that a caller may not use, nothing is held', async () => {
    await expectStatuses(await send(sign(TWO, FOR_ONE)), 403);
  });

  it('requests of one connection are answered in their order', async () => {
    const asking = await send(head('GET', '/upcheck', null) + list() + sign(ONE) + head('GET', '/upcheck', null));
    await expectStatuses(asking, 200);
    await expect.poll(() => waiting()).toBe(2);
    add(1);
    keys.completeFirstLoad();
    await expectStatuses(asking, 200, 200, 200, 200);
    expect(asking.said().indexOf(`["${ONE}"]`)).toBeGreaterThan(asking.said().indexOf('OK'));
  });

  it('what was asked before on its connection is answered whole, also when the list is not', async () => {
    const asking = await send(sign(ONE) + list() + head('GET', '/upcheck', null));
    await expect.poll(() => waiting()).toBe(2);
    aheadMs = 60_001; // both are over: the signature is answered
    expect(await asking.ended).toMatch(/^HTTP\/1\.1 503 .*"reason":"starting".*\}$/s);
    expect(statuses(asking)).toEqual([503]);
  });

  it.each(['sealed', 'state_stale', 'slashing_unbound', 'shutting_down'] as const)(
    'what is held ends at once when the signer is %s: the list without an answer',
    async (reason) => {
      const [listing, signing, batch] = [
        await send(list()),
        await send(sign(ONE)),
        await send(post('/api/v1/eth2/sign', { identifiers: [ONE], signing_request: randaoReveal() })),
      ];
      await expectHeld(listing, signing, batch);
      refusal = reason;
      expect(await listing.ended).toBe('');
      await expectStatuses(signing, 503);
      expect(signing.said()).toContain(`"reason":"${reason}"`);
      await expect.poll(() => batch.said()).toContain(`"reason":`);
      await expectAudit({ scope: 'public_keys', status: 503, reason });
    },
  );

  it('a token that is revoked meanwhile is refused', async () => {
    const [listing, signing] = [await send(list()), await send(sign(ONE))];
    await expectHeld(listing, signing);
    authenticator.replace(tokensOf([NONE, 'operator']));
    add(1);
    keys.completeFirstLoad();
    expect(await listing.ended).toBe('');
    await expectStatuses(signing, 403);
    await expectAudit({ status: 403, reason: 'invalid_token', scope: 'public_keys' });
  });

  it('a batch waits for the keys that its caller may use, for half of its time', async () => {
    const batch = (identifiers: string[], token: string) =>
      send(post('/api/v1/eth2/sign', { identifiers, signing_request: randaoReveal() }, token));
    const results = ({ said }: Asking) =>
      (JSON.parse(said().split('\r\n\r\n')[1] ?? '') as { error?: { reason: string } }[]).map(
        ({ error }) => error?.reason ?? 'signed',
      );
    add(1);
    const forOne = await batch([ONE, TWO], FOR_ONE);
    await expectStatuses(forOne, 200);
    expect(results(forOne)).toEqual(['signed', 'denied']);
    const both = await batch([ONE, TWO], CLIENT);
    await expectHeld(both);
    add(2);
    await expectStatuses(both, 200);
    expect(results(both)).toEqual(['signed', 'signed']);
    const never = await batch([ONE, NEVER], CLIENT);
    await expectHeld(never);
    aheadMs = 14_000;
    await expectHeld(never);
    aheadMs = 15_001;
    await expectStatuses(never, 200);
    expect(results(never)).toEqual(['signed', 'starting']);
  });

  it('a client that goes away takes what is held with it', async () => {
    const body = { identifiers: [ONE, NEVER], signing_request: randaoReveal() };
    const asking = [await send(list()), await send(sign(ONE)), await send(post('/api/v1/eth2/sign', body))];
    await expectHeld(...asking);
    for (const { socket } of asking) socket.destroy();
    await expect.poll(() => waiting()).toBe(0);
    const reasons = () => audit.map(({ fields }) => [fields['status'], fields['reason']]);
    await expect.poll(reasons).toEqual(Array.from({ length: 3 }, () => [499, 'client_closed']));
  });

  it('a large envelope is held as any other message is', async () => {
    const large = `Content-Length: ${3 * 1024 * 1024}\r\nContent-Type: application/json\r\n`;
    await expectHeld(await send(head('POST', `/api/v1/eth2/sign/${ONE}`, CLIENT, large)));
  });
});

describe('where the list is expected, a refusal', () => {
  const REFUSED: readonly (readonly [ErrorReason, string, number])[] = [
    ['invalid_token', list('TEST token of nobody'), 403],
    ['malformed_credentials', list(null, 'Authorization: Digest x\r\n'), 401],
    ['denied', list(NONE), 403],
    ['peer_not_allowed', list(ELSEWHERE), 403],
    ['foreign_origin', list(CLIENT, 'Origin: https://evil.example\r\n'), 403],
    ['body_too_large', list(CLIENT, 'Content-Length: 9000000\r\n'), 413],
  ];

  it.each(REFUSED)('%s is the end of the connection', async (reason, request, status) => {
    keys.completeFirstLoad();
    expect(await (await send(request)).ended).toBe('');
    await expectAudit({ outcome: 'refused', status, reason });
  });

  it.each(['sealed', 'state_stale', 'slashing_unbound', 'shutting_down', 'receipts_unavailable'] as const)(
    '%s is the end of the connection, and an answer on every other route',
    async (reason) => {
      add(1);
      keys.completeFirstLoad();
      refusal = reason;
      expect(await (await send(list())).ended).toBe('');
      await expectStatuses(await send(sign(ONE)), 503);
      await expectAudit({ scope: 'public_keys', outcome: 'refused', status: 503, reason });
    },
  );

  it('that a sealed store throws is the end of the connection', async () => {
    keys.seal();
    expect(await (await send(list())).ended).toBe('');
  });

  it('that asks for a credential is answered: some clients send theirs only then', async () => {
    keys.completeFirstLoad();
    const asking = await send(list(null));
    await expectStatuses(asking, 401);
    expect(asking.said()).toMatch(/www-authenticate: Basic/i);
    asking.socket.write(list());
    await expectStatuses(asking, 401, 200);
  });
});

describe('places of held requests', () => {
  const asked = (accessor: string) => {
    const context = newContext(NO_ROUTE, 0, undefined);
    context.caller = { accessor, access: { allows: [], denies: [] } as never, management: false };
    return { raw: undefined as never, headers: {}, id: '', method: 'GET', params: {}, context };
  };
  const ready = { state: 'loading' as 'loading' | 'ready' };
  const held = () => heldRequests({ keys: ready, signingRefusal: () => undefined, clock: { monotonic: () => 1 } });
  const fill = (places: ReturnType<typeof held>, caller: string, count: number) => {
    let taken = 0;
    for (let each = 0; each < count; each++)
      if (
        places.hold(
          asked(caller),
          10,
          () => false,
          () => (went += 1),
        )
      )
        taken += 1;
    return taken;
  };
  let went = 0;

  it('are bounded for a caller and for all; beyond, each other caller has one; all are let go', async () => {
    [ready.state, went] = ['loading', 0];
    const places = held();
    expect(fill(places, 'one', MAX_HELD)).toBe(MAX_HELD_OF_CALLER);
    expect(fill(places, 'other', MAX_HELD)).toBe(MAX_HELD_OF_CALLER);
    expect([fill(places, 'third', 5), fill(places, 'fourth', 5), fill(places, 'one', 1)]).toEqual([1, 1, 0]);
    ready.state = 'ready';
    await expect.poll(() => went).toBe(MAX_HELD + 2);
    expect(places.size).toBe(0);
    ready.state = 'loading';
    expect(fill(places, 'one', 1)).toBe(1);
    ready.state = 'ready';
    await expect.poll(() => places.size).toBe(0);
  });

  it('are free again when the client goes away', async () => {
    [ready.state, went] = ['loading', 0];
    const places = held();
    const gone = asked('one');
    places.hold(
      gone,
      10,
      () => false,
      () => (went += 1),
    );
    gone.context.released = true;
    await expect.poll(() => places.size).toBe(0);
    expect(went).toBe(0);
  });
});
