// Every route that changes keys, policies, tokens or the latch, over every service that it needs, which is away, hangs,
// answers late, or whose answer is the last that the process sees. An error has changed nothing, or its message says
// what it may have changed; the same request, repeated, finishes it, also when what was late arrives after that. The
// routes are those of the OpenAPI document, so a new one has to be listed here. Real processes. TEST keys.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { type RunningSigner, startSigner } from '../../rehearsal/signer.ts';
import { keyTableDefinition } from '../../signer/keys/table/definition.ts';
import {
  FAULTS,
  type FaultProxy,
  type FaultRule,
  type ProxiedRequest,
  startFaultProxy,
} from '../support/fault-proxy.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../support/keys.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { type Answer, attestation, call, MAINNET_ROOT, randaoReveal, signCall } from '../support/requests.ts';
import { someOf } from '../support/scale.ts';

const POLL = { timeout: LONGEST_WAIT_MS, interval: 250 };
const PASSWORD = 'TEST password';
const KEYS_TABLE = 'keys-1';
const enabled = { enabled: true };
const WITHDRAWAL = { withdrawal_credentials: `01${'00'.repeat(11)}${'11'.repeat(20)}` };
const SAYS_WHAT = /nothing was (changed|imported|done)|no key was imported|repeat|look at|list the keys/;

type Service = 'state' | 'keys' | 'slashing';
/** `killed`: as soon as the service has the step, before the process hears of it. */
type Fault = 'is away' | 'hangs' | 'answers late' | 'killed';
const KINDS: readonly Fault[] = ['is away', 'hangs', 'answers late', 'killed'];
/** From which of its calls to the service on the fault lasts. */
const STEPS = [1, 2, 3, 4, 5, 6, 8];

let world: CustodyWorld;
let folder: string;
let table: string;
let proxy: FaultProxy;
let signer: RunningSigner;
let neighbour: RunningSigner;
let root: string;
let token: string;
let start: (name: string, env: Readonly<Record<string, string>>) => Promise<RunningSigner>;
let number = 8_000;

beforeAll(async () => {
  world = await startCustody();
  folder = mkdtempSync(join(tmpdir(), 'strongroom-cut-'));
  table = await world.createTable();
  await world.dynamodb.createTable(keyTableDefinition(KEYS_TABLE));
  proxy = await startFaultProxy(world.dynamodb.endpoint);
  const ceremony = world.createCeremony();
  start = (name, env) => {
    const home = join(folder, name);
    mkdirSync(home, { recursive: true });
    const config = {
      ...world.configuration(table, ceremony),
      key_sources: { dynamodb: { table: KEYS_TABLE, refresh_interval_seconds: 1 } },
      http: { key_manager_api: enabled },
      chamber: {
        keys: {
          generate: enabled,
          generate_keys: enabled,
          deposit_data: enabled,
          import: enabled,
          lifecycle: enabled,
          backup: { recipients: [world.recipient] },
        },
      },
    };
    return startSigner({ folder: home, config, env });
  };
  neighbour = await start('neighbour', world.environment());
  signer = await start('signer', world.environment({ dynamodb: proxy.endpoint }));
  root = await world.rootToken(table);
  const auth = `${neighbour.url}/api/v1/auth`;
  await call(`${auth}/policies`, { token: root, body: { name: 'all', rules: [{ effect: 'allow' }] } });
  token = String((await call(`${auth}/tokens`, { token: root, body: { policies: ['all'] } })).json['token']);
  await vi.waitFor(expectReady, POLL);
});
afterAll(async () => {
  await Promise.all([signer.kill(), neighbour.kill()]);
  await Promise.all([proxy.close(), world.close()]);
  rmSync(folder, { recursive: true, force: true });
});

function ask(method: string, path: string, body?: object, as = token, of = signer): Promise<Answer> {
  return call(of.url + path, { method, token: as, ...(body === undefined ? {} : { body }) });
}

async function expectReady(): Promise<void> {
  expect((await ask('GET', '/api/v1/chamber/keys')).status).toBe(200);
}

/** One change that is to come about. */
interface Change {
  /** What its calls to the services name. */
  readonly names: RegExp;
  request(): Promise<Answer>;
  /** Throws while it is not there. @param answers of the first request, when it got one, and of the last */
  confirm(answers: readonly Answer[]): Promise<void>;
}

