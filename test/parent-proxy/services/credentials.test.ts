// AWS credentials on their way into the enclave: the SDK's own provider asks, one question at a time reaches the chain,
// failures say nothing, and no log holds a secret.

import { createServer } from 'node:http';
import { fromHttp } from '@aws-sdk/credential-provider-http';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../common/observe/clock.ts';
import { parentCredentials } from '../../../enclave/parent/credentials.ts';
import { type Credentials, defaultChain } from '../../../parent-proxy/services/instance-credentials.ts';
import { CREDENTIALS_PATH, CREDENTIALS_PORT } from '../../../signer/api/parent-ports.ts';
import { type ProxyUnderTest, startProxyUnderTest, tcpServer } from '../../support/parent-proxy.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { hear } from '../../support/streams.ts';

const SECRET = 'a test secret, of nobody';
const EXPIRATION = new Date('2031-01-01T00:00:00Z');
const CREDENTIALS: Credentials = {
  accessKeyId: 'AKIDTEST',
  secretAccessKey: SECRET,
  sessionToken: 'a test token, of nobody',
  expiration: EXPIRATION,
};

const opened: { close(): Promise<void> }[] = [];
let proxy: ProxyUnderTest;

async function start(credentials?: () => Promise<Credentials>, monotonic?: () => number): Promise<void> {
  proxy = await startProxyUnderTest({
    ...(credentials === undefined ? {} : { credentials }),
    ...(monotonic === undefined ? {} : { clock: { monotonic } }),
  });
  opened.push(proxy);
}

afterEach(async () => {
  vi.unstubAllEnvs();
  for (const each of opened.splice(0).toReversed()) await each.close();
});

async function ask(request: string | Buffer): Promise<string> {
  const socket = await proxy.enclave.connect(CREDENTIALS_PORT);
  socket.write(request);
  const { bytes } = await hear(socket);
  socket.destroy();
  return bytes.toString();
}

const GET = `GET ${CREDENTIALS_PATH} HTTP/1.1\r\nHost: enclave\r\n\r\n`;

