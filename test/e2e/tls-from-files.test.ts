// TLS from files: the same routes, a renewed certificate without a restart, and a key that does not fit is refused.

import { copyFileSync, readFileSync } from 'node:fs';
import { Agent, request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { describe, expect, it, vi } from 'vitest';
import { makeCertificate } from '../support/certificates.ts';
import { deploy } from '../support/deployment.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { closed } from '../support/streams.ts';

describe('TLS from files', () => {
  it('serves the same routes, puts a renewed certificate in force without a restart, and keeps the old one on a bad pair', async () => {
    const deployment = deploy(1);
    const { folder } = deployment;
    const [first, second] = [makeCertificate(folder, 'first'), makeCertificate(folder, 'second')];
    const [cert, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
    const install = (pair: { cert: string; key: string }): void => {
      copyFileSync(pair.key, key);
      copyFileSync(pair.cert, cert);
    };
    install(first);
    const signer = await deployment.start({
      config: {
        tls: {
          mode: 'file',
          listen_address: '127.0.0.1',
          listen_port: 0,
          max_connections: 2,
          file: { cert_path: cert, key_path: key, reload_interval_seconds: 1 },
        },
      },
    });
    expect(await httpsGet(`${signer.tlsUrl}/upcheck`, first.cert)).toBe('OK');

    install(second);
    await signer.logged('TLS certificate reloaded');
    expect(await httpsGet(`${signer.tlsUrl}/upcheck`, second.cert)).toBe('OK');

    copyFileSync(first.key, key);
    await signer.logged('TLS certificate not reloaded: the old one stays in force');
    expect(await httpsGet(`${signer.tlsUrl}/upcheck`, second.cert)).toBe('OK');

    // tls.max_connections: a third gets in, and the oldest goes, because it has asked for nothing.
    const port = Number(new URL(signer.tlsUrl ?? '').port);
    // The connections of the requests above count until the server notices that they have ended.
    const open: TLSSocket[] = [];
    for (const _ of [1, 2]) open.push(await vi.waitFor(() => secureConnection(port), { timeout: LONGEST_WAIT_MS }));
    open.push(await secureConnection(port));
    await closed(open[0] as TLSSocket);
    expect(open.map((socket) => socket.destroyed)).toEqual([true, false, false]);
    for (const socket of open) socket.destroy();
    expect(readFileSync(key, 'utf8')).toContain('PRIVATE KEY');
    expect(signer.output()).not.toContain('PRIVATE KEY');
    await signer.stop();
  });

  it('a key that does not belong to the certificate ends the start and is named', async () => {
    const deployment = deploy(1);
    const [one, other] = [makeCertificate(deployment.folder, 'one'), makeCertificate(deployment.folder, 'other')];
    const tls = { mode: 'file', listen_port: 0, file: { cert_path: one.cert, key_path: other.key } };
    await expect(deployment.start({ config: { tls } })).rejects.toThrow(
      /tls\.file\.key_path: the key in .* does not belong/,
    );
  });
});

function httpsGet(url: string, caFile: string): Promise<string> {
  const agent = new Agent({ ca: readFileSync(caFile), keepAlive: false });
  return new Promise((resolve, reject) => {
    const request = httpsRequest(url, { agent }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () => resolve(text));
    });
    request.on('error', reject);
    request.end();
  });
}

function secureConnection(port: number): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => resolve(socket));
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('closed')));
  });
}
