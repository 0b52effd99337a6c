// The way to the signer and what may go wrong on it: whom the CLI talks to, what it sends before it knows, and what it
// repeats.

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeCertificate } from '../support/certificates.ts';
import { cannedSigner } from './canned-signer.ts';
import { type Answerer, answerRefusal, type FixtureSigner, startFixtureSigner } from './fixture-signer.ts';
import { runShell } from './transcript.ts';

const TOKEN = 'sr_mgmt_connection_test';

let folder: string;
let signers: FixtureSigner[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-operator-'));
});

afterEach(async () => {
  await Promise.all(signers.map((signer) => signer.close()));
  signers = [];
});

afterAll(() => rmSync(folder, { recursive: true }));

async function start(answer: Answerer, certificate?: { readonly cert: string; readonly key: string }) {
  const signer = await startFixtureSigner(answer, certificate);
  signers.push(signer);
  return signer;
}

function operator(args: string, env: Readonly<Record<string, string>> = {}) {
  return runShell(`strongroom operator ${args}`, { folder, env: { SVC_OPERATOR_TOKEN: TOKEN, ...env } });
}

/** To a plain fixture. */
function plainly(signer: FixtureSigner, args: string) {
  return operator(`${args} --signer-url ${signer.url} --allow-plaintext-signer`);
}

