// Commands to an enclave: with reference values the peer is attested before anything of a request is sent, and nothing
// else will do.

import { getEventListeners, once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CEREMONY_PCR, CONFIGURATION_PCR } from '../../common/attestation/contract.ts';
import { parseRegisters } from '../../common/attestation/reference-file.ts';
import { extendedOnce } from '../../common/formats/register.ts';
import { createNsm } from '../../enclave/nsm/client.ts';
import { createIdentity } from '../../enclave/ratls/identity.ts';
import { connectAttested } from '../../operator/connect.ts';
import { createNsmEmulator, testPcr } from '../../rehearsal/nsm/emulator.ts';
import { makeCertificate } from '../support/certificates.ts';
import {
  CEREMONY,
  CONFIGURATION,
  expectRefusal,
  expectUntouched,
  folder,
  KNOWN,
  OTHER,
  PCR0,
  pki,
  start,
  startEnclave,
  status,
  TOKEN,
} from './attested-set-up.ts';
import { honestRoute, makeEnclave } from './ratls-server.ts';
import { runWithRoot } from './run-operator.ts';
import { runShell } from './transcript.ts';

describe('an enclave that is who it should be', () => {
  it('is asked, over the connection that was verified', async () => {
    const server = await startEnclave();
    const outcome = await status(server);
    expect(outcome).toMatchObject({ code: 0, stderr: '' });
    expect(outcome.stdout).toContain('Unsealed');
    expect(server.connections).toHaveLength(1);
    expect(server.received).toMatchObject([{ path: '/api/v1/chamber/status', authorization: `Bearer ${TOKEN}` }]);
    expect(server.bytes().indexOf('/api/v1/attestation?nonce=')).toBeLessThan(server.bytes().indexOf('authorization'));
  });

  it('with configuration and ceremony measured', async () => {
    const emulator = await createNsmEmulator({ pki });
    const nsm = createNsm(emulator.exchange);
    for (const [index, digest] of [
      [CONFIGURATION_PCR, CONFIGURATION],
      [CEREMONY_PCR, CEREMONY],
    ] as const) {
      await nsm.extendPcr(index, digest);
      await nsm.lockPcr(index);
    }
    const identity = await createIdentity({ nsm, clock: { now: Date.now }, validitySeconds: 3600 });
    const server = await start(identity, honestRoute(nsm, identity));
    const [right16, right17] = [extendedOnce(CONFIGURATION), extendedOnce(CEREMONY)].map((value) =>
      value.toString('hex'),
    );
    expect((await expectRefusal(server, 6, 'wrong_pcr', `--pcr ${PCR0} --pcr 16=${OTHER}`)).stderr).toContain(
      'PCR16 is',
    );
    expect((await expectRefusal(server, 6, 'wrong_pcr', `${KNOWN} --pcr 17=${OTHER}`)).stderr).toContain('PCR17 is');
    expect((await status(server, `--pcr ${PCR0} --pcr 16=${right16} --pcr 17=${right17}`)).code).toBe(0);
  });

  it('by a file, a variable, a profile', async () => {
    const server = await startEnclave();
    const config = join(folder, 'config');
    mkdirSync(join(config, 'strongroom'), { recursive: true });
    writeFileSync(
      join(config, 'strongroom', 'pcrs.json'),
      JSON.stringify({ measurements: { PCR0: [OTHER, testPcr(0).toString('hex')] } }),
    );
    writeFileSync(
      join(config, 'strongroom', 'operator.yaml'),
      `profiles:\n  default:\n    pcrs: pcrs.json\n    any_configuration: true\n    pcr: { 8: ${testPcr(8).toString('hex')} }\n  other:\n    pcrs: pcrs.json\n    any_configuration: true\n    pcr: { 8: [${OTHER}] }\n`,
      { mode: 0o600 },
    );
    expect((await status(server, '', { SVC_OPERATOR_PCR: PCR0, SVC_OPERATOR_ANY_CONFIGURATION: 'true' })).code).toBe(0);
    expect((await status(server, `--any-configuration --pcrs ${join(config, 'strongroom', 'pcrs.json')}`)).code).toBe(
      0,
    );
    expect((await status(server, '', { XDG_CONFIG_HOME: config })).code).toBe(0);
    expect((await status(server, '--profile other', { XDG_CONFIG_HOME: config })).code).toBe(6);
  });

  it('while its NSM is busy is asked again, a few times', async () => {
    const { identity, nonceRoute } = await makeEnclave({ pki });
    let asked = 0;
    const server = await start(identity, (nonce, socket) =>
      ++asked < 3 ? Promise.resolve(503) : nonceRoute(nonce, socket),
    );
    expect((await status(server)).code).toBe(0);
    const busy = await start(identity, async () => 503);
    const { code, stderr } = await status(busy);
    expect(stderr).toContain('the enclave is too busy to attest itself');
    expect(code).toBe(2);
    expectUntouched(busy);
  });
});

