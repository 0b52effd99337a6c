// The limits of the key routes, each route for itself: what is mounted, how much at once, how long, and for whom.

import { describe, expect, it, vi } from 'vitest';
import { encryptKeystore, publicKeyOf, testSecret } from '../../support/keys.ts';
import { LONGEST_WAIT_MS } from '../../support/patience.ts';
import {
  ask,
  CHAMBER,
  GENERATOR,
  importOf,
  inFlight,
  KEY,
  KEYSTORES,
  keyManagerOf,
  limitsOf,
  type Method,
  mount,
} from './mounted-key-routes.ts';

describe('a route that is not enabled is not there', () => {
  it('only the inventory is, always', async () => {
    await mount({ keyManager: undefined });
    for (const method of ['GET', 'POST', 'DELETE'] as const) {
      expect(await ask(method, KEYSTORES)).toMatchObject({ status: 404, json: { reason: 'not_found' } });
    }
    for (const method of ['POST', 'PATCH', 'DELETE'] as const) {
      expect(await ask(method, CHAMBER)).toMatchObject({ status: 404, json: { reason: 'not_found' } });
    }
    expect((await ask('POST', `${CHAMBER}/generate`)).status).toBe(404);
    expect((await ask('POST', `${CHAMBER}/deposit-data`)).status).toBe(404);
    expect(await ask('GET', CHAMBER)).toMatchObject({
      status: 200,
      json: { keys: [{ pubkey: KEY }], next_cursor: null },
    });
  });

  it('import and lifecycle are enabled one by one', async () => {
    await mount({ keyManager: undefined, chamber: { import: limitsOf() } });
    const body = { ...importOf(2), storage: { persist: false } };
    expect((await ask('POST', CHAMBER, body)).status).toBe(200);
    expect((await ask('DELETE', CHAMBER, { pubkeys: [KEY] })).status).toBe(404);
  });
});

describe('more requests at once than a route may have', () => {
  it('DELETE and GET of the Key Manager API share one limit: 503 overloaded with Retry-After', async () => {
    await mount({ keyManager: keyManagerOf() });
    inFlight.begin(KEY); // a signature that does not end: both deletes wait for it
    const deletes = [1, 2].map(() => ask('DELETE', KEYSTORES, { pubkeys: [KEY] }));
    await vi.waitFor(async () => {
      const refused = await ask('GET', KEYSTORES);
      expect(refused).toMatchObject({ status: 503, json: { reason: 'overloaded' } });
      expect(refused.headers['retry-after']).toBeDefined();
    }, LONGEST_WAIT_MS);
    expect((await ask('POST', KEYSTORES, importOf(2))).status).toBe(200); // writes have a limit of their own
    inFlight.end(KEY);
    const answers = await Promise.all(deletes);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(answers.map(({ json }) => (json['data'] as { status: string }[])[0]?.status)).toEqual([
      'deleted',
      'not_found',
    ]);
    expect((await ask('GET', KEYSTORES)).status).toBe(200);
  });

  it('PATCH and DELETE of the chamber share one, and the inventory has another', async () => {
    await mount({ keyManager: undefined, chamber: { lifecycle: limitsOf() } });
    inFlight.begin(KEY);
    const deleting = ask('DELETE', CHAMBER, { pubkeys: [KEY] });
    await vi.waitFor(async () => {
      expect(await ask('PATCH', CHAMBER, { keys: [] })).toMatchObject({ status: 503, json: { reason: 'overloaded' } });
    }, LONGEST_WAIT_MS);
    expect((await ask('GET', CHAMBER)).status).toBe(200);
    inFlight.end(KEY);
    expect((await deleting).status).toBe(200);
  });
});

describe('a request that takes longer than its route allows', () => {
  it('is answered 503 request_timeout, and holds its place until its work ends', async () => {
    await mount({ keyManager: keyManagerOf({ maxConcurrentReads: 1, requestTimeoutSeconds: 0.02 }) });
    inFlight.begin(KEY);
    expect(await ask('DELETE', KEYSTORES, { pubkeys: [KEY] })).toMatchObject({
      status: 503,
      json: { reason: 'request_timeout' },
    });
    expect(await ask('GET', KEYSTORES)).toMatchObject({ status: 503, json: { reason: 'overloaded' } });
    inFlight.end(KEY);
    await vi.waitFor(async () => expect((await ask('GET', KEYSTORES)).status).toBe(200), LONGEST_WAIT_MS);
  });

  it('imports nothing when the time is over before the keystores are open', async () => {
    await mount({ keyManager: keyManagerOf({ requestTimeoutSeconds: 0.001 }) });
    const slow = JSON.stringify(encryptKeystore(testSecret(3), 'password', { kind: 'pbkdf2', iterations: 2 ** 18 }));
    const body = { keystores: [slow, slow], passwords: ['password', 'password'] };
    expect(await ask('POST', KEYSTORES, body)).toMatchObject({ status: 503, json: { reason: 'request_timeout' } });
    // The place is free again when the work has ended, and then nothing came of it.
    await vi.waitFor(
      async () => expect((await ask('POST', KEYSTORES, { keystores: [] })).status).toBe(200),
      LONGEST_WAIT_MS,
    );
    await vi.waitFor(async () => {
      const listed = await ask('GET', KEYSTORES); // under the same millisecond, which a busy machine may pass
      expect(listed.json['data']).toEqual([{ validating_pubkey: KEY, readonly: false }]);
    }, LONGEST_WAIT_MS);
  });
});