describe('recover', () => {
  const YES = 'recover --table nowhere --yes';
  const answering =
    (status: number, body: string): Answerer =>
    (_received, response) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(body);
    };

  it.each([
    ['another service', answering(200, '{"status":"ok"}')],
    ['a proxy without a signer behind it', answering(502, '<h1>Bad Gateway</h1>')],
    ['a proxy that wants a login', answering(401, 'who are you?')],
    ['a service that is not well', answering(503, '{"error":"down"}')],
  ])('%s is a foreign answer, and deletes no latch', async (_name, answer) => {
    const signer = await start(answer);
    const { code, stdout } = await plainly(signer, 'recover --json');
    expect({ code, troubles: JSON.parse(stdout).troubles }).toMatchObject({
      code: 0,
      troubles: [{ state: 'foreign_answer', means: expect.stringContaining('no strongroom') }],
    });
    const deletion = await plainly(signer, YES);
    expect(deletion.code).toBe(2);
    expect(deletion.stderr).toContain('what answers at the URL is no strongroom: nothing was deleted');
  });

  it('what speaks no HTTP is one, too; a signer that refuses is none; nobody is unreachable', async () => {
    const server = createServer((socket: Socket) => {
      socket.resume().on('error', () => undefined);
      socket.end('SSH-2.0-OpenSSH\r\n');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const at = `recover --signer-url http://127.0.0.1:${port} --allow-plaintext-signer`;
    const foreign = (await operator(at)).stdout.replaceAll('\n', ' '); // it is wrapped
    expect(foreign).toMatch(/^foreign_answer: .*what answers is no HTTP server/);
    server.close();
    await once(server, 'close');
    expect((await operator(at)).stdout).toMatch(/^unreachable: no answer from .*refused/);
    const overloaded = await start((_received, response) => answerRefusal(response, 'overloaded'));
    expect((await plainly(overloaded, 'recover')).stdout).toMatch(/^refused: refused: overloaded: /);
  });
});

describe('TLS', () => {
  it('a self-signed certificate is trusted when it is named, and only then', async () => {
    const { url, received } = await startWithTls('named');
    const trusted = await operator(`status --signer-url ${url} --tls-ca named.crt`);
    expect(trusted).toMatchObject({ code: 0, stderr: '' });
    expect(received).toHaveLength(1);
    const untrusted = await operator(`status --signer-url ${url}`);
    expect(untrusted.code).toBe(2);
    expect(untrusted.stderr).toContain('its certificate is self-signed and not trusted');
    expect(untrusted.stderr).toContain('--tls-ca FILE');
    expect(received).toHaveLength(1);
  });

  it('nothing in the environment switches the verification off', async () => {
    const { url, received } = await startWithTls('environment');
    const { code, stderr } = await operator(`status --signer-url ${url}`, { NODE_TLS_REJECT_UNAUTHORIZED: '0' });
    expect(code).toBe(2);
    expect(stderr).toContain('not trusted');
    expect(received).toEqual([]);
  });

  it('the authorities of --tls-ca replace the public ones; another certificate is not enough', async () => {
    const { url, received } = await startWithTls('one');
    makeCertificate(folder, 'another');
    const { code } = await operator(`status --signer-url ${url} --tls-ca another.crt`);
    expect(code).toBe(2);
    expect(received).toEqual([]);
  });

  it('the name in the certificate is compared with the URL, or with --tls-server-name', async () => {
    const { url, received } = await startWithTls('names');
    const byAddress = url.replace('localhost', '127.0.0.1');
    const other = await operator(`status --signer-url ${url} --tls-ca names.crt --tls-server-name signer.example`);
    expect(other.code).toBe(2);
    expect(other.stderr).toContain(
      'its certificate is for DNS:localhost, IP Address:127.0.0.1, not for signer.example',
    );
    expect(received).toEqual([]);
    for (const args of [byAddress, `${byAddress} --tls-server-name localhost`]) {
      expect((await operator(`status --signer-url ${args} --tls-ca names.crt`)).code).toBe(0);
    }
  });

  it('an address as --tls-server-name is compared like a name, and no token goes to another one', async () => {
    const { url, received } = await startWithTls('addresses');
    for (const address of ['203.0.113.9', '2001:db8::9']) {
      const other = await operator(`status --signer-url ${url} --tls-ca addresses.crt --tls-server-name ${address}`);
      expect(other.stderr).toContain(`its certificate is for DNS:localhost, IP Address:127.0.0.1, not for ${address}`);
      expect(other.code).toBe(2);
    }
    expect(received).toEqual([]);
    const same = await operator(`status --signer-url ${url} --tls-ca addresses.crt --tls-server-name 127.0.0.1`);
    expect(same.code).toBe(0);
  });

  it('a certificate of an authority of its own, and one that has expired', async () => {
    openssl(
      'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test-authority -keyout ca.key -out ca.crt',
    );
    openssl(
      'req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=leaf -keyout leaf.key -out leaf.csr',
    );
    writeFileSync(join(folder, 'leaf.ext'), 'subjectAltName=DNS:localhost\n');
    const sign = 'x509 -req -in leaf.csr -CA ca.crt -CAkey ca.key -extfile leaf.ext -set_serial';
    openssl(`${sign} 1 -days 2 -out leaf.crt`);
    openssl(`${sign} 2 -days -1 -out expired.crt`);
    const key = join(folder, 'leaf.key');
    const good = await start(cannedSigner, { cert: join(folder, 'leaf.crt'), key });
    expect((await operator(`status --signer-url ${good.url} --tls-ca ca.crt`)).code).toBe(0);
    const unknown = await operator(`status --signer-url ${good.url}`);
    expect(unknown.stderr).toContain('its certificate is not signed by a trusted authority');
    const expired = await start(cannedSigner, { cert: join(folder, 'expired.crt'), key });
    const { code, stderr } = await operator(`status --signer-url ${expired.url} --tls-ca ca.crt`);
    expect(code).toBe(2);
    expect(stderr).toContain('its certificate has expired');
    expect(expired.received).toEqual([]);
  });

  it('plain HTTP at a TLS URL and TLS at a plain one are told apart', async () => {
    const plain = await start(cannedSigner);
    const tls = await startWithTls('both');
    const toPlain = await operator(`status --signer-url ${plain.url.replace('http:', 'https:')}`);
    expect(toPlain.stderr).toContain('it does not speak TLS at this port');
    const toTls = await operator(`status --signer-url ${tls.url.replace('https:', 'http:')} --allow-plaintext-signer`);
    expect([toPlain.code, toTls.code]).toEqual([2, 2]);
  });
});

describe('answers that are none', () => {
  it('a redirect is not followed: the token stays here', async () => {
    const elsewhere = await start(cannedSigner);
    const signer = await start((_, response) => response.writeHead(307, { location: elsewhere.url }).end());
    const { code, stderr } = await plainly(signer, 'status');
    expect(code).toBe(2);
    expect(stderr).toContain('refused: HTTP 307 without a reason');
    expect(elsewhere.received).toEqual([]);
  });

  it('what a proxy says is not taken for the signer, but 401 and 403 are still about authentication', async () => {
    let status = 502;
    const signer = await start((_, response) => response.writeHead(status).end('<html>\u001b[2Jbad gateway</html>'));
    const first = await plainly(signer, 'status');
    expect(first).toMatchObject({ code: 2, stdout: '' });
    expect(first.stderr).toContain('does the URL lead to a proxy');
    expect(first.stderr).not.toContain('\u001b');
    status = 403;
    expect((await plainly(signer, 'status')).code).toBe(4);
  });

  it.each(['{"state":"Open"}', 'OK', ''])('an answer that is no status is refused: %s', async (text) => {
    const signer = await start((_, response) => response.end(text));
    const { code, stdout, stderr } = await plainly(signer, 'status --json');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('the answer is not what this version of strongroom knows');
  });

  it.each([
    ['\u001b[2J', '(at tee.measurements.\\u{1b}[2J)'],
    ['x'.repeat(5000), 'xxx…)'],
  ])('the place of what is wrong in an answer cannot rewrite the terminal, nor fill it', async (name, shown) => {
    const canned = await start(cannedSigner);
    const known = await fetch(`${canned.url}/api/v1/chamber/status`, { headers: { authorization: `Bearer ${TOKEN}` } });
    const status = (await known.json()) as { tee: object };
    const signer = await start((_, response) =>
      response.end(JSON.stringify({ ...status, tee: { ...status.tee, measurements: { [name]: 1 } } })),
    );
    const { code, stderr } = await plainly(signer, 'status');
    expect(code).toBe(2);
    expect(stderr).toContain(shown);
    expect(stderr.length).toBeLessThan(500);
  });

  it('a token that is no token is not shown', async () => {
    const created = { accessor: `acc_${'0'.repeat(32)}`, kind: 'management', policies: [], bound_cidrs: [] };
    const dates = { created_at: '2026-03-01T08:00:00.000Z', expires_at: null };
    const answer = { ...created, ...dates, description: null, root: false, revision: 1, token: '\u001b[2Jsr_mgmt_' };
    const signer = await start((_, response) => response.writeHead(201).end(JSON.stringify(answer)));
    const { code, stdout, stderr } = await plainly(signer, 'auth token create --management');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('(at token)');
  });

  it('a refusal with control characters cannot rewrite the terminal', async () => {
    const body = { code: 400, reason: 'x', message: '\u001b[2Jall is well\u202e', request_id: 'r' };
    const signer = await start((_, response) => response.writeHead(400).end(JSON.stringify(body)));
    const { stderr } = await plainly(signer, 'status');
    expect(stderr).toContain('refused: x: \\u{1b}[2Jall is well\\u{202e} (request id r)');
  });

  it('an endless answer is cut off', async () => {
    const signer = await start((_, response) => {
      const chunk = Buffer.alloc(1 << 20, ' ');
      const more = (): void => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on('drain', more);
      more();
    });
    const { code, stderr } = await plainly(signer, 'status');
    expect(code).toBe(2);
    expect(stderr).toContain('the answer is larger than');
  });
});

describe('connections that break', () => {
  it('a GET is asked once more after a reset, and answered', async () => {
    let requests = 0;
    const signer = await start((received, response, request) => {
      requests += 1;
      if (requests === 1) (request.socket as Socket).resetAndDestroy();
      else cannedSigner(received, response, request);
    });
    expect((await plainly(signer, 'status')).code).toBe(0);
    expect(signer.received).toHaveLength(2);
  });

  it('only once', async () => {
    const signer = await start((_, __, request) => void (request.socket as Socket).resetAndDestroy());
    const { code, stderr } = await plainly(signer, 'status');
    expect(code).toBe(2);
    expect(stderr).toContain('the connection was closed before the answer');
    expect(signer.received).toHaveLength(2);
  });

  it.each([
    'seal --yes',
    'auth token create --management',
    'auth policy delete --name p --yes',
    `auth policy update --name p --rules '[{"effect":"deny"}]' --yes`,
  ])('what changes something is never repeated, and the doubt is said: %s', async (command) => {
    const signer = await start((_, __, request) => void (request.socket as Socket).resetAndDestroy());
    const { code, stderr } = await plainly(signer, command);
    expect(code).toBe(2);
    expect(stderr).toContain('may have been carried out');
    expect(signer.received).toHaveLength(1);
  });

  it('a signer that says nothing is given up on', async () => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as { port: number };
    for (const scheme of ['http', 'https']) {
      const args = `--signer-url ${scheme}://127.0.0.1:${port} --allow-plaintext-signer --timeout-seconds 1`;
      const { code, stderr } = await operator(`status ${args}`);
      expect(code).toBe(2);
      expect(stderr).toContain('nothing came for 1 s');
    }
    silent.close();
  });

  it('an export that breaks off leaves the earlier file as it was, and nothing else', async () => {
    const signer = await start((_, response) => {
      response.writeHead(200).write('{"metadata":{');
      response.write('x'.repeat(100_000), () => response.destroy());
    });
    writeFileSync(join(folder, 'records.json'), 'the earlier export');
    const { code, stderr } = await plainly(signer, 'slashing export --output records.json --force');
    expect(code).toBe(2);
    expect(stderr).toContain('the connection was closed before the answer');
    expect(readFileSync(join(folder, 'records.json'), 'utf8')).toBe('the earlier export');
    expect(execFileSync('ls', { cwd: folder, encoding: 'utf8' })).not.toContain('partial');
    expect((await plainly(signer, 'slashing export')).code).toBe(2);
    expect((await plainly(signer, 'slashing export --output new.json')).code).toBe(2);
    expect(existsSync(join(folder, 'new.json'))).toBe(false);
  });
});

