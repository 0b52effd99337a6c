// The configuration on its way into the enclave: the exact bytes, to a reader of the enclave's own code, whatever else
// comes to the port.

import { afterEach, describe, expect, it } from 'vitest';
import { fetchConfiguration } from '../../../enclave/parent/configuration-source.ts';
import { CONFIGURATION_PORT } from '../../../signer/api/parent-ports.ts';
import { type ProxyUnderTest, proxyYaml, startProxyUnderTest } from '../../support/parent-proxy.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { hear } from '../../support/streams.ts';

const OPEN = 'svc_parent_proxy_open_connections{service="configuration",port="7001"}';

let proxy: ProxyUnderTest;

afterEach(() => proxy.close());

describe('the configuration service', () => {
  it('gives the enclave the exact bytes of the file', async () => {
    proxy = await startProxyUnderTest();
    expect((await fetchConfiguration(proxy.enclave, { log: recordingLog() })).toString()).toBe(proxyYaml({}));
    await proxy.reaches('svc_parent_proxy_connections_total{service="configuration",port="7001",outcome="served"}', 1);
  });

  it('sends its length, the bytes and the end, and hears nothing', async () => {
    proxy = await startProxyUnderTest();
    const socket = await proxy.enclave.connect(CONFIGURATION_PORT);
    const { bytes, how } = await hear(socket);
    expect(how).toBe('ended');
    expect(bytes.readUInt32BE()).toBe(bytes.length - 4);
    socket.write('GET / HTTP/1.1\r\n');
    await proxy.reaches(OPEN, 0); // cut off, long before its time is up
    socket.destroy();
  });

  it('serves the enclave while others come, hold on and send garbage', async () => {
    proxy = await startProxyUnderTest();
    const silent = await Promise.all(Array.from({ length: 200 }, () => proxy.enclave.connect(CONFIGURATION_PORT)));
    await proxy.reaches('svc_parent_proxy_connections_total{service="configuration",port="7001",outcome="limit"}', 184);
    expect(proxy.sample(OPEN)).toBe(16);
    for (const socket of silent) {
      socket.on('error', () => undefined);
      socket.write(Buffer.alloc(100, 0xff));
    }
    await proxy.reaches(OPEN, 0);
    expect((await fetchConfiguration(proxy.enclave, { log: recordingLog() })).toString()).toBe(proxyYaml({}));
    for (const socket of silent) socket.destroy();
  });
});
