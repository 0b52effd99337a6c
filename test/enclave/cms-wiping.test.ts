// What is left of a CMS message in memory. The content key nowhere as soon as it is opened, and of the plaintext
// nothing but what the caller got, and wipes. The whole writable memory of another process is searched.

import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { cmsFor } from '../../rehearsal/kms/cms.ts';
import { scanProcess } from '../support/memory-scan.ts';
import type { CmsRequest } from './cms-process.ts';

const PROGRAM = fileURLToPath(new URL('./cms-process.ts', import.meta.url));
const SHARE_BYTES = 33;
const COUNT = 20;

let child: ChildProcess;

afterEach(async () => {
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
});

async function next(): Promise<unknown> {
  const [message] = (await once(child, 'message')) as unknown[];
  return message;
}

async function ask(request: CmsRequest): Promise<unknown> {
  const answer = next();
  child.send(request);
  return answer;
}

describe.runIf(process.platform === 'linux')('an opened CMS message', () => {
  it('leaves no content key, and no plaintext when the caller has wiped it', async () => {
    child = fork(PROGRAM, [], { serialization: 'advanced', execArgv: [] });
    const spki = (await next()) as Buffer;
    const share = randomBytes(SHARE_BYTES);
    const keys = Array.from({ length: COUNT }, () => randomBytes(32));
    // Its whole blocks: where it was decrypted piece by piece, the rest lay somewhere else.
    const patterns = {
      share: share.subarray(0, 32),
      ...Object.fromEntries(keys.map((key, at) => [`contentKey${at}`, key])),
    };
    const noKeys = Object.fromEntries(keys.map((_key, at) => [`contentKey${at}`, 0]));

    await ask({ kind: 'open', messages: keys.map((contentKey) => cmsFor(spki, share, { contentKey })) });
    const { share: copies, ...keysLeft } = scanProcess(Number(child.pid), patterns);
    expect(copies).toBeGreaterThanOrEqual(COUNT); // otherwise the search proves nothing
    expect(keysLeft).toEqual(noKeys);

    await ask({ kind: 'wipe' });
    expect(scanProcess(Number(child.pid), patterns)).toEqual({ share: 0, ...noKeys });
  });
});
