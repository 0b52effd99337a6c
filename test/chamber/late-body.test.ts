// A request whose headers were admitted and whose body comes later: what was revoked, changed, sealed or lost in
// between counts. A whole signer in this process, and clients on raw sockets, which know from `100 Continue` that they
// were admitted.

import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLogger } from '../../common/observe/logger.ts';
import type { BootedSigner } from '../../signer/boot/boot.ts';
import { FAULTS } from '../support/fault-proxy.ts';
import { attestation, call, testKey } from '../support/requests.ts';
import { signerSite } from './whole-signer.ts';

const KEY = testKey(0).publicKey;
const RECORDS = '/api/v1/chamber/slashing-protection';
const SIGN = `/api/v1/eth2/sign/${KEY}`;

const site = signerSite();
let signer: BootedSigner;
let url: string;
let root: string;
let token: string;
let accessor: string;
let ending: Promise<void> | undefined;

beforeEach(async () => {
  signer = await site.boot(createLogger({ level: 'error,audit=off', format: 'text', color: false }, process.stderr));
  await signer.keysLoaded;
  url = `http://127.0.0.1:${signer.listeners.http.port}`;
  root = await site.world.rootToken(site.table);
  await call(`${url}/api/v1/auth/policies`, {
    token: root,
    body: { name: 'vc', rules: [{ effect: 'allow', scopes: ['sign', 'slashing_protection'] }] },
  });
  const created = await call(`${url}/api/v1/auth/tokens`, { token: root, body: { policies: ['vc'] } });
  token = created.json['token'] as string;
  accessor = created.json['accessor'] as string;
});
afterEach(async () => {
  site.proxy.setRule(undefined);
  await (ending ?? signer.shutDown());
  ending = undefined;
});

interface LateRequest {
  finish(): Promise<{ readonly status: number; readonly text: string }>;
}

function admitted(path: string, content: object, bearer = token): Promise<LateRequest> {
  const body = JSON.stringify(content);
  const half = Math.floor(body.length / 2);
  const { promise, resolve, reject } = Promise.withResolvers<LateRequest>();
  const socket = connect(signer.listeners.http.port, '127.0.0.1');
  let text = '';
  const closed = new Promise<void>((done) => socket.once('close', () => done()));
  socket.setEncoding('latin1').on('error', reject);
  socket.on('data', (chunk: string) => {
    text += chunk;
    if (text.startsWith('HTTP/1.1 100')) resolve({ finish });
    else reject(new Error(text));
  });
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${bearer}\r\nExpect: 100-continue\r\nConnection: close\r\n` +
      `Content-Length: ${body.length}\r\n\r\n${body.slice(0, half)}`,
  );
  async function finish() {
    socket.write(body.slice(half));
    await closed;
    const answer = text.slice(text.indexOf('\r\n\r\n') + 4);
    return { status: Number(answer.slice(9, 12)), text: answer };
  }
  return promise;
}

async function revoke(): Promise<void> {
  const revoked = await call(`${url}/api/v1/auth/tokens/${accessor}`, { token: root, method: 'DELETE' });
  expect(revoked.status).toBe(204);
}

async function seal(): Promise<void> {
  expect((await call(`${url}/api/v1/chamber/seal`, { token: root, method: 'POST' })).status).toBe(200);
}

async function denyKey(): Promise<void> {
  const rules = [
    { effect: 'allow', scopes: ['sign', 'slashing_protection'] },
    { effect: 'deny', keys: [KEY] },
    { effect: 'deny', scopes: ['slashing_protection'] },
  ];
  const replaced = await call(`${url}/api/v1/auth/policies/vc`, { token: root, method: 'PUT', body: { rules } });
  expect(replaced.status).toBe(200);
}

async function loseSight(): Promise<void> {
  site.proxy.setRule(() => FAULTS.resetBefore);
  site.ahead += 11;
}

/** It finishes what it has admitted, so this does not wait for the end. */
async function shutDown(): Promise<void> {
  ending = signer.shutDown();
}

async function nothing(): Promise<void> {}

describe('between the headers of a signing request and its body', () => {
  it.each([
    ['nothing happens', nothing, 200, '0x'],
    ['the signer begins to shut down', shutDown, 200, '0x'],
    ['the token is revoked', revoke, 403, 'invalid_token'],
    ['its policy denies the key', denyKey, 403, 'denied'],
    ['the chamber is sealed', seal, 503, 'sealed'],
    ['the state table is out of sight for too long', loseSight, 503, 'state_stale'],
  ])('%s', async (_what, change, status, word) => {
    const request = await admitted(SIGN, attestation({ source: 1, target: 2 }));
    await change();
    const answer = await request.finish();
    expect(answer.text).toContain(word);
    expect(answer.status).toBe(status);
  });
});

describe('while the records of slashing protection come in', () => {
  const file = {
    metadata: { interchange_format_version: '5', genesis_validators_root: '' },
    data: [{ pubkey: KEY, signed_blocks: [{ slot: '5' }], signed_attestations: [] }],
  };

  async function exported(): Promise<{ readonly metadata: object; readonly data: readonly unknown[] }> {
    const { json } = await call(`${url}${RECORDS}`, { token });
    return json as unknown as { metadata: object; data: readonly unknown[] };
  }

  it.each([
    ['nothing happens', nothing, 200, 'already_present'],
    ['the token is revoked', revoke, 403, 'invalid_token'],
    ['its policy denies the scope', denyKey, 403, 'denied'],
    ['the chamber is sealed', seal, 401, 'auth_sealed'],
    ['the state table is out of sight for too long', loseSight, 503, 'state_stale'],
  ])('%s', async (_what, change, status, word) => {
    const { metadata } = await exported();
    const request = await admitted(RECORDS, { ...file, metadata });
    await change();
    const answer = await request.finish();
    expect(answer.text).toContain(word);
    expect(answer.status).toBe(status);
  });

  it('a revoked caller has imported nothing', async () => {
    const { metadata } = await exported();
    const request = await admitted(RECORDS, { ...file, metadata });
    await revoke();
    expect((await request.finish()).status).toBe(403);
    const created = await call(`${url}/api/v1/auth/tokens`, { token: root, body: { policies: ['vc'] } });
    token = created.json['token'] as string;
    expect((await exported()).data).toEqual([]);
  });
});

describe('a replica that has lost sight of the state table', () => {
  it('honours no token, except to seal and for the status', async () => {
    await loseSight();
    const get = (path: string, bearer = root) => call(`${url}${path}`, { token: bearer });
    for (const path of ['/api/v1/auth/policies', '/api/v1/auth/tokens/lookup-self', '/api/v1/chamber/keys', RECORDS]) {
      expect(await get(path)).toMatchObject({ status: 503, json: { reason: 'state_stale' } });
      expect(await get(path, 'sr_client_unknown')).toMatchObject({ status: 503, json: { reason: 'state_stale' } });
    }
    const status = await get('/api/v1/chamber/status');
    expect(status).toMatchObject({ status: 200, json: { state_watcher: { stale: true } } });
    expect((await get('/api/v1/chamber/status', token)).status).toBe(403);
    site.proxy.setRule(undefined);
    site.ahead += 11;
    await seal();
  });
});
