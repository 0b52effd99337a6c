// The program of suite "native", inside its guest. Order matters at the end: the filter of system calls cannot be taken
// back, and what is checked after it is checked under it.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { applySystemCallPolicy } from '../../../signer/boot/system-call-filter.ts';
import { type Addon, loadAddon } from '../../../signer/native/load.ts';
import { vsockTransport } from '../../../signer/native/vsock.ts';
import type { StreamVariant } from '../../../signer/native/vsock-stream.ts';
import { type Checks, createChecks } from '../checks.ts';
import { checkDescriptors } from './descriptor-checks.ts';
import { checkHttp } from './http-checks.ts';
import { checkDevice, checkRequests, startDevice } from './nsm-checks.ts';
import { LOOPBACK_CID } from './settings.ts';
import { checkStreams } from './stream-checks.ts';
import { checkEnds, checkOneStream } from './vsock-checks.ts';

const VARIANTS: readonly StreamVariant[] = ['pipe', 'dup3'];

const checks = createChecks();
const addon = loadAddon();
assert(addon !== undefined, 'the guest has the addon');
await run(addon, checks);
process.exit(checks.failed === 0 ? 0 : 1);

async function run(addon: Addon, { check }: Checks): Promise<void> {
  await check('the machine tells its own CID', () => assert(addon.vsockLocalCid() >= 1));
  for (const variant of VARIANTS) {
    await checkEnds(addon, check, variant);
    await checkStreams(addon, check, variant);
    await checkDescriptors(addon, check, variant);
    await checkHttp(vsockTransport(addon, { peerCid: LOOPBACK_CID, streams: variant }), check, `${variant}: `);
  }
  const root = await startDevice();
  await checkDevice(addon, check, root);
  await check('server.seccomp: required, in the guest', () => {
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    assert.equal(applySystemCallPolicy('required', log), true);
    assert.equal((spawnSync('/test/bin/echo').error as NodeJS.ErrnoException | undefined)?.code, 'EPERM');
  });
  for (const variant of VARIANTS) await checkOneStream(addon, check, variant);
  await checkHttp(vsockTransport(addon, { peerCid: LOOPBACK_CID }), check, 'filtered: ');
  await checkRequests(addon, check, root);
}
