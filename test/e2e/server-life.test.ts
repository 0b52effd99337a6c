// The life of the server process: how it starts, what refuses its start, and how it ends.

import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { runStrongroom } from '../../rehearsal/signer.ts';
import { deploy } from '../support/deployment.ts';
import { attestation, call, randaoReveal, signCall } from '../support/requests.ts';

/** A request has a permit, and waits for the slashing store. */
const INSIDE = /svc_signing_in_flight\{pool="normal"\} 1/;

const LOOPBACK = { listen_address: '127.0.0.1' };

describe('starting', () => {
  it('--check says that a configuration is valid and starts nothing', async () => {
    const { folder, config } = deploy(1, { server: LOOPBACK, metrics: LOOPBACK });
    const file = join(folder, 'strongroom.yaml');
    writeFileSync(file, stringify(config, { aliasDuplicateObjects: false }));
    const result = await runStrongroom(['server', '--check', '-c', file]);
    expect(result).toEqual({
      code: 0,
      stdout: 'strongroom: the configuration is valid\n',
      stderr: expect.stringMatching(/^warning: anti_slashing\.path names a store that is new: .*\n$/),
    });
  });

  it('every violation is printed with its path and origin, and the exit code is 78', async () => {
    const folder = deploy(1).folder;
    const file = join(folder, 'bad.yaml');
    writeFileSync(file, 'server: { listen_port: 99999 }\nanti_slashing: { backend: noop }\nsurprise: 1\n');
    const result = await runStrongroom(['server', '-c', file, '--signing-queue-buffer-size', 'many']);
    expect(result.code).toBe(78);
    for (const part of ['server.listen_port', 'bad.yaml', 'surprise', '--signing-queue-buffer-size', 'noop']) {
      expect(result.stderr).toContain(part);
    }
  });

  it('what only an enclave can give is refused outside of one, never ignored', async () => {
    const result = await runStrongroom(['server', '--tls-mode', 'ratls']);
    expect(result.code).toBe(78);
    expect(result.stderr).toMatch(/tls\.mode is ratls, and there is no TEE/);
  });

  it('a configuration for an enclave image is checked anywhere, and run in an image only', async () => {
    const file = join(deploy(1).folder, 'enclave.yaml');
    const endpoint = '{hostname: db.example.org, loopback: 127.0.1.1, vsock_port: 8001, port: 5432}';
    const sections = [
      'tls: {mode: ratls}',
      'anti_slashing: {backend: postgres, url: "postgres://signer@db.example.org/slashing"}',
      `tee: {platform: nitro, nitro: {unsafe_parent_writes_tables: true, egress: {endpoints: [${endpoint}]}}}`,
      'parent_proxy: {enclave_cid: 16}',
      'static_auth: {policies: [{name: a, rules: [{effect: allow}]}], anonymous: {policies: [a]}}',
    ];
    writeFileSync(file, sections.join('\n'));
    const checked = await runStrongroom(['server', '--check', '-c', file]);
    expect(checked.code).toBe(0);
    expect(checked.stderr).toMatch(/^(warning: .*\n)*$/);
    const run = await runStrongroom(['server', '-c', file]);
    expect(run.code).toBe(78);
    expect(run.stderr).toMatch(/tee\.platform is nitro, and this is not an enclave image\n.*strongroom eif build/s);
  });

  it('a key directory that is not there ends the start with exit code 1 and says which', async () => {
    const args = ['server', '--key-sources-filesystem-paths', '/nowhere/keys', '--anti-slashing-backend', 'noop'];
    const ports = ['--server-listen-port', '0', '--metrics-listen-port', '0', '--allow-unsafe-noop-anti-slashing'];
    const result = await runStrongroom([...args, ...ports]);
    expect(result.code).toBe(1);
    expect(result.stderr).toMatch(/cannot start: keys: .*\/nowhere\/keys/);
  });

  it('a port that is taken ends the start with exit code 1', async () => {
    const holder = createServer();
    await once(holder.listen(0, '127.0.0.1'), 'listening');
    const server = { listen_port: (holder.address() as AddressInfo).port };
    await expect(deploy(1).start({ config: { server } })).rejects.toThrow(/exit 1: .*listeners: .*EADDRINUSE/s);
    holder.close();
  });

  it('unknown commands and --help', async () => {
    expect((await runStrongroom(['sever'])).code).toBe(1);
    expect((await runStrongroom(['--help'])).stdout).toMatch(/server.*slashing/s);
    expect((await runStrongroom(['server', '--help'])).stdout).toMatch(/--anti-slashing-sqlite-path/);
    expect((await runStrongroom(['slashing', '--help'])).stdout).toMatch(/EIP-3076/);
  });
});