describe('a connection', () => {
  it('that was closed is let go of by the signal that would have ended it', async () => {
    const server = await startEnclave();
    const ending = new AbortController();
    const attestation = {
      provider: { name: 'the test authority', rootSha256: pki.rootFingerprint },
      referenceValues: parseRegisters([PCR0]),
      maxAgeSeconds: 10_800,
      now: Date.now,
    };
    const { socket } = await connectAttested({ url: new URL(server.url), attestation }, ending.signal);
    expect(getEventListeners(ending.signal, 'abort')).toHaveLength(1);
    socket.destroy();
    await once(socket, 'close');
    expect(getEventListeners(ending.signal, 'abort')).toHaveLength(0);
  });
});

describe('reference values and ordinary TLS do not mix', () => {
  it('a certificate of a trusted authority does not stand in for evidence', async () => {
    const { cert, key } = makeCertificate(folder, 'trusted');
    const server = await start(
      { cert: readFileSync(cert, 'utf8'), key: readFileSync(key), spki: Buffer.alloc(0) },
      async () => 404,
    );
    const { code, stderr } = await status(server, `${KNOWN} --tls-ca ${cert}`);
    expect(code).toBe(1);
    expect(stderr).toContain(
      '--tls-ca is for an ordinary certificate, but an enclave is known by its reference values',
    );
    expect(server.connections).toEqual([]);
  });

  it.each([
    ['--pcr 16=ab', 'PCR16: a value is not 48 bytes of hex'],
    [`--pcr 16=${OTHER}`, 'PCR0 is missing'],
    [`--pcr 0=${'00'.repeat(48)}`, 'zeros are what an enclave in debug mode has'],
    [`--pcr 32=${OTHER}`, 'does not name a register'],
    [`--pcr ${OTHER}`, 'does not name a register'],
    ['--pcrs nowhere.json', 'cannot be read (ENOENT)'],
    [`${KNOWN} --max-age 0`, '--max-age is a whole number of seconds'],
    ['--max-age 60', '--max-age is about evidence: it needs --pcrs or --pcr'],
    ['--any-configuration', '--any-configuration is about evidence: it needs --pcrs or --pcr'],
    [`--pcr ${PCR0}`, '--pcr: PCR16 is missing: the image would be accepted with any configuration'],
    [`${KNOWN} --allow-plaintext-signer --signer-url http://127.0.0.1:1`, 'without TLS nobody is attested'],
  ])('wrong usage, and no connection: %s', async (flags, message) => {
    const argv = ['status', ...flags.split(' ')];
    const { code, stderr } = await runWithRoot(argv, { rootFingerprint: pki.rootFingerprint });
    expect(stderr).toContain(message);
    expect(code).toBe(1);
  });

  it('the program itself trusts AWS alone: the test authority is unknown to it', async () => {
    const server = await startEnclave();
    const env = { SVC_OPERATOR_TOKEN: TOKEN };
    const { code, stderr } = await runShell(`strongroom operator status --signer-url ${server.url} ${KNOWN}`, {
      folder,
      env,
    });
    expect(stderr).toContain('untrusted_root: ');
    expect(code).toBe(5);
    expectUntouched(server);
  });
});
