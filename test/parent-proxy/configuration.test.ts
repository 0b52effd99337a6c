// What the parent proxy takes from the enclave's configuration file, and what it refuses.

import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { renderViolations } from '../../common/command-line/violations-report.ts';
import { extendedOnce } from '../../common/formats/register.ts';
import { readProxyConfiguration } from '../../parent-proxy/configuration.ts';
import { optionAt } from '../../signer/config/options.ts';

const NITRO = 'tee:\n  platform: nitro\n';

function good(yaml: string) {
  const loaded = readProxyConfiguration(Buffer.from(yaml), 'c.yaml');
  if (!loaded.ok) throw new Error(renderViolations(loaded.violations));
  return loaded.configuration;
}

function violations(yaml: string | Buffer): string[] {
  const loaded = readProxyConfiguration(Buffer.from(yaml), 'c.yaml');
  return loaded.ok ? [] : loaded.violations.map(({ path, problem, origin }) => `${path} ${problem} (${origin})`);
}

describe("the parent proxy's configuration", () => {
  it('is all defaults for a file that says nitro, with the ports of the server', () => {
    const { enclavePorts, ingress, metrics, endpoints, options } = good(NITRO);
    expect(enclavePorts).toEqual({
      tls: optionAt('tls.listen_port').default,
      probes: optionAt('server.listen_port').default,
      metrics: optionAt('metrics.listen_port').default,
    });
    expect(ingress).toEqual({
      tls: { host: '0.0.0.0', port: 9443 },
      probes: { host: '0.0.0.0', port: 9000 },
      metrics: { host: '0.0.0.0', port: 3000 },
    });
    expect(metrics).toEqual({ host: '127.0.0.1', port: 9101 });
    expect(endpoints).toEqual([]);
    expect(options.enclave_cid).toBe(16);
  });

  it('takes the ports of the enclave for its own, unless it is given others', () => {
    const { enclavePorts, ingress } = good(
      `${NITRO}tls:\n  listen_port: 9555\nserver:\nparent_proxy:\n  ingress:\n    tls: { listen_address: '::1' }\n    probes: { listen_port: 9001 }\n`,
    );
    expect(enclavePorts).toEqual({ tls: 9555, probes: 9000, metrics: 3000 });
    expect(ingress.tls).toEqual({ host: '::1', port: 9555 });
    expect(ingress.probes).toEqual({ host: '0.0.0.0', port: 9001 });
  });

  it('keeps the exact bytes, and says what the enclave will measure', () => {
    const bytes = Buffer.from(`${NITRO}# a remark\r\n`);
    const configuration = good(bytes.toString());
    const digest = createHash('sha384').update(bytes).digest();
    expect(configuration.bytes).toEqual(bytes);
    expect(configuration.digest).toBe(digest.toString('hex'));
    expect(configuration.pcr16).toBe(extendedOnce(digest).toString('hex'));
  });

  it('leaves the rest of the file to the server', () => {
    expect(violations(`${NITRO}no_such_option: 5\nnetwork: 7\n`)).toEqual([]);
  });

  it('names every violation with its line, and repeats no value', () => {
    const yaml = `tee:
  platform: "off"
  nitro:
    egress:
      endpoints:
        - { hostname: "hunter 2", loopback: 127.0.0.1, vsock_port: 7001, prt: 1 }
tls: { listen_port: 0 }
parent_proxy:
  enclave_cid: 2
  enclave_cd: 5
  limits: { idle_timeout_seconds: 0 }
  logs: { output: relative.log }
`;
    const found = violations(yaml);
    expect(found).toEqual([
      'tee.platform must be nitro: without an enclave there is nothing to proxy (c.yaml line 2)',
      'tee.nitro.egress.endpoints[0].hostname must be a host name (c.yaml line 6)',
      'tee.nitro.egress.endpoints[0].loopback must be an IPv4 address in 127.0.0.0/8 other than 127.0.0.0, 127.0.0.1 and 127.255.255.255 (c.yaml line 6)',
      'tee.nitro.egress.endpoints[0].vsock_port is reserved: the enclave fetches its configuration there (c.yaml line 6)',
      'tee.nitro.egress.endpoints[0].prt is not a member of this object (c.yaml line 6)',
      'tls.listen_port must be an integer from 1 to 65535: in an enclave the parent proxy has to know the port (c.yaml line 7)',
      'parent_proxy.enclave_cid must be the CID of an enclave, 4 to 4294967294 (or 1, loopback, in a test) (c.yaml line 9)',
      'parent_proxy.limits.idle_timeout_seconds must be an integer from 1 to 86400 (c.yaml line 11)',
      'parent_proxy.logs.output must be stdout, or the absolute path of a file (c.yaml line 12)',
      'parent_proxy.enclave_cd is not a member of this object (c.yaml line 10)',
    ]);
    expect(found.join()).not.toContain('hunter');
  });

  it.each([
    ['a repeated key', 'tee:\n  platform: nitro\ntee:\n  platform: nitro\n', 'a key is repeated'],
    ['two documents', `${NITRO}---\n${NITRO}`, 'more than one document'],
    ['an anchor', 'tee: &a\n  platform: nitro\n', 'an anchor is used'],
    ['nothing', '', 'is empty'],
    ['what is not UTF-8', Buffer.from([0xff, 0xfe]), 'is not UTF-8'],
    ['more than the enclave takes', `#${' '.repeat(1024 * 1024)}`, 'has 1048577 bytes, too many for an enclave'],
    ['a section that is none', 'tee: nitro\n', 'must be'],
    ['a section of the block that is none', `${NITRO}parent_proxy: []\n`, 'must be an object'],
  ])('refuses %s', (_, yaml, problem) => {
    expect(violations(yaml).join('\n')).toContain(problem);
  });

  it('refuses a host that is declared twice, and an address in place of a host', () => {
    const endpoints = [
      '{hostname: db.example.org, loopback: 127.0.1.1, vsock_port: 8001}',
      '{hostname: DB.example.org, loopback: 127.0.1.2, vsock_port: 8002}',
    ];
    const file = (list: readonly string[]) =>
      `tee:\n  platform: nitro\n  nitro:\n    egress:\n      endpoints: [${list.join(', ')}]\n`;
    expect(violations(file(endpoints))).toEqual([
      'tee.nitro.egress.endpoints[1].hostname is the host of an earlier endpoint: declare each host once (c.yaml line 5)',
    ]);
    for (const name of ['0x7f.1', '127.1', 'host.0X7F', '2130706433']) {
      const [problem] = violations(file([`{hostname: "${name}", loopback: 127.0.1.1, vsock_port: 8001}`]));
      expect(problem).toContain('ends in a number: resolvers take it for an address');
    }
    expect(violations(file(['{hostname: 10.0.0.1, loopback: 127.0.1.1, vsock_port: 8001}']))).toEqual([
      'tee.nitro.egress.endpoints[0].hostname is an IP address, which no alias can stand for: declare the host by name (c.yaml line 5)',
    ]);
  });

  it('refuses an egress port that is a port of a listener (specification/operating.md#startup-failures, 11)', () => {
    const endpoint = '{ hostname: a.example, loopback: 127.0.0.2, vsock_port: 9443 }';
    expect(
      violations(`tee:\n  platform: nitro\n  nitro:\n    egress:\n      endpoints:\n        - ${endpoint}\n`),
    ).toEqual(['tee.nitro.egress.endpoints[0].vsock_port is the ingress port of a listener (c.yaml line 6)']);
  });

  it.each([
    [
      'two listeners of the enclave',
      'tls: { listen_port: 3000 }\n',
      'metrics.listen_port is the port of another listener',
    ],
    [
      'ingress on the port of the metrics',
      'parent_proxy: { metrics: { listen_port: 9443 } }\n',
      'parent_proxy.metrics listens',
    ],
    [
      'the same address twice',
      "parent_proxy: { ingress: { tls: { listen_address: '::', listen_port: 9000 } } }\n",
      'listens',
    ],
  ])('refuses %s', (_, yaml, problem) => {
    expect(violations(NITRO + yaml).join('\n')).toContain(problem);
  });
});
