// docs/runbooks/signer-unavailable.md, from the alert to its end: a signer that died, one that cannot start, keys that
// are gone, limits that are too low, a process that stood still. It signs again, and nothing twice.

import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { connect as connectTcp, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeCertificate, makeExpiredCertificate } from '../support/certificates.ts';
import { ownAddress } from '../support/own-address.ts';
import { nextEpoch, presentEpoch, QUICK_CHAIN, withTolerance } from '../support/quick-chain.ts';
import { tellsOneStory } from '../support/skip.ts';
import { after } from './follow.ts';
import type { Block } from './page.ts';
import { rehearseSection } from './rehearse.ts';
import { type ServiceWorld, startServiceRunbooks } from './service-world.ts';

const CERTIFICATE_PAGE = 'docs/runbooks/certificates-and-clocks.md';
const PAGE = 'docs/runbooks/signer-unavailable.md';
let world: ServiceWorld;
let voted = presentEpoch();
/** An epoch for the next vote: later than all before, and than what a jump made until now raised the keys to. */
const next = async (): Promise<number> => {
  voted = await nextEpoch(voted);
  return voted;
};
/** What holds connections open: `ss` counts those of the whole machine, other tests' among them, by address. */
const CLIENT = ownAddress(30);
const keyAt = (index: number): string => world.keys[index] ?? '';

tellsOneStory();

beforeAll(async () => {
  world = await startServiceRunbooks({ sections: QUICK_CHAIN });
  world.configure((all) => Object.assign(all, { anti_slashing: withTolerance(all['anti_slashing'] as object) }));
  await world.unit.start();
});
afterAll(() => world?.close());

interface Reader {
  readonly page?: string;
  readonly values?: Readonly<Record<string, string>>;
  readonly also?: (block: Block) => Promise<void>;
}

const follow = (section: string, { page = PAGE, values, also }: Reader = {}) =>
  rehearseSection(page, section, { ...world, values: { ...world.values, ...values } }, { before: after(world, also) });
/** A signal to 0 would go to the tests. */
function runningPid(): number {
  const pid = world.unit.signer?.pid;
  if (pid === undefined) throw new Error('no signer runs');
  return pid;
}

/** What a person does in a file, before the service takes it up. */
const beforeCommand =
  (command: string, edit: () => void | Promise<void>) =>
  async ({ commands }: Block): Promise<void> => {
    if (commands.includes(command)) await edit();
  };
const said = (blocks: Awaited<ReturnType<typeof follow>>): string => blocks.map(({ output }) => output).join('\n');

it('#down: the process died; it is started, and knows what it signed', async () => {
  expect(await world.vote(keyAt(0), voted)).toBe('signed');
  await world.unit.kill();
  await follow('down');
  expect(await world.vote(keyAt(0), voted, { head: 9 })).toBe('double_vote');
  expect(await world.vote(keyAt(0), await next())).toBe('signed');
});

it('#nothing-signed, #keys: a key file is broken; its key comes back with the file', async () => {
  const file = join(world.etc, 'keys/key-0.yaml');
  const good = readFileSync(file, 'utf8');
  await world.unit.stop();
  writeFileSync(file, 'type: file-raw\n');
  await world.unit.start();
  expect(await world.vote(keyAt(0), await next())).toBe('unknown_key');
  const mend = async (): Promise<void> => {
    const found = await follow('keys', {
      also: beforeCommand('systemctl reload', () => writeFileSync(file, good)),
    });
    expect(said(found)).toContain('key-0.yaml');
    expect(found.at(-1)?.output).toMatch(/^3$/m); // after what the loop shows while it waits
    expect(await world.vote(keyAt(0), await next())).toBe('signed');
  };
  const found = await follow('nothing-signed', {
    also: beforeCommand('grep \'^svc_signing_requests_total.*outcome="signed"', mend),
  });
  expect(said(found)).toMatch(/outcome="unknown_key".* [1-9]/);
});

it('#restarts: its port is taken, so that no start comes through', async () => {
  await world.unit.stop();
  const squatter = await listenOn(world.address, 3000);
  await expect(world.unit.start()).rejects.toThrow('EADDRINUSE');
  const limits = { max_concurrent_jobs: 1, queue_buffer_size: 0, priority: { enabled: false } };
  world.configure((all) => {
    Object.assign(all, { signing: limits });
    Object.assign(all['server'] as object, { mlock: 'off' });
    Object.assign(all['tls'] as object, { max_connections: 3 });
  });
  const found = await follow('restarts', {
    also: beforeCommand('systemctl start', () => new Promise((resolve) => void squatter.close(() => resolve()))),
  });
  expect(said(found)).toMatch(/metrics\.listen_port is 3000, where another process listens/);
  expect(await world.vote(keyAt(0), await next())).toBe('signed');
});

