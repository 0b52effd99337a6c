// The parent proxy as an operator meets it: help, check, exit codes, what it says when it cannot start.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { renderHelp } from '../../common/command-line/help.ts';
import { readProxyConfiguration } from '../../parent-proxy/configuration.ts';
import { parentProxy } from '../../parent-proxy/main.ts';
import { PROXY_METRICS } from '../../parent-proxy/metrics.ts';
import { parentProxySchema } from '../../signer/api/parent-proxy.ts';
import { parentProxyReference } from '../../tools/reference/parent-proxy.ts';
import { proxyYaml, startProxyUnderTest } from '../support/parent-proxy.ts';
import { startProxyProcess } from '../support/parent-proxy-process.ts';

const PROGRAM = fileURLToPath(new URL('../support/parent-proxy-program.ts', import.meta.url));
let directory = '';

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strongroom-proxy-'));
});

afterEach(() => rmSync(directory, { recursive: true }));

function run(...argv: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, directory, ...argv], { encoding: 'utf8' });
  return { status, stdout, stderr };
}

function file(text: string): string {
  const path = join(directory, 'config.yaml');
  writeFileSync(path, text);
  return path;
}

describe('strongroom parent-proxy', () => {
  it('says what its word about addresses is worth', () => {
    const help = renderHelp(['parent-proxy'], parentProxy.description).replaceAll(/\s+/g, ' ');
    expect(help).toContain('bound_cidrs in an enclave restricts remote callers');
  });

  it('checks a file and prints what the enclave will measure', () => {
    const yaml = proxyYaml({ egress: { 8001: 4443 } });
    const loaded = readProxyConfiguration(Buffer.from(yaml), '');
    if (!loaded.ok) throw new Error('the file is good');
    const { status, stdout } = run('-c', file(yaml), '--check');
    expect(status).toBe(0);
    expect(stdout).toContain(`PCR16            ${loaded.configuration.pcr16}\n`);
    expect(stdout).toContain('vsock 8001 → localhost:4443\n');
  });

  it('warns of a loopback enclave, whose parent answers every user of the machine', () => {
    const yaml = proxyYaml({});
    expect(run('-c', file(yaml), '--check').stdout).not.toContain('WARNING');
    const loopback = stringify({ ...parse(yaml), parent_proxy: { ...parse(yaml).parent_proxy, enclave_cid: 1 } });
    expect(run('-c', file(loopback), '--check').stdout).toContain('WARNING: parent_proxy.enclave_cid is 1');
  });

  it.each([
    ['a file that is wrong', ['-c', 'CONFIG', '--check'], 'tee.platform must be nitro'],
    ['no file', [], '--config is missing'],
    ['a file that is not there', ['-c', '/nowhere/a.yaml'], '  /nowhere/a.yaml cannot be read (ENOENT)\n'],
    ['an unknown flag', ['-c', 'CONFIG', '--chek'], 'did you mean --check?'],
    ['a repeated flag', ['-c', 'CONFIG', '--config=CONFIG'], '--config is given more than once'],
    ['a flag without its value', ['--config', '--check'], '--config has no value'],
    ['a stray argument', ['-c', 'CONFIG', 'more'], 'more is not a flag'],
  ])('ends with 78 for %s', (_, argv, expected) => {
    const path = file('tee: {}\n');
    const { status, stderr, stdout } = run(...argv.map((each) => each.replace('CONFIG', path)));
    expect({ status, stdout }).toEqual({ status: 78, stdout: '' });
    expect(stderr).toContain(expected);
  });

  it('ends with 1 and names what it could not open', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => void taken.listen(0, '127.0.0.1', resolve));
    const address = taken.address();
    if (address === null || typeof address === 'string') throw new Error('a TCP listener has an address');
    const yaml = proxyYaml({}).replace('"listen_port":0', `"listen_port":${address.port}`);
    const { status, stderr } = run('-c', file(yaml));
    expect(status).toBe(1);
    expect(stderr).toMatch(/^strongroom parent-proxy: cannot start: ingress tls at 127\.0\.0\.1:\d+: .*EADDRINUSE/);
    await new Promise((resolve) => void taken.close(resolve));
  });

  it('writes its log to a file, and to a new one after a rotation and SIGHUP', async () => {
    const path = join(directory, 'proxy.log');
    const rotated = `${path}.1`;
    const proxy = await startProxyProcess({ logs: { output: path } });
    renameSync(path, rotated);
    proxy.child.kill('SIGHUP');
    const log = await proxy.enclave.connect(7000);
    for (let line = 0; !readFileSync(path, { encoding: 'utf8', flag: 'a+' }).includes('"line"'); line++) {
      log.write(`{"line":${line}}\n`);
      await pause(5);
    }
    log.destroy();
    expect(await proxy.stop()).toBe(0);
    expect(readFileSync(rotated, 'utf8')).toContain('"msg":"ready"');
    expect(readFileSync(path, 'utf8')).toContain('"msg":"stopped"');
  });
});

describe('the reference of the parent proxy', () => {
  it('has every option of the block', () => {
    const reference = parentProxyReference();
    const walk = (value: unknown, path: string): void => {
      if (typeof value === 'object' && value !== null)
        for (const [name, member] of Object.entries(value)) walk(member, `${path}.${name}`);
      else expect(reference).toContain(`\n- \`${path}\`: `);
    };
    walk(parentProxySchema.parse({}), 'parent_proxy');
  });

  it('has every metric, and the metrics are what Prometheus reads', async () => {
    const proxy = await startProxyUnderTest();
    try {
      const response = await fetch(`http://127.0.0.1:${proxy.metricsPort}//metrics`);
      expect(response.headers.get('content-type')).toContain('version=0.0.4');
      const names: readonly string[] = Object.values(PROXY_METRICS).map(({ name }) => name);
      for (const line of (await response.text()).trimEnd().split('\n')) {
        if (line.startsWith('#')) continue;
        expect(line).toMatch(/^svc_parent_proxy_[a-z_]+(\{[a-z]+="[a-z0-9_]+"(,[a-z]+="[a-z0-9_]+")*\})? [0-9.e+]+$/);
        expect(names).toContain(/^[a-z_]+/.exec(line)?.[0]);
      }
      expect((await fetch(`http://127.0.0.1:${proxy.metricsPort}/`)).status).toBe(404);
    } finally {
      await proxy.close();
    }
  });
});
