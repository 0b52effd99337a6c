// The PROXY header before TLS: how it may come, and what its address counts for.

import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { MAX_PROXY_HEADER_BYTES } from '../../../common/formats/proxy-header.ts';
import { connectRatls, handshake, proxyHeaderFrom, RATLS_PORT } from '../../support/ratls-client.ts';
import { BOUND_TOKEN, FREE_TOKEN } from '../../support/ratls-signer.ts';
import {
  certificateOf,
  connectionsAre,
  refusals,
  restart,
  sendsAndIsCutOff,
  signer,
  verdictOn,
} from './ratls-set-up.ts';

const KEYS = '/api/v1/eth2/highWatermark';
const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
/** The proxy speaks for itself. */
const LOCAL_HEADER = Buffer.concat([SIGNATURE, Buffer.from('20000000', 'hex')]);

describe('the PROXY header', () => {
  it('may come in single bytes, and together with what follows it', async () => {
    const raw = await signer.parent.connect(RATLS_PORT);
    for (const byte of proxyHeaderFrom('203.0.113.7')) {
      raw.write(Buffer.from([byte]));
      await new Promise(setImmediate);
    }
    const socket = await handshake(raw);
    expect(verdictOn(certificateOf(socket))).toMatchObject({ authentic: true });
    socket.destroy();
    await connectionsAre(0);
  });

  it.each<[string, () => Buffer[]]>([
    ['is missing', () => [Buffer.from('16030100c8010000c40303'.padEnd(64, '0'), 'hex')]],
    ['is of version 1', () => [Buffer.from('PROXY TCP4 203.0.113.7 10.0.0.5 51234 9443\r\n')]],
    ['is garbage', () => [Buffer.alloc(64, 0x41)]],
    ['is for UDP', () => [SIGNATURE, Buffer.from('2112000c', 'hex'), Buffer.alloc(12)]],
    ['announces more than it may have', () => [SIGNATURE, Buffer.from('2111ffff', 'hex')]],
    [
      'is one byte longer than it may be',
      () => [SIGNATURE, Buffer.from([0x21, 0x11, 0x02, (MAX_PROXY_HEADER_BYTES - 15) & 0xff])],
    ],
  ])('that %s ends the connection without an answer', async (_what, chunks) => {
    await sendsAndIsCutOff(...chunks());
    await connectionsAre(0);
    expect(signer.refused).toEqual(['proxy_header']);
  });

  it('that is cut off in the middle ends the connection', async () => {
    for (const length of [0, 5, 16, 20]) {
      const raw = await signer.parent.connect(RATLS_PORT);
      raw.resume();
      raw.end(proxyHeaderFrom('203.0.113.7').subarray(0, length));
      await once(raw, 'close');
    }
    await connectionsAre(0);
    expect(refusals('proxy_header')).toBe(4);
  });

  it('that does not come in time ends the connection', async () => {
    await restart({ limits: { proxyHeaderTimeoutMs: 1 } });
    await sendsAndIsCutOff();
    await connectionsAre(0);
    expect(signer.refused).toEqual(['proxy_header']);
  });

  it('that a peer resets in the middle of leaves nothing behind', async () => {
    const raw = await signer.parent.connect(RATLS_PORT);
    raw.write(SIGNATURE);
    await connectionsAre(1);
    raw.destroy();
    await connectionsAre(0);
    expect(signer.refused).toEqual(['proxy_header']);
  });
});

describe('the address in the PROXY header', () => {
  const withToken = (token: string) => ({ authorization: `Bearer ${token}` });

  it.each([
    ['203.0.113.7', 200],
    ['::ffff:203.0.113.7', 200],
    ['203.0.114.7', 403],
    ['2001:db8::1', 403],
  ])('is what bound_cidrs sees: %s gets %i', async (from, status) => {
    const client = await connectRatls(signer.parent, { from });
    const answer = await client.get(KEYS, withToken(BOUND_TOKEN));
    if (status === 403) expect(answer.body.toString()).toContain('peer_not_allowed');
    expect(answer.status === 403).toBe(status === 403);
    await client.close();
  });

  it('is what bound_cidrs sees on the signing route', async () => {
    const sign = async (from: string): Promise<string> => {
      const client = await connectRatls(signer.parent, { from });
      const answer = await client.post(`/api/v1/eth2/sign/0x${'a1'.repeat(48)}`, '{}', withToken(BOUND_TOKEN));
      await client.close();
      return (JSON.parse(answer.body.toString()) as { readonly reason: string }).reason;
    };
    expect(await sign('203.0.114.7')).toBe('peer_not_allowed');
    expect(await sign('203.0.113.7')).toBe('denied'); // its policy is for listing
  });

  it('is the client_ip of the audit line, of every request of the connection', async () => {
    const client = await connectRatls(signer.parent, { from: '::ffff:198.51.100.9' });
    await client.get(KEYS, withToken(FREE_TOKEN));
    await client.get(KEYS, withToken(FREE_TOKEN));
    await client.close();
    const lines = signer.log.lines.filter(({ fields }) => fields['audit'] === true);
    expect(lines.map(({ fields }) => fields['client_ip'])).toEqual(['198.51.100.9', '198.51.100.9']);
  });

  it('is not replaced by a forwarding header', async () => {
    const client = await connectRatls(signer.parent, { from: '198.51.100.9' });
    const answer = await client.get(KEYS, { ...withToken(BOUND_TOKEN), 'x-forwarded-for': '203.0.113.7' });
    expect(answer.status).toBe(403);
    await client.close();
  });

  it('is nobody for a connection of the proxy itself: bound tokens are refused', async () => {
    const client = await connectRatls(signer.parent, { preamble: LOCAL_HEADER });
    expect((await client.get(KEYS, withToken(BOUND_TOKEN))).body.toString()).toContain('peer_not_allowed');
    await client.get(KEYS, withToken(FREE_TOKEN));
    await client.close();
    const [, free] = signer.log.lines.filter(({ fields }) => fields['audit'] === true);
    expect(free?.fields['client_ip']).toBe('unknown');
  });
});