interface Route {
  readonly over: readonly Service[];
  begin(): Promise<Change>;
}

interface NewKey {
  readonly publicKey: string;
  readonly import: object;
}

function newKey(): NewKey {
  const secret = testSecret(number++);
  const keystores = [JSON.stringify(encryptKeystore(secret, PASSWORD))];
  return { publicKey: publicKeyOf(secret), import: { keystores, passwords: [PASSWORD] } };
}

const CHAMBER = '/api/v1/chamber/keys';
const KEYSTORES = '/eth/v1/keystores';
const first = (answer: Answer | undefined): string =>
  (answer?.json['data'] as readonly { readonly status: string }[] | undefined)?.[0]?.status ?? '';

async function reasonOf(answer: Promise<Answer>): Promise<string> {
  const { status, json } = await answer;
  return status === 200 ? 'signed' : String(json['reason']);
}
const randao = (of: RunningSigner, publicKey: string) =>
  reasonOf(signCall(of.url, publicKey, randaoReveal(), { token }));
/** Its store may have jumped: that it is no copy of a key that left is what counts. */
const vote = (of: RunningSigner, publicKey: string) =>
  reasonOf(signCall(of.url, publicKey, attestation({ source: 10, target: 11 }), { token }));
const HAS_LEFT = /^(unknown_key|key_retired)$/;

async function signs(publicKey: string): Promise<void> {
  expect(await randao(signer, publicKey)).toBe('signed');
  expect(await vote(signer, publicKey)).not.toMatch(HAS_LEFT);
  expect(await vote(signer, publicKey)).not.toMatch(/slashing_/);
}

async function signsNowhere(publicKey: string): Promise<void> {
  for (const of of [signer, neighbour]) {
    expect(await vote(of, publicKey)).toMatch(HAS_LEFT);
    expect(await randao(of, publicKey)).toMatch(HAS_LEFT);
  }
}

async function imported(persist: boolean): Promise<NewKey> {
  const key = newKey();
  await ask('POST', CHAMBER, { ...key.import, storage: { persist } });
  await expect.poll(() => vote(signer, key.publicKey), POLL).not.toMatch(/slashing_|key/);
  return key;
}

function importing(path: string, storage: object): () => Promise<Change> {
  return async () => {
    const key = newKey();
    // A key that was here and left: what is taken in is its next tenure.
    await ask('POST', path, { ...key.import, ...storage });
    await expect.poll(() => vote(signer, key.publicKey), POLL).not.toMatch(/slashing_|key/);
    await ask('DELETE', path, { pubkeys: [key.publicKey] });
    return {
      names: new RegExp(key.publicKey),
      request: () => ask('POST', path, { ...key.import, ...storage }),
      async confirm(answers) {
        expect(first(answers.at(-1))).toMatch(/^(imported|duplicate)$/);
        await signs(key.publicKey);
      },
    };
  };
}

function deleting(path: string, persist: boolean): () => Promise<Change> {
  return async () => {
    const { publicKey } = await imported(persist);
    const body = { pubkeys: [publicKey] };
    return {
      names: new RegExp(publicKey),
      request: () => ask('DELETE', path, body),
      async confirm(answers) {
        expect(first(answers.at(-1))).toMatch(/^(deleted|not_active|not_found)$/);
        // Every answer that says so has the records.
        const said = answers.filter((answer) => /^(deleted|not_active|not_found)$/.test(first(answer)));
        for (const { json } of said) expect(JSON.stringify(json['slashing_protection'])).toContain(publicKey);
        await signsNowhere(publicKey);
        const { json } = await ask('GET', `${CHAMBER}?limit=1000`);
        expect(JSON.stringify(json['keys'])).not.toContain(publicKey);
      },
    };
  };
}

function patching(status: 'active' | 'inactive'): () => Promise<Change> {
  return async () => {
    const { publicKey } = await imported(true);
    const to = (wanted: string) => ask('PATCH', CHAMBER, { keys: [{ pubkey: publicKey, status: wanted }] });
    if (status === 'active') await to('inactive');
    return {
      names: new RegExp(publicKey),
      request: () => to(status),
      async confirm(answers) {
        expect(first(answers.at(-1))).toMatch(/^(updated|unchanged)$/);
        await (status === 'active' ? signs(publicKey) : signsNowhere(publicKey));
      },
    };
  };
}

