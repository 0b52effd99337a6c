// Tracing over OTLP gRPC, received by a small collector of our own: HTTP/2, one method, one answer.

import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { deploy } from '../support/deployment.ts';
import { attestation, call, signCall, TEST_TOKEN } from '../support/requests.ts';

const EXPORT_PATH = '/opentelemetry.proto.collector.trace.v1.TraceService/Export';
/** A gRPC message of no bytes: not compressed, length 0. */
const EMPTY_ANSWER = Buffer.alloc(5);

describe('opentelemetry.enabled', () => {
  it('exports a span for each request, with children for auth, slashing and signing, and no secrets', async () => {
    const received: Buffer[] = [];
    const collector = createServer();
    collector.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        if (headers[':path'] === EXPORT_PATH) received.push(Buffer.concat(chunks));
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
        stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
        stream.end(EMPTY_ANSWER);
      });
    });
    collector.listen(0, '127.0.0.1');
    await once(collector, 'listening');
    const { port } = collector.address() as AddressInfo;

    const deployment = deploy(1);
    const opentelemetry = { enabled: true, endpoint: `http://127.0.0.1:${port}`, service_name: 'tracing-test' };
    const signer = await deployment.start({ config: { opentelemetry } });
    const { status } = await signCall(signer.url, deployment.keys[0]?.publicKey ?? '', attestation());
    expect(status).toBe(200);
    expect((await call(`${signer.url}/no/such/path`)).status).toBe(404);
    const sent = () => Buffer.concat(received).toString('latin1');
    // By itself after some seconds; an end would send it too, and wait for two seconds at most.
    await expect.poll(() => sent().split('POST /api/v1/eth2/sign/:identifier').length).toBeGreaterThan(1);
    await signer.stop();

    const exported = sent();
    const names = ['tracing-test', 'POST /api/v1/eth2/sign/:identifier', 'auth', 'slashing', 'sign', 'ATTESTATION'];
    for (const name of names) expect(exported).toContain(name);
    for (const name of ['http.request.method', 'http.route', 'http.response.status_code'])
      expect(exported).toContain(name);
    expect(exported).not.toContain('undefined');
    expect(exported).not.toContain('/no/such/path');
    expect(exported).not.toContain(TEST_TOKEN);
    collector.close();
  });

  it('does not hold up the end of the signer when no collector answers', async () => {
    const deployment = deploy(1);
    const opentelemetry = { enabled: true, endpoint: 'http://127.0.0.1:9' };
    const signer = await deployment.start({ config: { opentelemetry } });
    expect((await signCall(signer.url, deployment.keys[0]?.publicKey ?? '', attestation())).status).toBe(200);
    expect(await signer.stop()).toBe(0);
  });
});