describe('the credentials service', () => {
  it("answers the enclave's provider", async () => {
    await start(async () => CREDENTIALS);
    const given = await parentCredentials(proxy.enclave, { clock: systemClock, log: recordingLog() })();
    expect(given).toEqual(CREDENTIALS);
    expect(proxy.sample('svc_parent_proxy_credentials_expiry_timestamp_seconds')).toBe(EXPIRATION.getTime() / 1000);
  });

  it("answers the AWS SDK's own container provider", async () => {
    await start(async () => CREDENTIALS);
    // What the enclave's loopback alias does.
    const alias = await tcpServer((socket) => {
      void proxy.enclave.connect(CREDENTIALS_PORT).then((stream) => socket.pipe(stream).pipe(socket));
    });
    opened.push(alias);
    const url = `http://127.0.0.1:${alias.port}${CREDENTIALS_PATH}`;
    expect(await fromHttp({ awsContainerCredentialsFullUri: url })()).toMatchObject(CREDENTIALS);
  });

  it("hands over the instance role's credentials, by the SDK's chain and the metadata service", async () => {
    const asked: string[] = [];
    const metadata = createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`);
      if (request.method === 'PUT') response.end('a session of the metadata service');
      else if (request.url?.endsWith('/security-credentials/')) response.end('the-role');
      else {
        const { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: Token } = CREDENTIALS;
        const Expiration = EXPIRATION.toISOString();
        response.end(JSON.stringify({ Code: 'Success', AccessKeyId, SecretAccessKey, Token, Expiration }));
      }
    });
    await new Promise<void>((resolve) => void metadata.listen(0, '127.0.0.1', resolve));
    opened.push({ close: () => new Promise((resolve) => void metadata.close(() => resolve())) });
    const address = metadata.address();
    if (address === null || typeof address === 'string') throw new Error('a TCP listener has an address');
    for (const name of Object.keys(process.env).filter((each) => each.startsWith('AWS_'))) vi.stubEnv(name, undefined);
    vi.stubEnv('AWS_EC2_METADATA_SERVICE_ENDPOINT', `http://127.0.0.1:${address.port}`);
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/nonexistent');
    vi.stubEnv('AWS_CONFIG_FILE', '/nonexistent');
    await start(await defaultChain());
    for (let time = 0; time < 3; time++) {
      const [, body = ''] = (await ask(GET)).split('\r\n\r\n');
      expect(JSON.parse(body)).toMatchObject({ AccessKeyId: 'AKIDTEST' });
    }
    // the chain keeps them until they are about to end
    expect(asked.filter((request) => request.endsWith('/the-role'))).toHaveLength(1);
  });

  it('asks the chain once for all who ask together', async () => {
    const answer = Promise.withResolvers<Credentials>();
    let asked = 0;
    await start(() => {
      asked += 1;
      return answer.promise;
    });
    const answers = Array.from({ length: 50 }, () => ask(GET));
    await proxy.reaches('svc_parent_proxy_open_connections{service="credentials",port="7002"}', 50);
    // What comes later is answered: the fifty have been read.
    for (let time = 0; time < 2; time++) expect(await ask('GET / HTTP/1.1\r\nHost: x\r\n\r\n')).toContain('404');
    answer.resolve(CREDENTIALS);
    for (const each of await Promise.all(answers)) expect(each).toContain('200 OK');
    expect(asked).toBe(1);
  });

  it('answers 503 without a word of why, and tells the chain’s failure again for a second', async () => {
    let asked = 0;
    let now = 0;
    await start(
      () => {
        asked += 1;
        return Promise.reject(new Error(`the process printed ${SECRET}`));
      },
      () => now,
    );
    for (let time = 0; time < 10; time++) {
      const answer = await ask(GET);
      expect(answer).toMatch(/^HTTP\/1\.1 503 /);
      expect(answer).not.toContain(SECRET);
    }
    expect(asked).toBe(1);
    now += 1_000;
    expect(await ask(GET)).toMatch(/^HTTP\/1\.1 503 /);
    expect(asked).toBe(2);
    expect(proxy.lines.join('\n')).toContain('no AWS credentials for the enclave');
    expect(proxy.lines.join('\n')).not.toContain(SECRET);
    expect(proxy.sample('svc_parent_proxy_credentials_requests_total{outcome="unavailable"}')).toBe(11);
  });

  it('never hands over the lasting keys of an IAM user', async () => {
    await start(async () => ({ accessKeyId: 'AKIDTEST', secretAccessKey: SECRET }));
    const answer = await ask(GET);
    expect(answer).toMatch(/^HTTP\/1\.1 503 /);
    expect(answer + proxy.lines.join()).not.toContain(SECRET);
    expect(proxy.lines.join()).toContain('LastingCredentialsError');
  });

  it.each([
    ['another path', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', /^HTTP\/1\.1 404 /],
    ['another method', `POST ${CREDENTIALS_PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`, /^HTTP\/1\.1 404 /],
    ['garbage', Buffer.alloc(1000, 0xfe), /^$/],
    ['a head without an end', `GET ${CREDENTIALS_PATH} HTTP/1.1\r\nX: ${'a'.repeat(100_000)}`, /^$/],
  ])('refuses %s', async (_, request, expected) => {
    await start(async () => CREDENTIALS);
    const answer = await ask(request);
    expect(answer).toMatch(expected);
    expect(answer).not.toContain(SECRET);
    expect(await ask(GET)).toContain('200 OK');
  });

  it('never has more connections than its limit, and serves when they are gone', async () => {
    await start(async () => CREDENTIALS);
    const silent = await Promise.all(Array.from({ length: 300 }, () => proxy.enclave.connect(CREDENTIALS_PORT)));
    for (const socket of silent) socket.on('error', () => undefined);
    await proxy.reaches(
      'svc_parent_proxy_connections_total{service="credentials",port="7002",outcome="limit"}',
      300 - 64,
    );
    expect(proxy.sample('svc_parent_proxy_open_connections{service="credentials",port="7002"}')).toBe(64);
    for (const socket of silent) socket.destroy();
    await proxy.reaches('svc_parent_proxy_open_connections{service="credentials",port="7002"}', 0);
    expect(await ask(GET)).toContain('200 OK');
  });

  it('is not there when the configuration wants none', async () => {
    await start();
    await expect(proxy.enclave.connect(CREDENTIALS_PORT)).rejects.toMatchObject({ code: 'ECONNRESET' });
  });
});