it('#connections, #overloaded, #memory: the limits are too low, until they are raised', async () => {
  const raise = (section: string, limit: string) =>
    beforeCommand('systemctl restart', () =>
      world.configure((all) => void delete (all[section] as Record<string, unknown>)[limit]),
    );
  const metrics = async () => (await fetch(`http://${world.address}:3000/metrics`)).text();
  const sockets = await fillConnections(world.address, 3);
  const newcomer = await letIn(world.address); // the oldest goes for it
  expect(newcomer).toBeDefined();
  await expect.poll(metrics).toMatch(/^svc_connections_refused_total\{reason="displaced"\} [1-9]/m);
  const connections = await follow('connections', { also: raise('tls', 'max_connections') });
  for (const socket of [...sockets, newcomer]) socket?.destroy();
  expect(said(connections).split(/\n */)).toContain(`3 ${CLIENT}`);

  let slot = 32 * (await next());
  const burst = () => {
    const slots = [1, 2, 3].map(() => ++slot);
    return Promise.all(slots.flatMap((at) => world.keys.map((key) => world.propose(key, at))));
  };
  await expect.poll(burst).toContain('overloaded');
  const overloaded = await follow('overloaded', { also: raise('signing', 'queue_buffer_size') });
  expect(said(overloaded)).toMatch(/static:validator-client BLOCK_V2 overloaded/);

  const memory = await follow('memory', { also: raise('server', 'mlock') });
  expect(said(memory)).toContain('svc_unlocked_keys 3');
  const signed = await Promise.all(world.keys.map((key) => world.propose(key, slot + 1)));
  expect(signed).toEqual(['signed', 'signed', 'signed']);
});

it('docs/runbooks/certificates-and-clocks.md#certificate-file: it has expired; the new one is served without a restart', async () => {
  const [cert, key] = [join(world.etc, 'signer.crt'), join(world.etc, 'signer.key')];
  const expired = await makeExpiredCertificate(world.folder, 'expired');
  const fresh = makeCertificate(world.folder, 'fresh', `IP:${world.address}`);
  await world.unit.stop();
  copyFileSync(expired.cert, cert);
  copyFileSync(expired.key, key);
  await world.unit.start();
  const pid = world.unit.signer?.pid;
  const values = { CERTIFICATE: cert, CERTIFICATE_KEY: key, NEW_CERTIFICATE: fresh.cert, NEW_KEY: fresh.key };
  expect(said(await follow('certificate-file', { page: CERTIFICATE_PAGE, values }))).toContain(
    'notAfter=Feb  1 00:00:00 2020 GMT',
  );
  expect(world.unit.signer?.pid).toBe(pid);
  expect(await world.vote(keyAt(0), await next())).toBe('signed');
});

it('#slow, #log, #internal-errors: it stood still for a while; its log is whole, and nothing failed', async () => {
  const pid = runningPid();
  const epoch = await next();
  process.kill(pid, 'SIGSTOP');
  const late = world.vote(keyAt(0), epoch);
  // The fault itself: so long it stands still. On a busy machine longer, which the page shows as well.
  await new Promise((resolve) => setTimeout(resolve, 1500));
  process.kill(pid, 'SIGCONT');
  expect(await late).toBe('signed');
  expect(said(await follow('slow'))).toMatch(/^svc_event_loop_lag_seconds\{statistic="max"\} [1-9]/m);
  await follow('log');
  await follow('internal-errors');
  expect(await world.vote(keyAt(0), voted, { head: 9 })).toBe('double_vote');
  expect(await world.vote(keyAt(0), await next())).toBe('signed');
});

async function listenOn(address: string, port: number): Promise<Server> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  return server;
}

/** A connection that asked once and is kept alive; undefined when the signer cut it off. */
async function letIn(host: string): Promise<TLSSocket | undefined> {
  const connection = connectTcp({ host, port: 9443, localAddress: CLIENT });
  const socket = connect({ socket: connection, rejectUnauthorized: false });
  socket.once('secureConnect', () => socket.write('GET /upcheck HTTP/1.1\r\nHost: signer\r\n\r\n'));
  const answered = await new Promise<boolean>((resolve) => {
    socket.once('data', () => resolve(true)).once('close', () => resolve(false));
    socket.on('error', () => undefined); // 'close' follows
  });
  return answered ? socket : undefined;
}

/** All connections that the limit allows are ours, once those of earlier votes have ended. */
async function fillConnections(host: string, limit: number): Promise<readonly TLSSocket[]> {
  const sockets: TLSSocket[] = [];
  const fill = async () => {
    const socket = await letIn(host);
    if (socket !== undefined) sockets.push(socket);
    return sockets.filter(({ destroyed }) => !destroyed).length; // each takes the place of the oldest when it is full
  };
  await expect.poll(fill).toBe(limit);
  return sockets;
}
