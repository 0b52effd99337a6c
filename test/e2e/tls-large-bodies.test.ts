// Requests whose body takes several TLS records, one after another on a kept connection whose answers are larger than
// the connection's buffer: none is lost (docs/decisions/0010). Node's own client and a foreign one, on a real signer.

import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { makeCertificate } from '../support/certificates.ts';
import { deployKeys } from '../support/deployment.ts';
import { findPython } from '../support/needs.ts';
import { attestation, randaoReveal, TEST_TOKEN } from '../support/requests.ts';
import { sized } from '../support/scale.ts';
import { keys, nameAt, names } from './batch-requests.ts';

interface Load {
  readonly what: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body: string;
  readonly status: number;
}

const BATCH = '/api/v1/eth2/sign';
const RECORDS = '/api/v1/chamber/slashing-protection';
const KEYSTORES = '/eth/v1/keystores';
const ALL = {
  name: 'all',
  rules: [
    {
      effect: 'allow',
      scopes: ['sign', 'public_keys', 'slashing_protection', 'import_keystores', 'chamber_keys_list'],
    },
  ],
};

const deployment = deployKeys(keys, {
  static_auth: { policies: [ALL], tokens: [{ secret: TEST_TOKEN, policies: ['all'] }] },
  http: { key_manager_api: { enabled: true } },
});
const certificate = makeCertificate(deployment.folder, 'tls');
let signer: RunningSigner;
beforeAll(async () => {
  signer = await deployment.start({
    config: {
      tls: {
        mode: 'file',
        listen_address: '127.0.0.1',
        listen_port: 0,
        file: { cert_path: certificate.cert, key_path: certificate.key },
      },
    },
  });
});
afterAll(() => signer.stop());

function batchOf(count: number): Load {
  const signing_request = randaoReveal(3);
  const body = JSON.stringify({ identifiers: names.slice(0, count), signing_request });
  return { what: `a batch of ${count}`, method: 'POST', path: BATCH, body, status: 200 };
}

const recorded: Load = {
  what: 'a batch of votes',
  method: 'POST',
  path: BATCH,
  body: JSON.stringify({ identifiers: names, signing_request: attestation({ source: 1, target: 2 }) }),
  status: 200,
};
const exported: Load = { what: 'an export', method: 'GET', path: RECORDS, body: '', status: 200 };
const listed: Load = { what: 'a list of keys', method: 'GET', path: '/api/v1/eth2/publicKeys', body: '', status: 200 };
/** A body of a size that is read on a thread of its own, as envelopes are. */
const large: Load = {
  what: 'a large message',
  method: 'POST',
  path: `${BATCH}/${nameAt(0)}`,
  body: JSON.stringify({ ...randaoReveal(3), padding: 'x'.repeat(1_500_000) }),
  status: 200,
};
/** Read whole, and then refused: nothing is imported hundreds of times. */
const imported: Load = {
  what: 'an import of keystores',
  method: 'POST',
  path: KEYSTORES,
  body: JSON.stringify({ keystores: Array.from({ length: 60 }, () => 'x'.repeat(2000)), passwords: [] }),
  status: 400,
};

/** Each before each other, so that every body follows every size of answer. */
const mixed = [exported, imported, recorded, large, listed, batchOf(256), exported, batchOf(2048), imported, large];
const series: readonly [string, readonly Load[]][] = [
  ['batches of 256 keys', Array.from({ length: sized(15, 300) }, () => batchOf(256))],
  ['batches of 1,024 keys', Array.from({ length: sized(4, 60) }, () => batchOf(1024))],
  ['batches of 2,048 keys', Array.from({ length: sized(3, 30) }, () => batchOf(2048))],
  [
    'rounds of batches, exports, lists, imports and large messages',
    Array.from({ length: sized(2, 20) }, () => mixed).flat(),
  ],
];

describe.each(series)('%s on one connection', (_what, loads) => {
  it("each gets its whole answer with Node's client", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: readFileSync(certificate.cert) });
    const sockets = new Set<unknown>();
    for (const load of loads) {
      const { status, bytes, socket } = await ask(load, agent);
      sockets.add(socket);
      expect({ what: load.what, status, isWhole: bytes > 0 }).toEqual({
        what: load.what,
        status: load.status,
        isWhole: true,
      });
    }
    expect(sockets.size).toBe(1);
    agent.destroy();
  });

  const python = findPython('ssl');
  it.skipIf(python === undefined)("each gets its whole answer with Python's client", async () => {
    const script = join(deployment.folder, 'asks.json');
    writeFileSync(
      script,
      JSON.stringify(loads.map(({ method, path, body, status }) => ({ method, path, body, status }))),
    );
    const { stdout, code } = await run(python ?? '', [
      join(import.meta.dirname, '../support/keep-asking.py'),
      signer.tlsUrl ?? '',
      certificate.cert,
      TEST_TOKEN,
      script,
    ]);
    expect({ stdout, code }).toEqual({ stdout: `${loads.length} answered on 1 connection\n`, code: 0 });
  });
});

function ask(
  { method, path, body }: Load,
  agent: Agent,
): Promise<{ readonly status: number | undefined; readonly bytes: number; readonly socket: unknown }> {
  const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<typeof ask>>>();
  const headers = { authorization: `Bearer ${TEST_TOKEN}`, 'content-length': Buffer.byteLength(body) };
  const asked = request(`${signer.tlsUrl}${path}`, { agent, method, headers }, (response) => {
    let bytes = 0;
    response.on('data', (part: Buffer) => {
      bytes += part.length;
    });
    response.on('error', reject).on('end', () => resolve({ status: response.statusCode, bytes, socket: asked.socket }));
  });
  asked.on('error', reject).end(body);
  return promise;
}

function run(program: string, args: readonly string[]): Promise<{ readonly stdout: string; readonly code: unknown }> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  return new Promise((resolve) => child.on('close', (code) => resolve({ stdout, code })));
}
