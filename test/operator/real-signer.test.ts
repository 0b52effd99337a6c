// The operator's day on the real signer, over TLS, with custody on stand-ins: from the root token to a sealed chamber,
// each step by the CLI alone.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { type RunningSigner, startSigner } from '../../rehearsal/signer.ts';
import type { CreatedToken, TokenRecord } from '../../signer/api/auth.ts';
import type { ChamberStatus } from '../../signer/api/chamber.ts';
import { makeCertificate } from '../support/certificates.ts';
import { deploy } from '../support/deployment.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { attestation, MAINNET_ROOT, testKey } from '../support/requests.ts';
import { someOf } from '../support/scale.ts';
import { runShell } from './transcript.ts';

const WAIT = { timeout: LONGEST_WAIT_MS, interval: 500 };

const KEY = testKey(0).publicKey;

let folder: string;
let custody: CustodyWorld;
let signer: RunningSigner;
let rootToken: string;
let table: string;
let start: () => Promise<RunningSigner>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-operator-'));
  const { cert, key } = makeCertificate(folder, 'signer');
  custody = await startCustody();
  table = await custody.createTable();
  const { folder: deployment, config } = deploy(2);
  const { static_auth: _, ...stateful } = config;
  const configuration = {
    ...stateful,
    ...custody.configuration(table, custody.createCeremony({ keys: 3, threshold: 2 })),
    tls: { mode: 'file', listen_address: '127.0.0.1', listen_port: 0, file: { cert_path: cert, key_path: key } },
  };
  start = () => startSigner({ folder: deployment, env: custody.environment(), config: configuration });
  signer = await start();
  rootToken = await custody.rootToken(table);
});

afterAll(async () => {
  await signer.stop();
  await custody.close();
  rmSync(folder, { recursive: true });
});

function operator(args: string, token = rootToken, more: Record<string, string> = {}) {
  const env = {
    ...more,
    SVC_OPERATOR_SIGNER_URL: signer.tlsUrl ?? '',
    SVC_OPERATOR_TLS_CA: 'signer.crt',
    SVC_OPERATOR_TOKEN: token,
  };
  return runShell(`strongroom operator ${args}`, { folder, env });
}

async function operatorJson<T>(args: string, token?: string): Promise<T> {
  const { code, stdout, stderr } = await operator(`${args} --json`, token);
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout) as T;
}

