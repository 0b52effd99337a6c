// The log of receipts of real processes with a folder: what it has of each decision, what it says after an end in
// order, a kill and a restart, its routes, and a signer that cannot keep it. TEST keys.

import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { callerDigest, type ReceiptEntry } from '../../common/receipts/entry.ts';
import { bootOf } from '../../common/receipts/identity.ts';
import { decodeEntry } from '../../common/receipts/read-entry.ts';
import { isSignedBy, readIdentity } from '../../common/receipts/read-identity.ts';
import { leafHash } from '../../common/receipts/tree.ts';
import { WHOLE_LOGS } from '../../common/receipts/verify.ts';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { receiptsFolder } from '../../service/receipts-folder.ts';
import { faultsOf, headOf, keptBoots } from '../receipts/kept.ts';
import { makeLog, testBoot, writeLog } from '../receipts/logs.ts';
import { proveInclusion, provesInclusion } from '../receipts/proofs.ts';
import { type Deployment, deploy } from '../support/deployment.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { attestation, batchCall, call, rootOf, signCall, TEST_TOKEN } from '../support/requests.ts';

const WAIT = { timeout: LONGEST_WAIT_MS, interval: 50 };
const AUDITOR = 'sr_client_TEST_TOKEN_of_an_auditor_of_receipts_0002';
const SIGNER = 'sr_client_TEST_TOKEN_that_may_sign_votes_only_0003';
const POLICIES = [
  { name: 'full', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'] }] },
  { name: 'votes', rules: [{ effect: 'allow', scopes: ['sign'], operations: ['ATTESTATION'] }] },
  { name: 'auditor', rules: [{ effect: 'allow', scopes: ['receipts', 'chamber_status'] }] },
];
const TOKENS = [
  { name: 'client', secret: TEST_TOKEN, policies: ['full'] },
  { name: 'votes', secret: SIGNER, policies: ['votes'] },
  { name: 'auditor', secret: AUDITOR, policies: ['auditor'] },
];

let deployment: Deployment;
let folder: string;
let running: RunningSigner | undefined;
/** No vote is asked for twice. */
let target = 100;

function prepare(): void {
  deployment = deploy(3, { static_auth: { policies: POLICIES, tokens: TOKENS } });
  folder = join(deployment.folder, 'receipts');
}

async function end(): Promise<void> {
  await running?.kill();
  rmSync(deployment.folder, { recursive: true, force: true });
}

async function start(receipts: object = {}): Promise<RunningSigner> {
  const config = { receipts: { storage: 'folder', path: folder, interval_seconds: 1, ...receipts } };
  running = await deployment.start({ config });
  return running;
}

const storage = () => receiptsFolder(folder);
const key = (index: number): string => deployment.keys[index]?.publicKey ?? '';

function vote(): object {
  target += 1;
  return attestation({ source: target - 1, target });
}

async function entries(): Promise<ReceiptEntry[]> {
  const [latest] = await keptBoots(storage());
  return [...(latest?.entries ?? [])].map((bytes) => {
    const entry = bytes instanceof Uint8Array ? decodeEntry(bytes) : undefined;
    if (entry === undefined) throw new Error('the log has an entry of another form');
    return entry;
  });
}

const shown = ({ operation, reason, publicKey, caller }: ReceiptEntry) => ({
  operation,
  outcome: reason ?? 'signed',
  key: deployment.keys.findIndex(({ publicKey: hex }) => hex === `0x${Buffer.from(publicKey).toString('hex')}`),
  caller: Buffer.from(caller).equals(callerDigest('static:client', ['full'])) ? 'client' : 'other',
});

const receipts = (signer: RunningSigner, path: string, token: string | null = AUDITOR) =>
  call(`${signer.url}/api/v1/receipts${path}`, { token });

describe('the log of a signer', () => {
  beforeEach(prepare);
  afterEach(end);

  it('has one entry for each decision on a loaded key, single or of a batch, and nothing else', async () => {
    const signer = await start();
    const body = vote();
    expect((await signCall(signer.url, key(0), body)).status).toBe(200);
    expect(
      (await signCall(signer.url, key(0), attestation({ source: target - 1, target, head: rootOf(9) }))).status,
    ).toBe(412);
    const exit = { type: 'VOLUNTARY_EXIT', fork_info: (body as { fork_info: object }).fork_info };
    const message = { ...exit, voluntary_exit: { epoch: '1', validator_index: '1' } };
    expect((await signCall(signer.url, key(1), message, { token: SIGNER })).status).toBe(403);
    const absent = `0x${'ab'.repeat(48)}`;
    expect((await batchCall(signer.url, [key(1), absent, key(2)], vote())).status).toBe(200);
    // Not understood, of a key that is not here, of a caller that is not known: not in the log.
    expect((await signCall(signer.url, key(0), { type: 'NOTHING' })).status).toBe(400);
    expect((await signCall(signer.url, absent, vote())).status).toBe(404);
    expect((await signCall(signer.url, key(0), vote(), { token: 'nobody' })).status).toBe(403);
    await signer.stop();
    expect((await entries()).map(shown)).toEqual([
      { operation: 'ATTESTATION', outcome: 'signed', key: 0, caller: 'client' },
      { operation: 'ATTESTATION', outcome: 'double_vote', key: 0, caller: 'client' },
      { operation: 'VOLUNTARY_EXIT', outcome: 'denied', key: 1, caller: 'other' },
      { operation: 'ATTESTATION', outcome: 'signed', key: 1, caller: 'client' },
      { operation: 'ATTESTATION', outcome: 'signed', key: 2, caller: 'client' },
    ]);
    expect(await faultsOf(storage())).toEqual(['unattested']);
  });

  it('states votes as they were signed: epochs, slot and signing root', async () => {
    const signer = await start();
    const signingRoot = async (): Promise<string> => {
      const line = await signer.logged('request', { public_key: key(0), outcome: 'ok' });
      return String(line['signing_root']);
    };
    expect((await signCall(signer.url, key(0), vote())).status).toBe(200);
    const root = await signingRoot();
    await signer.stop();
    const [entry] = await entries();
    expect(entry?.position).toMatchObject({ sourceEpoch: target - 1, targetEpoch: target });
    expect(`0x${Buffer.from(entry?.signingRoot ?? []).toString('hex')}`).toBe(root);
  });

  it('goes on after a kill in the middle of signing: what was answered before the last head is there, and a restart names it', async () => {
    const signer = await start();
    const answered: { readonly target: number; readonly atMs: number }[] = [];
    const over = new AbortController();
    const voting = (async () => {
      while (!over.signal.aborted) {
        const body = vote();
        const asked = target;
        const answer = await signCall(signer.url, key(0), body).catch(() => undefined);
        if (answer?.status === 200) answered.push({ target: asked, atMs: Date.now() });
      }
    })();
    const covered = async (): Promise<number> => headOf((await receipts(signer, '/head')).text).size;
    await vi.waitFor(async () => expect(await covered()).toBeGreaterThan(3), WAIT);
    const more = answered.length + 3;
    await vi.waitFor(() => expect(answered.length).toBeGreaterThan(more), WAIT);
    await signer.kill();
    over.abort();
    await voting;
    expect(await faultsOf(storage())).toEqual(['open_end', 'unattested']);
    const [killed] = await keptBoots(storage());
    const last = headOf(killed?.heads.at(-1));
    const logged = new Set((await entries()).map(({ position }) => position.targetEpoch));
    const before = answered.filter(({ atMs }) => atMs < last.statement.time);
    expect(before.length).toBeGreaterThan(0);
    expect(before.filter((one) => !logged.has(one.target))).toEqual([]);

    const next = await start();
    expect(headOf((await receipts(next, '/head')).text).statement.sequence).toBeGreaterThanOrEqual(0);
    await next.stop();
    const boots = await keptBoots(storage());
    expect(boots.map(({ boot }) => boot)).toContain(killed?.boot);
    const first = headOf(boots.find(({ boot }) => boot !== killed?.boot)?.heads[0]);
    expect(first.statement.before).toEqual({ heads: [last.digest], gap: null });
    expect(await faultsOf(storage())).toEqual(['open_end', 'unattested']);
  });

  it('with receipts.retention_days loses old entries of an earlier start, says so in its heads, and keeps their hashes', async () => {
    const old = makeLog(testBoot(1), 1, { sizes: [300], startSeconds: -864_000 });
    writeLog(folder, old);
    const { boot } = old.test;
    const entriesOf = async (by: RunningSigner) => (await receipts(by, `/tiles/${boot}/tile/entries/000`)).status;
    const keeping = await start(); // one that retains for a day may remove them before it is asked
    expect(await entriesOf(keeping)).toBe(200);
    await keeping.stop();
    const signer = await start({ retention_days: 1 });
    const { statement } = headOf((await receipts(signer, '/head')).text);
    expect(statement.retention_days).toBe(1);
    await vi.waitFor(async () => expect(await entriesOf(signer)).toBe(404), WAIT);
    expect((await receipts(signer, `/tiles/${boot}/tile/0/000`)).status).toBe(200);
    await signer.stop();
    expect(await faultsOf(storage())).toEqual(['missing_entries', 'unattested']);
    const asked = { ...WHOLE_LOGS, removableMs: statement.time - 86_400_000 };
    expect(await faultsOf(storage(), undefined, asked)).toEqual(['removed_by_retention', 'unattested']);
  });

  it('is not there without receipts.storage: no route, no folder, no check', async () => {
    running = await deployment.start();
    expect((await receipts(running, '/head')).status).toBe(404);
    expect(existsSync(folder)).toBe(false);
    const { json } = await call(`${running.url}/healthcheck`, { token: null });
    expect((json['checks'] as { id: string }[]).map(({ id }) => id)).not.toContain('receipts');
  });
});

describe('the routes', () => {
  let signer: RunningSigner;
  beforeAll(async () => {
    prepare();
    signer = await start();
  });
  afterAll(end);

  it('give a head that says of the signer what it can: the slashing store, and that there is no latch', async () => {
    const { statement } = headOf((await receipts(signer, '/head')).text);
    expect(statement.slashing?.store).toMatch(/^sqlite:[0-9a-f]{32}$/);
    expect(statement.slashing?.revision).toMatch(/^incarnation:/);
    expect(statement).toMatchObject({ latch: null, auth_revision: null });
  });

  it('give heads, files and proofs that a client verifies by itself', async () => {
    for (let index = 0; index < 5; index++) await signCall(signer.url, key(index % 3), vote());
    const covering = async () => headOf((await receipts(signer, '/head')).text);
    await vi.waitFor(async () => expect((await covering()).size).toBe(5), WAIT);
    const { boot, boots } = (await receipts(signer, '/boots')).json as { boot: string; boots: string[] };
    expect(boots).toEqual([boot]);
    const identity = readIdentity((await receipts(signer, `/tiles/${boot}/identity`)).text.trimEnd());
    if (identity === undefined) throw new Error('the identity has another form');
    expect(bootOf(identity.publicKey)).toBe(boot);
    expect(isSignedBy(await covering(), identity)).toBe(true);
    expect((await receipts(signer, `/tiles/${boot}/heads/000`)).status).toBe(200);
    const shown = {
      read: async (of: string, path: string) => {
        const url = `${signer.url}/api/v1/receipts/tiles/${of}/${path}`;
        const answer = await fetch(url, { headers: { authorization: `Bearer ${AUDITOR}` } });
        return answer.ok ? Buffer.from(await answer.arrayBuffer()) : undefined;
      },
    };
    for (let index = 0; index < 5; index++) {
      const found = await proveInclusion(shown, boot, index);
      if (found === undefined) throw new Error('there is no proof');
      const { entry, proof } = found;
      const head = headOf(found.head);
      expect(isSignedBy(head, identity)).toBe(true);
      expect(provesInclusion(leafHash(entry), index, head, proof)).toBe(true);
      entry[10] = 0xff;
      expect(provesInclusion(leafHash(entry), index, head, proof)).toBe(false);
    }
  });

  it('read no other file, and are for the scope receipts alone', async () => {
    writeFileSync(join(folder, 'secret'), 'TEST secret');
    const { boot } = (await receipts(signer, '/boots')).json as { boot: string };
    for (const path of [
      '../secret',
      '..%2Fsecret',
      '%2e%2e/secret',
      'heads/../../secret',
      'checkpoint.new',
      'tile/0/1',
    ]) {
      const answer = await receipts(signer, `/tiles/${boot}/${path}`);
      expect([path, answer.status, answer.text.includes('TEST secret')]).toEqual([path, 404, false]);
    }
    for (const path of ['/head', '/boots', `/tiles/${boot}/identity`]) {
      expect((await receipts(signer, path, TEST_TOKEN)).json['reason']).toBe('denied');
      expect((await receipts(signer, path, null)).json['reason']).toBe('missing_credentials');
    }
  });
});

describe('a signer that cannot keep its log', () => {
  beforeEach(prepare);
  afterEach(end);

  const breakFolder = (): void => {
    renameSync(folder, `${folder}-away`);
    writeFileSync(folder, 'no folder');
  };
  const mendFolder = (): void => {
    rmSync(folder);
    renameSync(`${folder}-away`, folder);
  };
  const check = async (signer: RunningSigner) => {
    const { status, json } = await call(`${signer.url}/healthcheck`, { token: null });
    const checks = json['checks'] as { id: string; status: string }[];
    return [status, checks.find(({ id }) => id === 'receipts')?.status];
  };

  it('signs on and is degraded, and the log is whole when the folder is back', async () => {
    const signer = await start();
    await vi.waitFor(async () => expect(await check(signer)).toEqual([200, 'UP']), WAIT);
    breakFolder();
    await vi.waitFor(async () => expect(await check(signer)).toEqual([200, 'DEGRADED']), WAIT);
    expect((await signCall(signer.url, key(0), vote())).status).toBe(200);
    mendFolder();
    await vi.waitFor(async () => expect(await check(signer)).toEqual([200, 'UP']), WAIT);
    await signer.stop();
    expect((await entries()).map(shown)).toMatchObject([{ outcome: 'signed', key: 0 }]);
    expect(await faultsOf(storage())).toEqual(['unattested']);
  });

  it('with receipts.required signs nothing, and does again when the folder is back', async () => {
    const signer = await start({ required: true });
    const signs = async (body: object): Promise<void> => {
      await vi.waitFor(async () => expect((await signCall(signer.url, key(0), body)).status).toBe(200), WAIT);
    };
    await signs(vote());
    breakFolder();
    await vi.waitFor(async () => expect(await check(signer)).toEqual([503, 'DOWN']), WAIT);
    const body = vote();
    const refused = await signCall(signer.url, key(0), body);
    expect([refused.status, refused.json['reason']]).toEqual([503, 'receipts_unavailable']);
    const { json } = await call(`${signer.url}/api/v1/chamber/status`, { token: AUDITOR });
    expect(json['hindrance']).toMatch(/^the log of receipts cannot be kept/);
    expect((await batchCall(signer.url, [key(1)], body)).json['reason']).toBe('receipts_unavailable');
    mendFolder();
    await signs(body);
    const { text } = await call(signer.metricsUrl, { token: null });
    expect(text).toMatch(/^svc_receipts_decisions_total\{outcome="lost"\} 0$/m);
    expect(text).toMatch(/^svc_receipts_heads_total\{outcome="failed"\} [1-9]/m);
    await signer.stop();
    const signed = (await entries()).filter(({ reason }) => reason === null);
    expect(signed.map(({ position }) => position.targetEpoch)).toEqual([target - 1, target]);
  });

  it('with receipts.required and a folder that was never there signs nothing from the start', async () => {
    writeFileSync(folder, 'no folder');
    const signer = await start({ required: true });
    expect((await signCall(signer.url, key(0), vote())).json['reason']).toBe('receipts_unavailable');
    rmSync(folder);
    const body = vote();
    await vi.waitFor(async () => expect((await signCall(signer.url, key(0), body)).status).toBe(200), WAIT);
    await signer.stop();
    expect(await faultsOf(storage())).toEqual(['unattested', 'unlinked']);
  });
});