function generating(path: string, terms: object): () => Promise<Change> {
  return async () => ({
    names: /^/,
    request: () => ask('POST', path, { count: 1, ...terms }),
    async confirm(answers) {
      const made = answers.flatMap(({ json }) => (json['keys'] ?? []) as readonly { readonly pubkey: string }[]);
      expect(answers.at(-1)?.status).toBe(201);
      for (const { pubkey } of made) await signs(pubkey);
    },
  });
}

const POLICIES = '/api/v1/auth/policies';
const TOKENS = '/api/v1/auth/tokens';
const rulesFor = (scope: string) => [{ effect: 'allow', scopes: [scope] }];

async function newPolicy(): Promise<string> {
  const name = `policy-${number++}`;
  await ask('POST', POLICIES, { name, rules: rulesFor('sign') }, root);
  return name;
}

/** Of this signer, and of the one beside it. */
async function expectPolicy(name: string, rules: object | undefined): Promise<void> {
  for (const of of [signer, neighbour]) {
    const { status, json } = await ask('GET', `${POLICIES}/${name}`, undefined, root, of);
    expect([status, json['rules']]).toEqual(rules === undefined ? [404, undefined] : [200, rules]);
  }
}

async function newToken(): Promise<{ readonly token: string; readonly accessor: string }> {
  const { json } = await ask('POST', TOKENS, { policies: ['all'], ttl_seconds: 3_600 }, root);
  return { token: String(json['token']), accessor: String(json['accessor']) };
}

async function expectToken(of: string, status: number): Promise<void> {
  for (const asked of [signer, neighbour]) {
    expect((await ask('GET', `${TOKENS}/lookup-self`, undefined, of, asked)).status).toBe(status);
  }
}

function expectLast(answers: readonly Answer[], ...statuses: readonly number[]): void {
  expect(statuses).toContain(answers.at(-1)?.status);
}

const ofAuth = (begin: () => Promise<Omit<Change, 'names'>>): Route => ({
  over: ['state'],
  begin: async () => ({
    names: /"AUTH_REVISION".*"(POLICY|TOKEN)#|"(POLICY|TOKEN)#.*"AUTH_REVISION"/s,
    ...(await begin()),
  }),
});