function sign(token: string): Promise<Response> {
  return fetch(`${signer.url}/api/v1/eth2/sign/${KEY}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify(attestation()),
  });
}

describe('from the root token to a sealed chamber', () => {
  let management: CreatedToken;
  let client: CreatedToken;
  let records: CreatedToken;

  it('the root token makes a management token for daily work', async () => {
    management = await operatorJson('auth token create --management --ttl 1h --description daily');
    expect(management).toMatchObject({ kind: 'management', root: false, description: 'daily' });
  });

  it('policies are created, listed, shown and replaced', async () => {
    const rules = JSON.stringify([{ effect: 'allow', scopes: ['sign', 'public_keys'], keys: [KEY] }]);
    writeFileSync(join(folder, 'rules.json'), rules);
    const create = await operator('auth policy create --name validator-client --rules @rules.json', management.token);
    expect(create).toMatchObject({ code: 0, stderr: '' });
    expect((await operator('auth policy create --name validator-client --rules @rules.json')).code).toBe(2);
    const slashing = `'[{"effect":"allow","scopes":["slashing_protection"]}]'`;
    expect((await operator(`auth policy create --name records --rules ${slashing}`)).code).toBe(0);
    expect((await operator(`auth policy update --name records --rules ${slashing} --yes`)).code).toBe(0);
    const { policies } = await operatorJson<{ policies: { name: string }[] }>('auth policy list');
    expect(policies.map(({ name }) => name)).toEqual(['records', 'validator-client']);
    const shown = await operator('auth policy get --name validator-client');
    expect(shown.stdout).toContain(`1 key:\n${KEY}\n`);
  });

  it('a client token signs what its policy allows, and administers nothing', async () => {
    client = await operatorJson('auth token create --policies validator-client --bound-cidrs 127.0.0.0/8');
    records = await operatorJson('auth token create --policies records');
    expect((await sign(client.token)).status).toBe(200);
    const denied = await operator('auth token list', client.token);
    expect(denied.code).toBe(4);
    expect(denied.stderr).toContain('refused: denied: ');
    const unsafe = await operator('auth token create --policies validator-client --bound-cidrs 0.0.0.0/0');
    expect(unsafe.code).toBe(2);
    expect(unsafe.stderr).toContain('refused: invalid_token_request: ');
  });

  it('tokens are listed and looked up without their secrets', async () => {
    const { tokens } = await operatorJson<{ tokens: TokenRecord[] }>('auth token list');
    expect(tokens.map(({ kind, root }) => `${kind} ${root}`).sort()).toEqual(
      ['client false', 'client false', 'management false', 'management true'].sort(),
    );
    const looked = await operator(`auth token lookup --accessor ${client.accessor}`);
    expect(looked.stdout).toContain('validator-client');
    expect(looked.stdout).not.toContain(client.token);
  });

  it('a bound policy is not deleted; a revoked token is of no use', async () => {
    expect((await operator('auth policy delete --name validator-client --yes')).stderr).toContain('policy_in_use');
    expect(await operator(`auth token revoke --accessor ${client.accessor} --yes`)).toMatchObject({
      code: 0,
      stdout: '',
    });
    expect((await sign(client.token)).status).toBe(403);
    expect(await operator('auth policy delete --name validator-client --yes')).toMatchObject({ code: 0, stdout: '' });
  });

  it('the status tells state, custody, keys and slashing protection', async () => {
    const status = await operatorJson<ChamberStatus>('status');
    expect(status).toMatchObject({
      state: 'Unsealed',
      custody: { generation: 1, threshold: 2, keys_reachable: 3 },
      latch: null,
      network: 'mainnet',
      slashing: { backend: 'dynamodb', status: 'up' },
    });
    const { stdout } = await operator('status', management.token);
    expect(stdout).toMatch(/^state +Unsealed$/m);
    expect(stdout).toMatch(/^filesystem +active +2$/m);
  });

  it('slashing protection records go out and in; a broken file is refused with the place', async () => {
    expect(await operator('slashing export --output records.json', records.token)).toMatchObject({
      code: 0,
      stdout: '',
    });
    const exported = JSON.parse(readFileSync(join(folder, 'records.json'), 'utf8'));
    expect(exported.metadata.genesis_validators_root).toBe(MAINNET_ROOT);
    expect(exported.data).toMatchObject([{ pubkey: KEY, signed_attestations: [{ target_epoch: '11' }] }]);
    const imported = await operatorJson<object>('slashing import records.json', records.token);
    expect(imported).toEqual({
      validators: 1,
      blocks: 0,
      attestations: 1,
      already_present: 1,
      conflicts: 0,
      conflicting: [],
    });
    const none = await operator(`slashing export --pubkeys ${testKey(1).publicKey}`, records.token);
    expect(JSON.parse(none.stdout).data).toEqual([]);
    writeFileSync(join(folder, 'broken.json'), JSON.stringify({ ...exported, data: [{ pubkey: '0x12' }] }));
    const broken = await operator('slashing import broken.json', records.token);
    expect(broken.code).toBe(2);
    expect(broken.stderr).toMatch(/refused: malformed_body: .*nothing was imported: .*data\[0\]/);
  });

  it('a large file that is refused at its start is refused by name, not by a broken connection', async () => {
    const entries = Array.from({ length: 400_000 }, (_, at) => ({
      source_epoch: String(at),
      target_epoch: String(at + 1),
    }));
    const data = [{ pubkey: 'no key' }, { pubkey: KEY, signed_blocks: [], signed_attestations: entries }];
    const metadata = { interchange_format_version: '5', genesis_validators_root: MAINNET_ROOT };
    writeFileSync(join(folder, 'large.json'), JSON.stringify({ metadata, data }));
    for (const [token, reason, exitCode] of [
      ['sr_client_unknown_to_everyone', 'invalid_token', 4],
      [rootToken, 'denied', 4],
      [records.token, 'malformed_body', 2],
    ] as const) {
      const { code, stderr } = await operator('slashing import large.json', token);
      expect(stderr).toContain(`refused: ${reason}: `);
      expect(code).toBe(exitCode);
    }
  });

  it('seal: without a terminal nothing is asked; then every door is shut, and the exit code says so', async () => {
    const sealed = await operator('seal --reason "the end of the test"', management.token);
    expect(sealed.code).toBe(0);
    expect(sealed.stdout).toMatch(/^reason +the end of the test$/m);
    for (const command of ['auth token list', 'seal --yes']) {
      const { code, stderr } = await operator(command);
      expect(stderr).toContain('refused: auth_sealed: ');
      expect(code).toBe(3);
    }
  });

  it('the status of a sealed signer says since when, and where it stands by whom and why, with exit code 3', async () => {
    const { code, stdout, stderr } = await operator('status', management.token);
    expect(code).toBe(3);
    expect(stdout).toMatch(/^state +Sealed\nsealed at +\d{4}-.*Z\nsealed by +see the latch /m);
    expect(stdout).not.toContain('the end of the test');
    expect(stdout).toMatch(/^anti_slashing +DOWN: the signer is sealed and signs over no store$/m);
    expect(stderr).toContain('the signer is sealed: it signs nothing and knows no token');
    const json = await operator('status --json', management.token);
    expect(JSON.parse(json.stdout)).toMatchObject({
      state: 'Sealed',
      latch: { sealed_at: expect.stringMatching(/^\d{4}-.*Z$/) },
    });
    expect(json.code).toBe(3);
  });

  it('doctor says that it is sealed, and recover what to do', async () => {
    const { code, stdout } = await operator('doctor');
    expect(code).toBe(3);
    expect(stdout).toMatch(/^health +FAIL +sealed at \d{4}-.*Z$/m);
    expect(stdout).toMatch(/→ `strongroom operator recover` says what recovery takes/);
    const printed = await operator(`recover --table ${table}`);
    expect(printed.code).toBe(0);
    expect(printed.stdout).toMatch(/^sealed: somebody sealed the fleet/);
    expect(printed.stdout).toContain(`strongroom operator recover --table ${table} --yes`);
    expect(printed.stdout).toContain('auth token revoke --accessor ACCESSOR\n');
    expect(await custody.row(table, 'SEAL_OVERRIDE')).toBeDefined();
  });

  it('recover --yes deletes the latch of this signer and no other; restarted, it signs again', async () => {
    const env = custody.environment();
    expect((await operator('recover --yes')).stderr).toContain('--yes needs --table');
    const other = await custody.createTable();
    await custody.putRow(other, { pk: { S: 'SEAL_OVERRIDE' }, reason: { S: 'of others' } });
    const strange = await operator(`recover --table ${other} --yes`, rootToken, env);
    expect(strange.code).toBe(1);
    expect(strange.stderr).toContain('is not the one that the signer is sealed by: nothing was deleted');
    expect(await custody.row(other, 'SEAL_OVERRIDE')).toBeDefined();
    expect((await operator('recover --table nowhere --yes', rootToken, env)).stderr).toContain(
      'ResourceNotFoundException',
    );

    const { code, stdout, stderr } = await operator(`recover --table ${table} --yes --json`, rootToken, env);
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('now restart every replica') });
    expect(JSON.parse(stdout)).toMatchObject({ healthy: false, removed_latch: { reason: 'the end of the test' } });
    expect(await custody.row(table, 'SEAL_OVERRIDE')).toBeUndefined();
    expect((await operator(`recover --table ${table} --yes`, rootToken, env)).stderr).toContain(
      'there is no SEAL_OVERRIDE',
    );

    await signer.stop();
    const away = await operator('recover');
    expect(away.stdout).toMatch(/^unreachable: no answer from .*\n/);
    signer = await start();
    expect((await operatorJson<ChamberStatus>('status')).state).toBe('Unsealed');
    // A signer that was sealed did not end in order: the next one waits until no other can be signing, and jumps.
    await vi.waitUntil(async () => (await fetch(`${signer.url}/healthcheck`)).ok, WAIT);
    await vi.waitFor(async () => {
      expect((await operator('recover')).stdout).toBe('nothing to recover: every check of the signer is UP\n');
    }, WAIT);
    expect((await operator(`recover --table ${table} --yes`, rootToken, env)).stderr).toContain(
      'the signer is not sealed',
    );
  });
});

describe('doctor', () => {
  const IN_THE_WAY = [
    ['--profile nobody', 1, 'settings', 'there is no profile nobody'],
    ['--token @missing', 1, 'token', 'cannot be read (ENOENT)'],
    ['--tls-ca stranger.crt', 2, 'connection', 'certificate'],
    ['--tls-ca nowhere.crt', 1, 'settings', 'nowhere.crt'],
    ['--signer-url https://nowhere.invalid:1', 2, 'connection', 'nowhere.invalid'],
    ['--signer-url https://127.0.0.1:1', 2, 'connection', 'the connection is refused'],
  ] as const;

  it('of a signer that is well says so, one line a check, and what the token may do', async () => {
    const { code, stdout } = await operator('doctor');
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 2).join(' '))).toEqual(
      expect.arrayContaining(['settings OK', 'upcheck OK', 'health OK', 'status OK', 'versions OK']),
    );
    expect(stdout).toMatch(/^connection +(?:OK|WARN) +TLSv1\.3; its certificate is trusted, until \d{4}-/m);
    expect(stdout).toMatch(/^token holder +WARN +acc_[0-9a-f]{32}, management \(root\)/m);
    expect(stdout).toMatch(
      /^public keys +SKIPPED +this token has no scope public_keys, which is right for an operator$/m,
    );
    expect(code).toBe(0);
  });

  it('names what is in the way, and ends with its exit code', async () => {
    const at = async (args: string, token?: string) => {
      const { code, stdout } = await operator(`doctor --json ${args}`, token);
      const { checks } = JSON.parse(stdout) as { checks: { check: string; status: string; detail: string }[] };
      const { check, detail } = checks.find(({ status }) => status === 'fail') ?? { check: '', detail: '' };
      return [code, check, detail];
    };
    makeCertificate(folder, 'stranger');
    for (const [args, exitCode, check, detail] of someOf(IN_THE_WAY, 3)) {
      expect(await at(args)).toEqual([exitCode, check, expect.stringContaining(detail)]);
    }
    const unknown = await at('', 'sr_mgmt_unknown_to_everyone');
    expect(unknown).toEqual([4, 'token holder', expect.stringContaining('invalid_token')]);
  });

  it('asks nothing more of a token that the signer does not know', async () => {
    const { stdout } = await operator('doctor', 'sr_mgmt_unknown_to_everyone');
    expect(stdout).toMatch(/^token holder +FAIL/m);
    expect(stdout).not.toMatch(/^(?:status|public keys|versions) /m);
  });
});
