// The NSM's device file, the ioctl and the client over it: a CUSE program answers with documents of a test root, and
// the production verification reads them.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import { verifyDocument } from '../../../common/attestation/verify.ts';
import { encodeCbor } from '../../../common/formats/cbor.ts';
import { createNsm } from '../../../enclave/nsm/client.ts';
import { openNsmDevice } from '../../../enclave/platform.ts';
import type { Addon } from '../../../signer/native/load.ts';
import type { Nsm } from '../../../signer/tee/nsm.ts';
import type { Checks } from '../checks.ts';

type Check = Checks['check'];

const MEASURED = Buffer.alloc(48, 0xaa);
const CONFIGURATION_PCR = 16;
const CEREMONY_PCR = 17;
const PARALLEL_ATTESTATIONS = 8;

/** @returns the fingerprint of the root that its documents lead to */
export async function startDevice(): Promise<string> {
  const registers = JSON.stringify({ 0: MEASURED.toString('hex') });
  const program = spawn(process.execPath, [`${import.meta.dirname}/nsm-cuse.js`, '--pcrs', registers], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  process.once('exit', () => program.kill());
  for await (const line of createInterface({ input: program.stdout })) {
    const [, root] = /^nsm-cuse root ([0-9a-f]{64})$/.exec(line) ?? [];
    if (root !== undefined) return root;
  }
  throw new Error('the NSM of the guest did not start');
}

/** Everything, in the order of an enclave's boot; registers 16 and 17 are locked afterwards. */
export async function checkDevice(addon: Addon, check: Check, root: string): Promise<void> {
  const device = openNsmDevice(addon);
  const nsm = createNsm(device.exchange);

  await check('NSM: it describes itself, its registers are as measured', async () => {
    const { digest, maxPcrs, lockedPcrs } = await nsm.describe();
    assert.deepEqual([digest, maxPcrs], ['SHA384', 32]);
    assert(lockedPcrs.includes(0) && !lockedPcrs.includes(CONFIGURATION_PCR));
    assert.deepEqual(await nsm.describePcr(0), { value: MEASURED, locked: true });
  });

  await check('NSM: a register is extended, then locked, then neither', async () => {
    const data = randomBytes(48);
    const extended = createHash('sha384').update(Buffer.alloc(48)).update(data).digest();
    assert.deepEqual(await nsm.extendPcr(CONFIGURATION_PCR, data), extended);
    await nsm.lockPcr(CONFIGURATION_PCR);
    await assert.rejects(nsm.extendPcr(CONFIGURATION_PCR, data), { name: 'NsmError' });
    assert.deepEqual(await nsm.describePcr(CONFIGURATION_PCR), { value: extended, locked: true });
    await nsm.lockPcr(CEREMONY_PCR);
  });

  await check('NSM: the longest request passes, and an answer of its own errors is told', async () => {
    await attested(nsm, root, randomBytes(1024));
    await assert.rejects(nsm.describePcr(99), { name: 'NsmError' });
    await assert.rejects(device.exchange(Buffer.alloc(4097)), TypeError);
  });

  await checkRequests(addon, check, root);

  await check('NSM: a device that is closed lets its exchange end, and takes no more', async () => {
    const request = Buffer.from(encodeCbor('DescribeNSM'));
    const underWay = device.exchange(request);
    device.close();
    assert((await underWay).length > 0);
    await assert.rejects(device.exchange(request), { code: 'EBADF' });
  });
}

/** What a running signer asks for, again and again. */
export async function checkRequests(addon: Addon, check: Check, root: string): Promise<void> {
  await check(
    `NSM: random bytes, and ${PARALLEL_ATTESTATIONS} documents at once that the operator's verification accepts`,
    async () => {
      const device = openNsmDevice(addon);
      const nsm = createNsm(device.exchange);
      const [first, second] = [await nsm.random(), await nsm.random()];
      assert(first.length >= 32 && !first.equals(second));
      await Promise.all(Array.from({ length: PARALLEL_ATTESTATIONS }, () => attested(nsm, root, randomBytes(32))));
      device.close();
    },
  );
}

async function attested(nsm: Nsm, rootSha256: string, nonce: Buffer): Promise<void> {
  const document = await nsm.attest({ nonce, userData: Buffer.from('guest'), publicKey: randomBytes(294) });
  const verdict = verifyDocument(document, {
    provider: { name: 'the guest’s NSM', rootSha256 },
    at: Date.now(),
    maxAgeSeconds: 300,
    nonce,
    expectedUserData: Buffer.from('guest'),
    referenceValues: new Map([[0, [MEASURED.toString('hex')]]]),
  });
  assert(verdict.authentic && verdict.expected, JSON.stringify(verdict.failures));
  assert(verdict.document.pcrs.has(CONFIGURATION_PCR), 'a locked register is in the document');
}