const CHANGES: Readonly<Record<string, Route>> = {
  'POST /eth/v1/keystores': { over: ['slashing', 'keys'], begin: importing(KEYSTORES, {}) },
  'DELETE /eth/v1/keystores': { over: ['slashing', 'keys'], begin: deleting(KEYSTORES, false) },
  'POST /api/v1/chamber/keys': {
    over: ['slashing', 'keys'],
    begin: importing(CHAMBER, { storage: { persist: true } }),
  },
  'PATCH /api/v1/chamber/keys': { over: ['slashing', 'keys'], begin: patching('inactive') },
  'PATCH /api/v1/chamber/keys (active)': { over: ['slashing', 'keys'], begin: patching('active') },
  'DELETE /api/v1/chamber/keys': { over: ['slashing', 'keys'], begin: deleting(CHAMBER, true) },
  'DELETE /api/v1/chamber/keys (memory)': { over: ['slashing', 'keys'], begin: deleting(CHAMBER, false) },
  'POST /api/v1/chamber/keys/generate': { over: ['keys'], begin: generating(`${CHAMBER}/generate`, WITHDRAWAL) },
  'POST /api/v1/chamber/keys/generate-keys': { over: ['keys'], begin: generating(`${CHAMBER}/generate-keys`, {}) },
  'POST /api/v1/chamber/keys/deposit-data': {
    over: ['keys'],
    async begin() {
      const { publicKey } = await imported(true);
      return {
        names: new RegExp(publicKey),
        request: () => ask('POST', `${CHAMBER}/deposit-data`, { pubkeys: [publicKey], ...WITHDRAWAL }),
        async confirm(answers) {
          expect(first(answers.at(-1))).toMatch(/^(created|existing)$/);
          const { json } = await ask('GET', `${CHAMBER}?limit=1000`);
          const listed = json['keys'] as readonly { readonly pubkey: string; readonly has_deposit_data: boolean }[];
          expect(listed.find(({ pubkey }) => pubkey === publicKey)?.has_deposit_data).toBe(true);
        },
      };
    },
  },
  'POST /api/v1/chamber/slashing-protection': {
    over: ['slashing'],
    async begin() {
      const publicKey = publicKeyOf(testSecret(number++));
      const metadata = { interchange_format_version: '5', genesis_validators_root: MAINNET_ROOT };
      const blocks = [{ slot: '77', signing_root: `0x${'ab'.repeat(32)}` }];
      const data = [{ pubkey: publicKey, signed_blocks: blocks, signed_attestations: [] }];
      return {
        names: new RegExp(publicKey),
        request: () => ask('POST', '/api/v1/chamber/slashing-protection', { metadata, data }),
        async confirm(answers) {
          expect(answers.at(-1)?.status).toBe(200);
          const { text } = await ask('GET', `/api/v1/chamber/slashing-protection?pubkeys=${publicKey}`);
          expect(text).toContain('"slot":"77"');
        },
      };
    },
  },
  'POST /api/v1/auth/policies': ofAuth(async () => {
    const name = `policy-${number++}`;
    return {
      request: () => ask('POST', POLICIES, { name, rules: rulesFor('sign') }, root),
      async confirm(answers) {
        expectLast(answers, 201, 409);
        await expectPolicy(name, rulesFor('sign'));
      },
    };
  }),
  'PUT /api/v1/auth/policies/{name}': ofAuth(async () => {
    const name = await newPolicy();
    return {
      request: () => ask('PUT', `${POLICIES}/${name}`, { rules: rulesFor('public_keys') }, root),
      async confirm(answers) {
        expectLast(answers, 200);
        await expectPolicy(name, rulesFor('public_keys'));
      },
    };
  }),
  'DELETE /api/v1/auth/policies/{name}': ofAuth(async () => {
    const name = await newPolicy();
    return {
      request: () => ask('DELETE', `${POLICIES}/${name}`, undefined, root),
      async confirm(answers) {
        expectLast(answers, 204, 404);
        await expectPolicy(name, undefined);
      },
    };
  }),
  'POST /api/v1/auth/tokens': ofAuth(async () => ({
    request: () => ask('POST', TOKENS, { policies: ['all'] }, root),
    async confirm(answers) {
      expectLast(answers, 201);
      await expectToken(String(answers.at(-1)?.json['token']), 200);
    },
  })),
  'POST /api/v1/auth/tokens/renew-self': ofAuth(async () => {
    const own = await newToken();
    return {
      request: () => ask('POST', `${TOKENS}/renew-self`, {}, own.token),
      async confirm(answers) {
        expectLast(answers, 200);
      },
    };
  }),
  'DELETE /api/v1/auth/tokens/{accessor}': ofAuth(async () => {
    const own = await newToken();
    return {
      request: () => ask('DELETE', `${TOKENS}/${own.accessor}`, undefined, root),
      async confirm(answers) {
        expectLast(answers, 204, 404);
        await expectToken(own.token, 403);
      },
    };
  }),
};
/** Asked at the end: it is the end. */
const SEAL = 'POST /api/v1/chamber/seal';
const CHANGES_NOTHING = [
  'POST /api/v1/eth2/sign/{identifier}',
  'POST /api/v1/eth2/sign',
  'POST /api/v1/eth2/distributed/sign/{identifier}',
  'POST /api/v1/eth2/distributed/sign',
  'POST /reload',
  'POST /api/v1/chamber/keys/backups',
];

it('has every route that is not a GET', async () => {
  const { json } = await call(`${signer.url}/api/openapi.json`, { token: null });
  const documented = Object.entries(json['paths'] as Record<string, object>).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const known = new Set([...Object.keys(CHANGES), ...CHANGES_NOTHING, SEAL]);
  expect(documented.filter((route) => !route.startsWith('GET ') && !known.has(route))).toEqual([]);
});

const tableOf = (service: Service): string =>
  service === 'keys' ? KEYS_TABLE : service === 'slashing' ? `${table}-slashing` : table;

interface Armed {
  readonly isKilled: () => boolean;
  /** What was held comes to the service, long after its caller has given up. */
  letGo(): void;
}

