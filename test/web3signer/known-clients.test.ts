// --tls-known-clients-file: whoever is in the file may do what Web3Signer lets them do, and nobody else is let in.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type RunningSigner, runStrongroom, startSigner } from '../../rehearsal/signer.ts';
import { makeCertificate } from '../support/certificates.ts';
import { type Issued, issueSelfSigned } from '../support/client-certificates.ts';
import { call } from '../support/requests.ts';
import { keptConnection, tlsCall } from '../support/tls-call.ts';
import { ON_FREE_PORTS, writeToolKeystore } from '../support/web3signer-tools.ts';

let folder = '';
let known: Issued;
let stranger: Issued;
let command: readonly string[];
let tls: Record<string, string>;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-front-'));
  [known, stranger] = [await issueSelfSigned('CN=teku'), await issueSelfSigned('CN=teku')];
  writeFileSync(join(folder, 'knownClients'), `teku ${known.fingerprint}\n`);
  writeToolKeystore(folder);
  const { cert, key } = makeCertificate(folder, 'signer');
  tls = {
    SVC_TLS__MODE: 'file',
    SVC_TLS__LISTEN_PORT: '0',
    SVC_TLS__FILE__CERT_PATH: cert,
    SVC_TLS__FILE__KEY_PATH: key,
  };
  command = [`--key-store-path=${folder}`, `--tls-known-clients-file=${folder}/knownClients`, 'eth2'];
});
afterAll(() => rmSync(folder, { recursive: true }));

let signer: RunningSigner | undefined;
afterEach(async () => {
  await signer?.stop();
  signer = undefined;
});

it('lets in whom the file knows, over TLS alone', async () => {
  signer = await startSigner({ folder, command, env: { ...ON_FREE_PORTS, ...tls } });
  const list = `${signer.tlsUrl}/api/v1/eth2/publicKeys`;
  const [good, bad] = [keptConnection(known), keptConnection(stranger)];
  expect(await tlsCall(list, good)).toMatchObject({ status: 200 });
  await expect(tlsCall(list, bad)).rejects.toThrow();
  good.destroy();
  bad.destroy();
  expect((await call(`${signer.url}/api/v1/eth2/publicKeys`, { token: null })).status).toBe(401);
  expect(await signer.logged('request', { accessor: 'client:web3signer/teku' })).toMatchObject({ outcome: 'ok' });
  expect(signer.log.filter(({ option }) => option === 'static_auth')).toEqual([]);
});

it('is refused without TLS, beside --tls-allow-any-client, and with a file that says nothing', async () => {
  const without = await runStrongroom(command, { env: ON_FREE_PORTS });
  expect(without).toMatchObject({ code: 78, stderr: expect.stringContaining('no TLS listener asks for it') });
  expect(without.stderr).toContain('set by: flag --tls-known-clients-file');
  const both = await runStrongroom(['--tls-allow-any-client=true', ...command], { env: { ...ON_FREE_PORTS, ...tls } });
  expect(both).toMatchObject({ code: 78, stderr: expect.stringContaining('cannot be true beside') });
  writeFileSync(join(folder, 'nobody'), 'teku\n');
  const nobody = ['--key-store-path', folder, '--tls-known-clients-file', join(folder, 'nobody'), 'eth2'];
  const refused = await runStrongroom(nobody, { env: { ...ON_FREE_PORTS, ...tls } });
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('nobody line 1 is not a common name') });
});
