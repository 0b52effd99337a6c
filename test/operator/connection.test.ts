// Whom the CLI talks to, what it sends before it knows, and what it makes of answers that are none.

import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { someOf } from '../support/scale.ts';
import { cannedSigner } from './canned-signer.ts';
import { folder, operator, plainly, start, TOKEN } from './connection-set-up.ts';
import { type Answerer, answerRefusal } from './fixture-signer.ts';
import { runShell } from './transcript.ts';

describe('recover', () => {
  const YES = 'recover --table nowhere --yes';
  const answering =
    (status: number, body: string): Answerer =>
    (_received, response) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(body);
    };

  const FOREIGN: readonly [string, Answerer][] = [
    ['another service', answering(200, '{"status":"ok"}')],
    ['a proxy without a signer behind it', answering(502, '<h1>Bad Gateway</h1>')],
    ['a proxy that wants a login', answering(401, 'who are you?')],
    ['a service that is not well', answering(503, '{"error":"down"}')],
  ];
  it.each(someOf(FOREIGN, 2))('%s is a foreign answer, and deletes no latch', async (_name, answer) => {
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

  it.each(someOf(['{"state":"Open"}', 'OK', ''], 2))('an answer that is no status is refused: %s', async (text) => {
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

describe('the token', () => {
  it('comes from a variable, a file, stdin, the environment or the command line', async () => {
    writeFileSync(join(folder, 'token'), 'sr_client_file\n', { mode: 0o600 });
    const sources: readonly [args: string, env: Record<string, string>, input: string, header: string | undefined][] = [
      ['--token @token', {}, '', 'Bearer sr_client_file'],
      ['--token env:MINE', { MINE: 'sr_client_variable' }, '', 'Bearer sr_client_variable'],
      ['--token -', {}, 'sr_client_stdin', 'Bearer sr_client_stdin'],
      ['--auth-token sr_client_literal', {}, '', 'Bearer sr_client_literal'],
      ['', { SVC_OPERATOR_TOKEN: 'env:MINE', MINE: 'sr_client_both' }, '', 'Bearer sr_client_both'],
      ['', { SVC_OPERATOR_TOKEN: 'sr_client_settings' }, '', 'Bearer sr_client_settings'],
      ['', {}, '', undefined],
    ];
    for (const [args, env, input, header] of someOf(sources, 4)) {
      expect(await headerSeen(args, env, input)).toBe(header);
    }
  });

  it('that no Bearer header can carry goes as the password of Basic', async () => {
    const header = await headerSeen('--token env:MINE', { MINE: 'a static token, für alle' });
    expect(header).toBe(`Basic ${Buffer.from(':a static token, für alle').toString('base64')}`);
  });
});

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