describe('the token', () => {
  it('comes from a variable, a file, stdin, the environment or the command line', async () => {
    writeFileSync(join(folder, 'token'), 'sr_client_file\n', { mode: 0o600 });
    expect(await headerSeen('--token env:MINE', { MINE: 'sr_client_variable' })).toBe('Bearer sr_client_variable');
    expect(await headerSeen('--token @token', {})).toBe('Bearer sr_client_file');
    expect(await headerSeen('--token -', {}, 'sr_client_stdin')).toBe('Bearer sr_client_stdin');
    expect(await headerSeen('', { SVC_OPERATOR_TOKEN: 'sr_client_settings' })).toBe('Bearer sr_client_settings');
    expect(await headerSeen('', { SVC_OPERATOR_TOKEN: 'env:MINE', MINE: 'sr_client_both' })).toBe(
      'Bearer sr_client_both',
    );
    expect(await headerSeen('--auth-token sr_client_literal', {})).toBe('Bearer sr_client_literal');
    expect(await headerSeen('', {})).toBeUndefined();
  });

  it('that no Bearer header can carry goes as the password of Basic', async () => {
    const header = await headerSeen('--token env:MINE', { MINE: 'a static token, für alle' });
    expect(header).toBe(`Basic ${Buffer.from(':a static token, für alle').toString('base64')}`);
  });
});

