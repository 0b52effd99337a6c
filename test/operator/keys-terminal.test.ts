// The list of keys on a real terminal (`script` of util-linux makes one): a table of short keys, and their count. In a
// pipe each line has its whole key (golden/keys.txt).

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lacking } from '../support/needs.ts';
import { cannedSigner } from './canned-signer.ts';
import { type FixtureSigner, startFixtureSigner } from './fixture-signer.ts';

const PROGRAM = join(import.meta.dirname, '../../bin/strongroom');
const NO_TERMINAL = lacking('Linux', 'script');

let signer: FixtureSigner;
beforeAll(async () => {
  signer = await startFixtureSigner(cannedSigner);
});
afterAll(() => signer.close());

async function onTerminal(command: string): Promise<readonly string[]> {
  const line = `stty cols 80; ${PROGRAM} operator ${command}`;
  const env = {
    PATH: process.env['PATH'],
    HOME: '/nonexistent',
    SVC_OPERATOR_SIGNER_URL: signer.url,
    SVC_OPERATOR_ALLOW_PLAINTEXT_SIGNER: 'true',
    SVC_OPERATOR_TOKEN: 'sr_mgmt_test',
  };
  const { stdout } = await promisify(execFile)('script', ['-qec', line, '/dev/null'], { env });
  return stdout.split('\r\n').filter((text) => text !== '' && !text.startsWith('warning'));
}

describe.skipIf(NO_TERMINAL)('operator keys list on a terminal', () => {
  it('has a heading, short keys and a count, within 80 columns', async () => {
    const lines = await onTerminal('keys list');
    expect(lines).toEqual([
      'KEY                STATUS  LOADED  BACKUP  SINCE       SOURCE',
      '0xa1a1a1a1…a1a1a1  active  yes     yes     2026-03-01  filesystem and dynamodb',
      '0xb2b2b2b2…b2b2b2  active  yes     -       2026-03-01  memory, share 3 of 4',
      '2 keys',
    ]);
  });

  it('--full shows whole keys, a line each', async () => {
    const text = (await onTerminal('keys list --full --search b2')).join('');
    expect(text).toContain(`0x${'b2'.repeat(48)} memory, active, loaded, share 3 of 4`);
    expect(text).toMatch(/Z1 of 2 keys$/);
  });
});
