// What every route and every `slashing` command does in each state of a signer: a signer without the right to use its
// store, one that is sealed, has lost sight of its state, still reads its keys, was raised to the present, or no longer
// owns a key. The routes are those of the OpenAPI document, so a new one has to be listed here. Real processes. TEST
// keys.

import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { type RunningSigner, runStrongroom, startSigner } from '../../rehearsal/signer.ts';
import { SLASHING_STORE } from '../../signer/chamber/binding-row.ts';
import { keyTableDefinition } from '../../signer/keys/table/definition.ts';
import { type Deployment, deploy } from '../support/deployment.ts';
import { FAULTS, type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { encryptKeystore, FULL_SCRYPT, publicKeyOf, testSecret, writeKeystore } from '../support/keys.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { attestation, call, MAINNET_ROOT, TEST_TOKEN, testKey } from '../support/requests.ts';
import { IS_WHOLE } from '../support/scale.ts';

const WAIT = { timeout: LONGEST_WAIT_MS, interval: 250 };
const PASSWORD = 'TEST password';
const KEY = testKey(0).publicKey;
const ABSENT = publicKeyOf(testSecret(9_000));
const enabled = { enabled: true };
const RECORDS = { metadata: { interchange_format_version: '5', genesis_validators_root: MAINNET_ROOT }, data: [] };
const keystores = () => ({
  keystores: [JSON.stringify(encryptKeystore(testSecret(9_001), PASSWORD))],
  passwords: [PASSWORD],
  slashing_protection: JSON.stringify(RECORDS),
});
const DEPOSIT = { withdrawal_credentials: `01${'00'.repeat(11)}${'11'.repeat(20)}`, amount: '32000000000' };

/**
 * What a route needs: `nothing`, not even credentials; the `state` of the fleet, for its credentials; the slashing
 * `record`, of which it says or changes something; `signs`: the record, and it is asked for by validator clients;
 * `shares`: as `signs`, and there is no share here.
 */
type Need = 'nothing' | 'state' | 'record' | 'signs' | 'shares' | 'list';
const ROUTES: Readonly<Record<string, readonly [Need, (() => unknown)?]>> = {
  'GET /upcheck': ['nothing'],
  'GET /healthcheck': ['nothing'],
  'GET /api/openapi.json': ['nothing'],
  'POST /api/v1/eth2/sign/{identifier}': ['signs', () => attestation({ source: target - 1, target })],
  'POST /api/v1/eth2/sign': [
    'signs',
    () => ({ identifiers: [KEY], signing_request: attestation({ source: target - 1, target }) }),
  ],
  'GET /api/v1/eth2/publicKeys': ['list'],
  'GET /api/v1/eth2/highWatermark': ['state'],
  'GET /api/v1/eth2/distributed/accounts': ['list'],
  'GET /api/v1/eth2/distributed/accounts/{identifier}': ['shares'],
  'POST /api/v1/eth2/distributed/sign/{identifier}': ['shares', () => attestation({ source: target - 1, target })],
  'POST /api/v1/eth2/distributed/sign': [
    'shares',
    () => ({ identifiers: [KEY], signing_request: attestation({ source: target - 1, target }) }),
  ],
  'GET /api/v1/receipts/head': ['state'],
  'GET /api/v1/receipts/boots': ['state'],
  'GET /api/v1/receipts/tiles/{boot}/{*}': ['state'],
  'GET /reload': ['state'],
  'POST /reload': ['state', () => ({})],
  'GET /eth/v1/keystores': ['state'],
  'POST /eth/v1/keystores': ['record', keystores],
  'DELETE /eth/v1/keystores': ['record', () => ({ pubkeys: [ABSENT] })],
  'GET /api/v1/chamber/keys': ['state'],
  'POST /api/v1/chamber/keys': ['record', () => ({ ...keystores(), storage: { persist: false } })],
  'PATCH /api/v1/chamber/keys': ['record', () => ({ keys: [{ pubkey: tableKey, status: 'inactive' }] })],
  'DELETE /api/v1/chamber/keys': ['record', () => ({ pubkeys: [ABSENT] })],
  'POST /api/v1/chamber/keys/generate-keys': ['state', () => ({ count: 1 })],
  'POST /api/v1/chamber/keys/generate': ['state', () => ({ count: 1, ...DEPOSIT })],
  'POST /api/v1/chamber/keys/backups': ['state', () => ({ pubkeys: [ABSENT] })],
  'POST /api/v1/chamber/keys/deposit-data': ['state', () => ({ pubkeys: [ABSENT], ...DEPOSIT })],
  'GET /api/v1/chamber/slashing-protection': ['record'],
  'POST /api/v1/chamber/slashing-protection': ['record', () => RECORDS],
  'GET /api/v1/chamber/status': ['state'],
  'POST /api/v1/chamber/seal': ['state'],
};
/** Credentials alone, whose changes are rows of the state table. */
const isOfTokens = (route: string): boolean => route.split(' ')[1]?.startsWith('/api/v1/auth/') === true;

let world: CustodyWorld;
let folder: string;
let target = 41;
/** In the key table of the fleet, and loaded. */
let tableKey = ABSENT;
const running: RunningSigner[] = [];
beforeAll(async () => {
  world = await startCustody();
  folder = mkdtempSync(join(tmpdir(), 'strongroom-states-'));
  mkdirSync(join(folder, 'keys'));
  writeFileSync(join(folder, 'keys/key.yaml'), `type: file-raw\nprivateKey: "${testKey(0).secret}"\n`);
});
afterAll(async () => {
  await Promise.all(running.map((signer) => signer.kill()));
  await world.close();
  rmSync(folder, { recursive: true, force: true });
});

async function started(options: Parameters<typeof startSigner>[0]): Promise<RunningSigner> {
  const signer = await startSigner(options);
  running.push(signer);
  return signer;
}

interface Asked {
  readonly signer: RunningSigner;
  readonly token: string;
}

async function askAll({ signer, token }: Asked): Promise<ReadonlyMap<string, string>> {
  const { json } = await call(`${signer.url}/api/openapi.json`, { token: null });
  const documented = Object.entries(json['paths'] as Record<string, object>).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(documented.filter((route) => ROUTES[route] === undefined && !isOfTokens(route))).toEqual([]);
  const answers = new Map<string, string>();
  for (const route of documented.toSorted((_, other) => (needOf(other) === 'list' ? -1 : 0))) {
    if (route === SEAL) continue; // asked at the end: it is the end
    const [method = '', path = ''] = route.split(' ');
    const url = signer.url + path.replace('{identifier}', KEY).replaceAll(/\{\w+\}/g, 'nobody');
    const body = ROUTES[route]?.[1]?.() ?? (method === 'GET' || method === 'DELETE' ? undefined : {});
    const asked = call(url, { method, token, ...(body === undefined ? {} : { body }) });
    const answer = await (needOf(route) === 'list' ? asked.catch(() => undefined) : asked);
    if (answer === undefined) {
      answers.set(route, 'no answer');
      continue;
    }
    // A batch says it for each key.
    const content: unknown = answer.json;
    const [first] = Array.isArray(content)
      ? (content as readonly { readonly error?: { readonly reason: string } }[])
      : [];
    const reason = first?.error?.reason ?? answer.json['reason'];
    answers.set(route, `${answer.status}${reason === undefined ? '' : ` ${String(reason)}`}`);
  }
  return answers;
}
const SEAL = 'POST /api/v1/chamber/seal';
/** Asked after the others, because it waits while keys load; refused without an answer. */
const LIST = 'GET /api/v1/eth2/publicKeys';
const STATUS = 'GET /api/v1/chamber/status';
const NO_ANSWER = /^no answer$/;
const needOf = (route: string): Need => ROUTES[route]?.[0] ?? 'state';

/** Every answer is as the state has it; `expected` is a pattern for what the route needs. */
function expectAnswers(answers: ReadonlyMap<string, string>, expected: (need: Need, route: string) => RegExp): void {
  const wrong = [...answers].filter(([route, answer]) => !expected(needOf(route), route).test(answer));
  expect(wrong).toEqual([]);
  expect(answers.size).toBeGreaterThan(10);
}
const ANY = /^/;
const SERVED = /^(?!503|500|401)/;

describe('a fleet', () => {
  let bound: Asked;
  let unbound: Asked;
  let stale: Asked;
  let proxy: FaultProxy;
  let config: string;
  let table: string;

  beforeAll(async () => {
    table = await world.createTable();
    await world.dynamodb.createTable(keyTableDefinition('keys'));
    proxy = await startFaultProxy(world.dynamodb.endpoint);
    const ceremony = world.createCeremony();
    const replica = async (name: string, env = world.environment()) => {
      const home = join(folder, name);
      mkdirSync(home);
      return started({
        folder: home,
        config: {
          ...world.configuration(table, ceremony),
          key_sources: { filesystem: { paths: [join(folder, 'keys')] }, dynamodb: { table: 'keys' } },
          anti_slashing: { backend: 'sqlite', path: join(home, 'slashing.sqlite') },
          http: { key_manager_api: enabled },
          receipts: { storage: 'state_table' },
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
        },
        env,
      });
    };
    const first = await replica('bound');
    const root = await world.rootToken(table);
    await call(`${first.url}/api/v1/auth/policies`, {
      token: root,
      body: { name: 'all', rules: [{ effect: 'allow' }] },
    });
    const made = await call(`${first.url}/api/v1/auth/tokens`, { token: root, body: { policies: ['all'] } });
    const token = String(made.json['token']);
    bound = { signer: first, token };
    const generated = await call(`${first.url}/api/v1/chamber/keys/generate-keys`, { token, body: { count: 1 } });
    tableKey = (generated.json['keys'] as readonly { readonly pubkey: string }[])[0]?.pubkey ?? '';
    unbound = { signer: await replica('unbound'), token };
    stale = { signer: await replica('stale', world.environment({ dynamodb: proxy.endpoint })), token };
    config = join(folder, 'bound', 'strongroom.yaml');
  });
  afterAll(() => proxy.close());

  async function expectCommandsRefused(
    why: RegExp,
    some: readonly Command[],
    of = config,
    env = world.environment(),
  ): Promise<void> {
    for (const args of commandsOr(some)) {
      const { code, stderr } = await runStrongroom(['slashing', ...args, '-c', of], { env });
      expect([args[0], code]).not.toEqual([args[0], 0]);
      expect([args[0], stderr]).toEqual([args[0], expect.stringMatching(why)]);
    }
  }

  /** A store beside the fleet's: what says nothing for the fleet works, and warns. */
  async function expectCommandsOfOtherStore(path: string, why: RegExp, some: readonly Command[]): Promise<void> {
    const other = join(folder, 'other.yaml');
    writeFileSync(other, readFileSync(config, 'utf8').replace(join(folder, 'bound/slashing.sqlite'), path));
    const input = JSON.stringify(RECORDS);
    for (const args of commandsOr(some)) {
      const env = world.environment();
      const { code, stdout, stderr } = await runStrongroom(['slashing', ...args, '-c', other], { env, input });
      expect([args[0], stderr]).toEqual([args[0], expect.stringMatching(why)]);
      const isRefused = args[0] === 'export' || args[0] === 'reinstate';
      expect([args[0], code]).toEqual([args[0], isRefused ? 1 : 0]);
      if (isRefused) expect([args[0], stdout]).toEqual([args[0], '']);
    }
  }

  it('unbound: whatever says or changes something of the record is refused, over every route', async () => {
    expectAnswers(await askAll(unbound), (need) =>
      need === 'nothing'
        ? ANY
        : need === 'state'
          ? SERVED
          : need === 'list'
            ? NO_ANSWER
            : /^(503|200) slashing_unbound$/,
    );
  });

  it('bound: every route is served', async () => {
    expectAnswers(await askAll(bound), () => SERVED);
  });

  it('a command with another store, or with a copy that the fleet has left behind, answers nothing for the fleet', async () => {
    const beside = join(folder, 'other.sqlite');
    await expectCommandsOfOtherStore(beside, /the fleet signs over another slashing store/, ['export', 'import']);
    const [original, copied] = [join(folder, 'bound/slashing.sqlite'), join(folder, 'copied.sqlite')];
    process.kill(bound.signer.pid, 'SIGSTOP');
    for (const suffix of ['', '-wal']) cpSync(original + suffix, copied + suffix);
    const copiedAt = await world.row(table, SLASHING_STORE);
    process.kill(bound.signer.pid, 'SIGCONT');
    await vi.waitFor(async () => {
      const row = await world.row(table, SLASHING_STORE);
      expect(row?.['incarnation']).not.toEqual(copiedAt?.['incarnation']);
    }, WAIT);
    const isCopy = /a later state of this slashing store, of which this is a copy/;
    await expectCommandsOfOtherStore(copied, isCopy, ['export', 'jump']);
  });

  it('that cannot see its state honours no credentials', async () => {
    proxy.setRule(() => FAULTS.resetBefore);
    await vi.waitFor(async () => {
      const { json } = await call(`${stale.signer.url}/api/v1/eth2/highWatermark`, { token: stale.token });
      expect(json['reason']).toBe('state_stale');
    }, WAIT);
    expectAnswers(await askAll(stale), (need, route) =>
      need === 'nothing' ? ANY : need === 'list' ? NO_ANSWER : route === STATUS ? SERVED : /^503 state_stale$/,
    );
  });

  it('and a command that cannot see the state opens no store', async () => {
    const env = world.environment({ dynamodb: proxy.endpoint });
    await expectCommandsRefused(/state table/, ['prune'], config, env);
  });

  it('whose signer runs lends its store to no command, bound or not', async () => {
    await expectCommandsRefused(/in use by another process/, ['retire']);
    await expectCommandsRefused(/in use by another process/, ['import'], join(folder, 'unbound', 'strongroom.yaml'));
  });

  it('sealed: no route says anything of the record, and no command opens it', async () => {
    const sealed = await call(`${unbound.signer.url}/api/v1/chamber/seal`, {
      token: unbound.token,
      body: { reason: 'a test' },
    });
    expect(sealed.status).toBe(200);
    for (const asked of [unbound, bound]) {
      await vi.waitFor(async () => {
        expect((await call(`${asked.signer.url}/api/v1/chamber/status`, asked)).json['reason']).toBe('auth_sealed');
      }, WAIT);
      expectAnswers(await askAll(asked), (need) =>
        need === 'nothing'
          ? ANY
          : need === 'list'
            ? NO_ANSWER
            : need === 'signs' || need === 'shares'
              ? /^503 sealed$/
              : /^401 auth_sealed$/,
      );
    }
    await bound.signer.stop();
    await expectCommandsRefused(/SEAL_OVERRIDE is there/, ['export']);
  });
});

describe('a signer alone', () => {
  const scopes = [
    'sign',
    'public_keys',
    'list_keys',
    'import_keystores',
    'delete_keys',
    'chamber_keys_list',
    'chamber_keys_import',
    'chamber_keys_patch',
    'chamber_keys_delete',
    'slashing_protection',
    'chamber_status',
    'reload',
  ];
  const deployed = () =>
    deploy(1, {
      http: { key_manager_api: enabled },
      chamber: { keys: { import: enabled, lifecycle: enabled } },
      static_auth: {
        policies: [{ name: 'full', rules: [{ effect: 'allow', scopes }] }],
        tokens: [{ secret: TEST_TOKEN, policies: ['full'] }],
      },
    });
  const deployment = deployed();
  const start = async (deployment: Deployment, waitFor: 'ready' | 'listening' = 'ready'): Promise<Asked> => {
    const signer = await deployment.start({ waitFor });
    running.push(signer);
    return { signer, token: TEST_TOKEN };
  };
  const command = async (...args: readonly string[]): Promise<string> => {
    const config = join(deployment.folder, 'strongroom.yaml');
    const { code, stdout } = await runStrongroom(['slashing', ...args, '-c', config], {
      input: JSON.stringify(RECORDS),
    });
    expect([args[0], code]).toEqual([args[0], 0]);
    return stdout;
  };
  const signing = (answers: ReadonlyMap<string, string>) =>
    [...answers].filter(([route]) => needOf(route) === 'signs').map(([, answer]) => answer);

  it('while its keys load says and changes nothing of keys', async () => {
    const slow = deployed();
    slow.config['key_sources'] = { filesystem: { paths: [join(slow.folder, 'keys')], keystore_load_concurrency: 1 } };
    for (let number = 0; number < SLOW_KEYSTORES; number++) {
      writeKeystore(join(slow.folder, 'keys'), `slow-${number}`, testSecret(9_100 + number), PASSWORD, FULL_SCRYPT);
    }
    const loading = await start(slow, 'listening');
    const answers = await askAll(loading);
    expectAnswers(answers, () => /^(?!500|401|403)/);
    for (const route of ['POST', 'DELETE'].flatMap((method) => [
      `${method} /eth/v1/keystores`,
      `${method} /api/v1/chamber/keys`,
    ])) {
      expect([route, answers.get(route)]).toEqual([route, '503 starting']);
    }
    expect(answers.get('PATCH /api/v1/chamber/keys')).toBe('503 starting');
    expect(answers.get(LIST)).toBe('200'); // when they were loaded
    for (const args of commandsOr(['jump'])) {
      const run = await runStrongroom(['slashing', ...args, '-c', join(slow.folder, 'strongroom.yaml')]);
      expect([args[0], run.code, run.stderr]).toEqual([args[0], 1, expect.stringContaining('in use by another')]);
    }
    await loading.signer.logged('ready');
    const ready = await askAll(loading);
    expectAnswers(ready, () => SERVED);
    expect(signing(ready)).toEqual(['200', '200']);
    await loading.signer.stop();
  });

  it('whose key left refuses the key, says so, and still has its record', async () => {
    const owned = await start(deployment);
    expect(signing(await askAll(owned))).toEqual(['200', '200']);
    await owned.signer.stop();
    await command('retire', KEY);
    const retired = await start(deployment);
    const answers = await askAll(retired);
    expectAnswers(answers, () => SERVED);
    expect(signing(answers)).toEqual(['412 key_retired', '200 key_retired']);
    await retired.signer.stop();
    expect(await command('status')).toContain(KEY);
    expect(await command('export')).toContain('"target_epoch":"41"');
    await command('reinstate', KEY);
  });

  it('that was raised to the present refuses all of the past, over every route, and its record says so', async () => {
    await command('jump');
    const raised = await start(deployment);
    target += 1; // what was signed before is signed again: it is the same
    const answers = await askAll(raised);
    expectAnswers(answers, () => SERVED);
    for (const answer of signing(answers)) expect(answer).toMatch(/^(412|200) (source|target)_below_low_water_mark$/);
    await raised.signer.stop();
    for (const args of commandsOr(['import'])) await command(...args);
  });
});
/** One after the other; each keeps the load busy for most of a second. */
const SLOW_KEYSTORES = 2;

const COMMANDS = {
  status: ['status'],
  export: ['export'],
  import: ['import', '-'],
  jump: ['jump'],
  prune: ['prune'],
  retire: ['retire', KEY],
  reinstate: ['reinstate', KEY],
} as const;
type Command = keyof typeof COMMANDS;

/** All of them; at the small size these: each state has some, and each command meets some states. */
function commandsOr(some: readonly Command[]): readonly (readonly string[])[] {
  return IS_WHOLE ? Object.values(COMMANDS) : some.map((command) => COMMANDS[command]);
}