describe('requests of the chamber', () => {
  it.each<[string, Method, unknown]>([
    ['an import without storage', 'POST', importOf(2)],
    ['an import into a table that is not there', 'POST', { ...importOf(2), storage: { persist: true } }],
    ['an import with a member too many', 'POST', { ...importOf(2), storage: { persist: false }, extra: 1 }],
    ['a status that is none', 'PATCH', { keys: [{ pubkey: KEY, status: 'asleep' }] }],
    ['a key that is named twice', 'PATCH', { keys: [1, 2].map(() => ({ pubkey: KEY, status: 'active' })) }],
    ['a key that is none', 'DELETE', { pubkeys: ['0x12'] }],
  ])('%s is 400', async (_, method, body) => {
    await mount({ keyManager: undefined, chamber: { import: limitsOf(), lifecycle: limitsOf() } });
    expect(await ask(method, CHAMBER, body)).toMatchObject({ status: 400, json: { reason: 'malformed_body' } });
  });

  it('naming more keys than they may are 400 too_many_items', async () => {
    await mount({ keyManager: undefined, chamber: { import: limitsOf(), lifecycle: limitsOf() } });
    const keys = [4, 5, 6, 7].map((number) => publicKeyOf(testSecret(number)));
    const many = { status: 400, json: { reason: 'too_many_items' } };
    expect(await ask('POST', CHAMBER, { ...importOf(4, 5, 6, 7), storage: { persist: false } })).toMatchObject(many);
    expect(await ask('DELETE', CHAMBER, { pubkeys: keys })).toMatchObject(many);
    const changes = keys.map((pubkey) => ({ pubkey, status: 'active' }));
    expect(await ask('PATCH', CHAMBER, { keys: changes })).toMatchObject(many);
  });

  it('without a table: keys of memory cannot be inactive, and are deleted', async () => {
    await mount({ keyManager: undefined, chamber: { lifecycle: limitsOf() } });
    const patch = await ask('PATCH', CHAMBER, { keys: [{ pubkey: KEY, status: 'inactive' }] });
    expect(patch.json['data']).toMatchObject([{ pubkey: KEY, status: 'error' }]);
    const deleted = await ask('DELETE', CHAMBER, { pubkeys: [KEY] });
    expect(deleted.json['data']).toEqual([{ pubkey: KEY, status: 'deleted' }]);
  });

  it.each(['limit=0', 'limit=1001', 'limit=many', 'status=asleep', 'source=cloud', 'cursor=nowhere', 'page=2'])(
    'the inventory refuses ?%s',
    async (query) => {
      await mount({ keyManager: undefined });
      expect(await ask('GET', `${CHAMBER}?${query}`)).toMatchObject({
        status: 400,
        json: { reason: 'malformed_parameter' },
      });
    },
  );
});

describe('what is wrong with a request is said in plain words', () => {
  it.each([
    [{ count: 0 }, 'count: must be at least 1'],
    [{ count: 1.5 }, 'count: must be a whole number'],
    [{ count: 'one' }, 'count: must be a whole number'],
    [{}, 'count: is required'],
    [{ count: 1, cuont: 2 }, 'has members that do not exist: "cuont"'],
    [[], 'must be an object'],
  ])('a body %j', async (body, said) => {
    await mount({ keyManager: undefined });
    const { status, json } = await ask('POST', `${CHAMBER}/generate-keys`, body);
    expect({ status, reason: json['reason'] }).toEqual({ status: 400, reason: 'malformed_body' });
    expect(json['message']).toMatch(new RegExp(`: ${said}$`));
  });

  it.each([
    ['limit=0', 'limit: must be at least 1'],
    ['limit=1001', 'limit: must be at most 1000'],
    ['limit=many', 'limit: must be a whole number'],
    ['status=asleep', 'status: must be one of active, inactive'],
    ['cursor=', 'cursor: must not be empty'],
  ])('a query ?%s', async (query, said) => {
    await mount({ keyManager: undefined });
    const { json } = await ask('GET', `${CHAMBER}?${query}`);
    expect(json['message']).toMatch(new RegExp(`: ${said}$`));
  });
});

describe('generate-keys', () => {
  it('is open to either scope of generating', async () => {
    await mount({ keyManager: undefined });
    // There is no table here: who is admitted gets as far as that.
    expect((await ask('POST', `${CHAMBER}/generate-keys`, { count: 1 }, GENERATOR)).status).toBe(503);
  });

  it('makes no key without a backup for whoever requires one, nor does generate', async () => {
    await mount({ keyManager: undefined, generate: { generate: limitsOf() } });
    const terms = { withdrawal_address: `0x${'52'.repeat(20)}` };
    for (const [route, body] of [
      ['generate-keys', {}],
      ['generate', terms],
    ] as const) {
      const { status, json } = await ask('POST', `${CHAMBER}/${route}`, { count: 1, require_backup: true, ...body });
      expect({ status, reason: json['reason'] }).toEqual({ status: 400, reason: 'malformed_body' });
      expect(json['message']).toContain('no chamber.keys.backup.recipients; no key was made');
      expect((await ask('POST', `${CHAMBER}/${route}`, { count: 1, ...body })).status).toBe(503); // no table here
    }
  });
});
