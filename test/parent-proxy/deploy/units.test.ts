// The units and files beside run-enclave: what they name exists, they end and start again as they should, and they are
// confined.

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parentProxySchema } from '../../../signer/api/parent-proxy.ts';
import { lacking } from '../../support/needs.ts';
import { DEPLOY, directory, ROOT } from './run-enclave-set-up.ts';

const NO_JUDGE = lacking('systemd-analyze');

describe('the units', () => {
  const unit = (name: string): string => readFileSync(join(DEPLOY, name), 'utf8');
  const proxy = unit('strongroom-parent-proxy.service');
  const enclave = unit('strongroom-enclave.service');

  // systemd.service(5): RestartPreventExitStatus= is of the main process. A check before it that ends with 78 would be
  // run again each second, for ever.
  it('end for good on a configuration that cannot be used: the main process itself says so', () => {
    const service = readFileSync(join(ROOT, 'tools/release/systemd/strongroom.service'), 'utf8');
    for (const text of [proxy, enclave, service]) {
      expect(text).toMatch(/^RestartPreventExitStatus=78$/m);
      expect(text).not.toMatch(/^Exec(?:StartPre|Condition)=/m);
    }
  });

  it('start programs that exist, and the runbook names every file', () => {
    for (const [, path = ''] of `${proxy}${enclave}`.matchAll(/^Exec\w+=\/opt\/strongroom\/(\S+)/gm)) {
      expect({ path, exists: existsSync(join(ROOT, path)) }).toEqual({ path, exists: true });
    }
    const runbook = unit('README.md');
    for (const name of readdirSync(DEPLOY)) if (name !== 'README.md') expect(runbook).toContain(`\`${name}\``);
  });

  it('stop the parent proxy before the enclave, and give it longer than its grace time', () => {
    expect(proxy).toMatch(/^After=.*strongroom-enclave\.service/m);
    expect(proxy).toMatch(/^PartOf=strongroom-enclave\.service/m);
    const { limits } = parentProxySchema.parse({});
    const stopSeconds = Number(/^TimeoutStopSec=(\d+)/m.exec(proxy)?.[1]);
    expect(stopSeconds).toBeGreaterThan(limits.graceful_shutdown_timeout_seconds + 5);
  });

  it('let the parent proxy open vsock, and as many connections as its limits say', () => {
    expect(proxy).toMatch(/^RestrictAddressFamilies=.*AF_VSOCK/m);
    const { limits } = parentProxySchema.parse({});
    expect(Number(/^LimitNOFILE=(\d+)/m.exec(proxy)?.[1])).toBeGreaterThan(2 * 16 * limits.max_connections_per_port);
    expect(proxy).not.toContain('MemoryDenyWriteExecute=yes'); // no JavaScript without it
  });

  it('try the parent proxy again for ever: without it the enclave cannot be reached', () => {
    expect(proxy).toMatch(/^\[Unit\][^[]*^StartLimitIntervalSec=0$/m);
    expect(proxy).toMatch(/^Restart=always$/m);
  });

  it('try the enclave again for ever, after a pause that grows', () => {
    expect(enclave).toMatch(/^\[Unit\][^[]*^StartLimitIntervalSec=0$/m);
    expect(enclave).not.toContain('StartLimitBurst');
    expect(enclave).toMatch(/^Restart=always$/m);
    expect(enclave).toMatch(/^RuntimeDirectoryPreserve=restart$/m); // where run-enclave counts
  });

  it.skipIf(NO_JUDGE)('are confined: an exposure of 2 at most', () => {
    for (const name of ['strongroom-enclave.service', 'strongroom-parent-proxy.service']) {
      const argv = ['security', '--offline=yes', '--threshold=20', '--no-pager', join(DEPLOY, name)];
      const { status, stdout } = spawnSync('systemd-analyze', argv, { encoding: 'utf8' });
      expect({ name, status, last: stdout.trimEnd().split('\n').at(-1) }).toMatchObject({ status: 0 });
    }
  });

  it.skipIf(NO_JUDGE)('that loads the rules of the metadata service is confined: an exposure of 3 at most', () => {
    const path = join(DEPLOY, 'strongroom-metadata.service');
    const argv = ['security', '--offline=yes', '--threshold=30', '--no-pager', path];
    expect(spawnSync('systemd-analyze', argv).status).toBe(0);
  });

  it('leave the enclave its device, vsock, and the folders of nitro-cli', () => {
    expect(enclave).toMatch(/^DeviceAllow=\/dev\/nitro_enclaves rw$/m);
    expect(enclave).not.toMatch(/^PrivateDevices=yes/m);
    expect(enclave).toMatch(/^RestrictAddressFamilies=.*AF_VSOCK/m);
    expect(enclave).toMatch(/^ReadWritePaths=.*nitro_enclaves.*\/var\/log\/nitro_enclaves/m);
  });

  it.skipIf(lacking('logrotate'))('come with a rotation of nitro-cli’s log that logrotate can read', () => {
    // the group is the parent instance's, and only root becomes another user
    const [user, group] = ['-un', '-gn'].map((name) => execFileSync('id', [name], { encoding: 'utf8' }).trim());
    const rules = unit('nitro-cli.logrotate').replace('su root ne', `su ${user} ${group}`);
    const file = join(directory, 'rotation');
    writeFileSync(file, rules, { mode: 0o644 });
    const { status, stderr } = spawnSync('logrotate', ['--debug', file], { encoding: 'utf8' });
    expect({ status, errors: stderr.split('\n').filter((line) => line.startsWith('error')) }).toEqual({
      status: 0,
      errors: [],
    });
  });

  it('share the CID with the configuration', () => {
    expect(unit('enclave.env')).toContain(`STRONGROOM_ENCLAVE_CID=${parentProxySchema.parse({}).enclave_cid}\n`);
  });
});