describe('ending', () => {
  it('SIGTERM: requests in flight are answered, then the process ends with 0', async () => {
    const deployment = deploy(4);
    const signer = await deployment.start();
    const requests = Array.from({ length: 200 }, (_, index) =>
      signCall(signer.url, deployment.keys[index % 4]?.publicKey ?? '', randaoReveal(index)).then(
        ({ status }) => status,
        () => 0,
      ),
    );
    await Promise.race(requests);
    const code = await signer.stop();
    expect(code).toBe(0);
    const statuses = await Promise.all(requests);
    // A connection may be refused after the signal, or answered 503; none that was accepted is cut.
    expect(new Set(statuses.filter((status) => status !== 200 && status !== 503))).toEqual(
      statuses.includes(0) ? new Set([0]) : new Set(),
    );
    await signer.logged('stopped');
    expect(signer.log.filter(({ msg }) => msg === 'requests were cut: the grace time is over')).toEqual([]);
  });

  it('a slashing store that hangs does not hold the end up beyond the grace time', async () => {
    const deployment = deploy(1);
    const signer = await deployment.start({ config: { server: { graceful_shutdown_timeout_seconds: 2 } } });
    const database = new DatabaseSync(join(signer.folder, 'slashing_protection.sqlite'));
    // The next record takes the database some minutes.
    database.exec(
      `CREATE VIEW slow AS WITH RECURSIVE numbers(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM numbers)
         SELECT value FROM numbers LIMIT 2000000000;
       CREATE TRIGGER hang BEFORE INSERT ON attestations BEGIN SELECT count(*) FROM slow; END`,
    );
    database.close();
    const answer = signCall(signer.url, deployment.keys[0]?.publicKey ?? '', attestation()).catch(() => undefined);
    await expect.poll(async () => (await call(signer.metricsUrl)).text, { interval: 1000 }).toMatch(INSIDE);
    expect(await signer.stop()).toBeNull(); // ended by the kernel: its thread is not to be had back
    await answer;
    // The deadline of 2 s is the one that counted, for the requests and for the store (test/boot/ending.test.ts).
    await signer.logged('requests were cut: the grace time is over', { timeout_seconds: 1.6 });
    await signer.logged('the slashing store does not answer: it is closed');
    await signer.logged('stopped');
  });

  it('a client that stalls in mid-request does not hold the end up longer than the grace time', async () => {
    const signer = await deploy(1).start({ config: { server: { graceful_shutdown_timeout_seconds: 1 } } });
    const socket = connect(Number(new URL(signer.url).port), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write('POST /api/v1/eth2/sign/0xab HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf');
    await new Promise((resolve) => socket.once('data', resolve)); // refused without credentials, the body is still owed
    expect(await signer.stop()).toBe(0);
    socket.destroy();
  });
});

describe('the environment and flags', () => {
  it('flags win over the environment, the environment over the file', async () => {
    const deployment = deploy(1, { logging: { level: 'error' } });
    const signer = await deployment.start({
      env: { SVC_LOGGING__LEVEL: 'warn', SVC_NETWORK: 'hoodi' },
      args: ['--logging-level', 'info', '--network', 'sepolia'],
    });
    expect(parse(readFileSync(join(deployment.folder, 'strongroom.yaml'), 'utf8')).logging.level).toBe('error');
    const answer = await signCall(signer.url, deployment.keys[0]?.publicKey ?? '', attestation());
    expect(answer.json['reason']).toBe('network_mismatch'); // mainnet's request at a sepolia signer
    await signer.stop();
  });
});
