// TLS clients with certificates of two authorities and of their own, made once for all tests of a file, and signers
// that know some of them. Connections of a test end with it.

import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Agent } from 'node:https';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { connect, type SecureVersion } from 'node:tls';
import { afterEach, beforeAll, expect } from 'vitest';
import { parse, stringify } from 'yaml';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { makeCertificate } from '../support/certificates.ts';
import { Authority, type Issued, issueSelfSigned } from '../support/client-certificates.ts';
import { deploy } from '../support/deployment.ts';
import { call, TEST_TOKEN } from '../support/requests.ts';
import { keptConnection, type TlsAnswer } from '../support/tls-call.ts';

const POLICIES = [
  { name: 'list', rules: [{ effect: 'allow', scopes: ['public_keys'] }] },
  { name: 'reload', rules: [{ effect: 'allow', scopes: ['reload'] }] },
];
export const RELOADER = 'sr_client_TEST_TOKEN_that_may_reload_0000000001';
export const PATH = '/api/v1/eth2/highWatermark';
const LONG_AGO = { notBefore: new Date('2020-01-01'), notAfter: new Date('2020-02-01') };
export const CERTIFICATE_HEADERS = {
  'x-client-cert': 'CN=teku,O=Example',
  'x-ssl-client-s-dn': 'CN=teku,O=Example',
  'x-forwarded-client-cert': 'Subject="CN=teku,O=Example"',
  'x-forwarded-for': '192.0.2.1',
};

let agents: Agent[] = [];
afterEach(() => {
  for (const agent of agents) agent.destroy();
  agents = [];
});

export function client(identity: Partial<Issued> = {}, maxVersion?: SecureVersion): Agent {
  const agent = keptConnection({ ...identity, ...(maxVersion === undefined ? {} : { maxVersion }) });
  agents.push(agent);
  return agent;
}

export const answerOf = ({ status, reason }: TlsAnswer) => [status, reason];

export async function started(tls: Record<string, unknown>, more: Record<string, unknown> = {}) {
  const deployment = deploy(0, {
    static_auth: {
      policies: POLICIES,
      tokens: [
        { secret: TEST_TOKEN, policies: ['list'] },
        { name: 'reloader', secret: RELOADER, policies: ['reload'] },
      ],
    },
    ...more,
  });
  const own = makeCertificate(deployment.folder, 'signer');
  const files = { cert_path: own.cert, key_path: own.key, reload_interval_seconds: 86_400 };
  return deployment.start({ config: { tls: { mode: 'file', listen_port: 0, file: files, ...tls } } });
}

export async function reloaded({ folder, url }: RunningSigner, change: (tls: { known_clients: unknown[] }) => void) {
  const file = join(folder, readdirSync(folder).find((name) => name.endsWith('.yaml')) ?? '');
  const config = parse(readFileSync(file, 'utf8')) as { tls: { known_clients: unknown[] } };
  change(config.tls);
  writeFileSync(file, stringify(config));
  expect((await call(`${url}/reload`, { method: 'POST', token: RELOADER })).status).toBe(202);
  for (;;) {
    const { json } = await call(`${url}/reload`, { token: RELOADER });
    if (json['status'] !== 'running') return json;
    await setTimeout(5);
  }
}

export let folder: string;
let root: Authority;
export let other: Authority;
export let files: { ca: string; known: string };
export const ids: Record<string, Issued> = {};
export const id = (name: string): Issued => ids[name] ?? expect.unreachable(`no certificate ${name}`);

beforeAll(async () => {
  ({ folder } = deploy(0));
  root = await Authority.root('clients');
  other = await Authority.root('strangers');
  const intermediate = await root.intermediate('site');
  Object.assign(ids, {
    teku: await root.issue('O=Example, CN=teku'),
    chained: await intermediate.issue('CN=chained'),
    stranger: await root.issue('CN=stranger'),
    expired: await root.issue('O=Example, CN=teku', LONG_AGO),
    wrongAuthority: await other.issue('O=Example, CN=teku'),
    wrongUsage: await root.issue('O=Example, CN=teku', { usage: 'server' }),
    noUsage: await root.issue('O=Example, CN=teku', { usage: 'none' }),
    pinned: await issueSelfSigned('CN=ssv'),
    pinnedExpired: await issueSelfSigned('CN=ssv-old', LONG_AGO),
    unpinned: await issueSelfSigned('O=Example, CN=teku'),
    whole: await issueSelfSigned('CN=whole'),
    listed: await issueSelfSigned('CN=Listed'),
    misnamed: await issueSelfSigned('CN=misnamed'),
    elsewhere: await issueSelfSigned('CN=elsewhere'),
  } satisfies Record<string, Issued>);
  files = { ca: join(folder, 'ca.pem'), known: join(folder, 'knownClients.txt') };
  writeFileSync(files.ca, root.pem);
  const colons = (id('listed').fingerprint.match(/../g) ?? []).join(':').toUpperCase();
  writeFileSync(files.known, `# known\n\nlisted ${colons}\r\nsomebody ${id('misnamed').fingerprint}\n`);
});

export const knownClients = () => [
  { name: 'teku', subject: 'CN=teku, O=Example', policies: ['list'] },
  { name: 'chained', subject: 'CN=chained', policies: ['list'] },
  { name: 'ssv', spki_sha256: id('pinned').spkiSha256, policies: ['list'] },
  { name: 'ssv-old', spki_sha256: id('pinnedExpired').spkiSha256, policies: ['list'] },
  { name: 'whole', certificate_sha256: id('whole').fingerprint.toUpperCase(), policies: ['list'] },
  { name: 'fleet', file: files.known, policies: ['list'] },
  { name: 'far', spki_sha256: id('elsewhere').spkiSha256, policies: ['list'], bound_cidrs: ['10.0.0.0/8'] },
];

/** What a client could go on with after its connection. */
export async function sessionOf(
  { tlsUrl = '' }: RunningSigner,
  { cert, key }: Issued,
  version: SecureVersion,
): Promise<Buffer> {
  const { hostname: host, port } = new URL(tlsUrl);
  const socket = connect({ host, port: Number(port), cert, key, rejectUnauthorized: false, maxVersion: version });
  let session: Buffer | undefined;
  socket.on('session', (one: Buffer) => {
    session = one;
  });
  await once(socket, 'secureConnect');
  socket.write(`GET ${PATH} HTTP/1.1\r\nHost: signer\r\nConnection: close\r\n\r\n`);
  expect((await socket.setEncoding('utf8').toArray()).join('')).toContain('HTTP/1.1 200');
  return session ?? socket.getSession() ?? expect.unreachable('there is no session at all');
}

export async function resumes(
  { tlsUrl = '' }: RunningSigner,
  { session, version }: { readonly session: Buffer; readonly version: SecureVersion },
): Promise<boolean> {
  const { hostname: host, port } = new URL(tlsUrl);
  const socket = connect({ host, port: Number(port), session, rejectUnauthorized: false, maxVersion: version });
  await once(socket, 'secureConnect');
  const isReused = socket.isSessionReused();
  socket.destroy();
  return isReused;
}

/** Without the certificate: only the session could say who it is. */
export async function resumedAnswer({ tlsUrl = '' }: RunningSigner, session: Buffer): Promise<string> {
  const { hostname: host, port } = new URL(tlsUrl);
  const socket = connect({ host, port: Number(port), session, rejectUnauthorized: false });
  socket.write(`GET ${PATH} HTTP/1.1\r\nHost: signer\r\nConnection: close\r\n\r\n`);
  return (await socket.setEncoding('utf8').toArray()).join('');
}