function arm(fault: Fault, service: Service, { names }: Pick<Change, 'names'>, from: number): Armed {
  const late = Promise.withResolvers<void>();
  const isOfChange = ({ body }: ProxiedRequest): boolean => body.includes(`"${tableOf(service)}"`) && names.test(body);
  let calls = 0;
  let isKilled = false;
  const rule: FaultRule = async (request) => {
    if (!isOfChange(request)) return undefined;
    calls += 1;
    if (calls < from) return undefined;
    switch (fault) {
      case 'is away':
        return FAULTS.resetBefore;
      case 'hangs':
        return FAULTS.hang;
      case 'answers late':
        await late.promise;
        return undefined;
      case 'killed':
        if (calls === from) return FAULTS.resetAfter;
        isKilled = true;
        process.kill(signer.pid, 'SIGKILL');
        return FAULTS.resetBefore;
    }
  };
  proxy.setRule(rule);
  return { isKilled: () => isKilled, letGo: late.resolve };
}

/** An error says what may have changed; so does each key of an answer. */
function expectExplained(answer: Answer): void {
  const { status, json } = answer;
  if (status >= 500) expect([status, json['message']]).toEqual([503, expect.stringMatching(SAYS_WHAT)]);
  const keys = (json['data'] ?? []) as readonly { readonly status: string; readonly message?: string }[];
  for (const key of keys) {
    if (key.status === 'error') expect(key.message).toMatch(/repeat|make it active|nothing was imported/);
  }
}

async function expectFinished(change: Change, fault: Fault, service: Service, from: number): Promise<void> {
  const armed = arm(fault, service, change, from);
  const answers: Answer[] = [];
  const answer = await change.request().catch(() => undefined);
  proxy.setRule(undefined);
  if (answer !== undefined) {
    expectExplained(answer);
    answers.push(answer);
  }
  if (armed.isKilled()) {
    await signer.kill();
    signer = await start('signer', world.environment({ dynamodb: proxy.endpoint }));
  }
  const repeated = async (): Promise<string> => {
    const again = await change.request();
    answers.push(again);
    // A signer that starts again, and a change that another request is in the way of, are asked again.
    return again.status === 503 || /error/.test(first(again)) ? 'asked again' : 'answered';
  };
  await expect.poll(repeated, POLL).toBe('answered');
  const isThere = async (): Promise<string> => change.confirm(answers).then(() => 'there', String);
  await expect.poll(isThere, POLL).toBe('there');
  armed.letGo();
  // Through the same proxy, behind what was late.
  for (let looks = 0; looks < 3; looks++) await ask('GET', `${CHAMBER}?limit=1`);
  await expect.poll(isThere, POLL).toBe('there');
}

interface Case {
  readonly route: string;
  readonly service: Service;
  readonly fault: Fault;
  readonly from: number;
}

const CASES: readonly Case[] = Object.entries(CHANGES).flatMap(([route, { over }]) =>
  over.flatMap((service) => KINDS.flatMap((fault) => STEPS.map((from) => ({ route, service, fault, from })))),
);

describe('a change whose service fails', () => {
  it.each(someOf(CASES, 30, 90))(
    '$route, $service $fault from call $from on',
    async ({ route, service, fault, from }) => {
      const change = await CHANGES[route]?.begin();
      if (change === undefined) throw new Error('a case is of a route');
      await expectFinished(change, fault, service, from);
    },
  );
});

it.each(someOf(KINDS, 1))('a seal whose table %s says that it may be there, and repeated it is', async (fault) => {
  const armed = arm(fault, 'state', { names: /"Put".*SEAL_OVERRIDE/s }, 1);
  const seal = () => ask('POST', '/api/v1/chamber/seal', { reason: 'a test' }, root);
  const answer = await seal().catch(() => undefined);
  if (answer !== undefined) expectExplained(answer);
  proxy.setRule(undefined);
  if (armed.isKilled()) {
    await signer.kill();
    signer = await start('signer', world.environment({ dynamodb: proxy.endpoint }));
  }
  // Sealed, it knows no credential.
  await expect.poll(async () => (await seal()).status, POLL).toBe(401);
  for (const of of [signer, neighbour]) {
    await expect
      .poll(async () => (await call(`${of.url}/healthcheck`, { token: null })).text, POLL)
      .toContain('sealed');
  }
  armed.letGo();
});