function startWithTls(name: string): Promise<FixtureSigner> {
  return start(cannedSigner, makeCertificate(folder, name));
}

/** The Authorization header that reaches the signer. */
async function headerSeen(
  args: string,
  env: Readonly<Record<string, string>>,
  input = '',
): Promise<string | undefined> {
  const signer = await start(cannedSigner);
  const url = `--signer-url ${signer.url} --allow-plaintext-signer`;
  const { stdout, stderr } = await runShell(`printf '%s' '${input}' | strongroom operator status ${url} ${args}`, {
    folder,
    env,
  });
  expect(stdout + stderr).not.toMatch(/sr_client_[a-z]/);
  return signer.received[0]?.authorization;
}

function openssl(args: string): void {
  execFileSync('openssl', args.split(' '), { cwd: folder, stdio: 'pipe' });
}

describe('keys that are deleted in several batches', () => {
  it('keep the records of those that are gone when a later batch fails', async () => {
    let batches = 0;
    const signer = await start((received, response, request) => {
      batches += 1;
      if (batches === 1) cannedSigner(received, response, request);
      else answerRefusal(response, 'key_table_unavailable');
    });
    const [first, second] = ['a1', 'b2'].map((byte) => `0x${byte.repeat(48)}`);
    const deleted = await plainly(
      signer,
      `keys delete --pubkeys ${first},${second} --batch-size 1 --output gone.json --yes`,
    );
    expect(deleted.code).not.toBe(0);
    expect(deleted.stderr).toContain('1 of 2 keys was answered before this failed');
    expect(deleted.stderr).toContain('the slashing protection records are in gone.json');
    const { data } = JSON.parse(readFileSync(join(folder, 'gone.json'), 'utf8')) as { data: unknown[] };
    expect(data).toEqual([{ pubkey: first?.slice(0, 6) }]);
  });
});
