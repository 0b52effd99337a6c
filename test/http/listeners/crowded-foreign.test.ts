// The crowd of crowded.test.ts, from clients that are none of ours (crowd.py, Python's sockets and TLS): what holds for
// our client could be a property of our client.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { json } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { findPython } from '../../support/needs.ts';
import { FREE_TOKEN } from '../../support/ratls-signer.ts';
import {
  ADMITTED,
  ATTACKER,
  ATTACKERS,
  HONEST,
  LISTENERS,
  type Listening,
  NEWCOMERS,
  PATH,
  PLACES,
} from './crowded-listeners.ts';

const python = findPython('ssl');
const CROWD = fileURLToPath(new URL('./crowd.py', import.meta.url));

/** RFC 8446 §5.1, §4.1.2: the header of a record of 512 bytes, and 43 bytes of a ClientHello of 508. */
const HALF_HELLO = Buffer.concat([Buffer.from('1603010200010001fc0303', 'hex'), Buffer.alloc(32)]);
const HALF_REQUEST = Buffer.from(`GET ${PATH} HTTP/1.1\r\nHost: x\r\n`);

interface Ended {
  readonly statuses: readonly (number | string)[];
  readonly cut: number;
}

describe.runIf(python !== undefined).each(LISTENERS)('at %s', (_where, listen) => {
  it.each(['say nothing at all', 'only begin'])(
    'an address whose connections %s keeps no new client out that is none of ours',
    async (what) => {
      const listening = await listen();
      const begun = listening.tls ? HALF_HELLO : HALF_REQUEST;
      const { statuses, cut } = await crowd(listening, what === 'only begin' ? begun : Buffer.alloc(0));
      expect(statuses).toEqual(Array.from({ length: NEWCOMERS }, () => ADMITTED));
      expect(cut).toBeGreaterThanOrEqual(ATTACKERS - PLACES);
      expect(listening.lost.filter((why) => why === 'displaced').length).toBeGreaterThanOrEqual(ATTACKERS - PLACES);
      expect(listening.lost).not.toContain('limit');
    },
  );
});

async function crowd({ at, tls, proxyHeader }: Listening, says: Buffer): Promise<Ended> {
  const child = spawn(python ?? '', [CROWD], { stdio: ['pipe', 'pipe', 'inherit'] });
  const who = { attackers: ATTACKERS, attacker: ATTACKER, newcomers: NEWCOMERS, honest: HONEST };
  child.stdin.end(
    JSON.stringify({ at, tls, proxyHeader, says: says.toString('hex'), ...who, request: PATH, token: FREE_TOKEN }),
  );
  const [ended] = await Promise.all([json(child.stdout), once(child, 'close')]);
  return ended as Ended;
}
