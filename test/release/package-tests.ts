// The package: Debian's own tools read it, its units are confined, and on a Debian it makes its user, starts nothing by
// itself, and then runs the tools' arguments under all that its unit forbids.

import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { VERSION } from '../../signer/api/version.ts';
import { lacking } from '../support/needs.ts';
import { attestation, rootOf, signCall, TEST_TOKEN } from '../support/requests.ts';
import {
  askAs,
  DAPPNODE_HOST,
  DEVNET_ROOT,
  dappnode,
  ethDocker,
  ethereumPackage,
  expectVotes,
  made as folderAt,
  ON_FREE_PORTS,
  TOOL_KEY,
  writeDevnet,
  writeToolKeystore,
} from '../support/web3signer-tools.ts';
import { bootDebian, type Debian, noDebian } from './debian.ts';
import { COMMIT, type MadeRelease, packageTree } from './made-release.ts';

const NO_DEBIAN = noDebian();
const NO_DPKG = lacking('dpkg-deb');
const NO_JUDGE = lacking('systemd-analyze');

const UNIT = 'strongroom.service';
const CONFIGURATION = {
  network: 'mainnet',
  server: { listen_address: '127.0.0.1', listen_port: 0, seccomp: 'required', mlock: 'required' },
  metrics: { listen_address: '127.0.0.1', listen_port: 0 },
  logging: { format: 'json' },
  key_sources: { filesystem: { paths: ['/etc/strongroom/keys'] } },
  anti_slashing: { backend: 'sqlite', path: '/var/lib/strongroom/slashing_protection.sqlite' },
  static_auth: {
    policies: [{ name: 'client', rules: [{ effect: 'allow', scopes: ['sign'] }] }],
    tokens: [{ secret: 'env:CLIENT_TOKEN', policies: ['client'] }],
  },
};

export function packageTests(made: () => MadeRelease): void {
  const file = (): string => join(made().release, `strongroom_${VERSION}_amd64.deb`);

  it.skipIf(NO_DPKG)('is read by Debian’s own tools', () => {
    const field = (name: string) => execFileSync('dpkg-deb', ['--field', file(), name], { encoding: 'utf8' }).trim();
    expect(['Package', 'Version', 'Architecture', 'Depends'].map(field)).toEqual([
      'strongroom',
      VERSION,
      'amd64',
      'passwd',
    ]);
    const listed = execFileSync('dpkg-deb', ['--contents', file()], { encoding: 'utf8' });
    const rows = [...listed.matchAll(/^(\S+) (\S+) +\d+ \S+ \S+ (\S+)/gm)];
    expect(rows.filter(([, , owner]) => owner !== '0/0' && owner !== 'root/root')).toEqual([]);
    const files = rows.filter(([, mode = '']) => mode.startsWith('-')).map(([, , , name]) => name);
    expect(files).toEqual(
      expect.arrayContaining(['./opt/strongroom/bin/strongroom', './usr/lib/systemd/system/strongroom.service']),
    );
    expect(files.filter((name = '') => name.startsWith('./etc/'))).toEqual([
      './etc/strongroom/enclave.env',
      './etc/strongroom/metadata.nft',
      './etc/strongroom/strongroom.env',
    ]);
    expect(execFileSync('dpkg-deb', ['--info', file(), 'conffiles'], { encoding: 'utf8' })).toBe(
      '/etc/strongroom/enclave.env\n/etc/strongroom/metadata.nft\n/etc/strongroom/strongroom.env\n',
    );
  });

  it.skipIf(NO_JUDGE)('has units that are confined: an exposure under 2', () => {
    const units = join(packageTree(made()), 'usr/lib/systemd/system');
    expect(readdirSync(units).sort()).toEqual([
      'strongroom-enclave.service',
      'strongroom-metadata.service',
      'strongroom-parent-proxy.service',
      'strongroom.service',
    ]);
    for (const name of readdirSync(units)) {
      // The one that loads rules needs a capability for it.
      const threshold = name === 'strongroom-metadata.service' ? 30 : 19;
      const argv = ['security', '--offline=true', `--threshold=${threshold}`, '--no-pager', join(units, name)];
      const { status, stdout } = spawnSync('systemd-analyze', argv, { encoding: 'utf8' });
      expect({ name, status, last: stdout.trimEnd().split('\n').at(-1) }).toMatchObject({ status: 0 });
    }
  });

  describe.skipIf(NO_DEBIAN)('on a Debian that systemd runs', () => {
    let debian: Debian;
    beforeAll(async () => {
      const folder = folderAt(made().folder, 'debian');
      debian = await bootDebian(folder, file());
    });
    afterAll(() => debian?.end());
    afterEach(
      () => void debian.run(`systemctl stop ${UNIT}; rm -rf /run/systemd/system/${UNIT}.d; systemctl daemon-reload`),
    );

    const inDebian = (script: string, input?: string | Buffer): string => {
      const { code, out } = debian.run(script, input);
      if (code !== 0) throw new Error(`exit ${code} of ${script}: ${out}`);
      return out.trim();
    };
    /** Folders that somebody put there, of the user of the service; absolute. */
    const putIn = (paths: readonly string[], write: (root: string) => void): void => {
      const root = folderAt(made().folder, `put${paths.join()}`);
      for (const path of paths) folderAt(root, path);
      write(root);
      const packed = execFileSync('tar', ['-c', '-C', root, ...paths.map((path) => `.${path}`)]);
      inDebian(`tar -x -C / && chown -R strongroom: ${paths.join(' ')}`, packed);
    };
    /** Arguments in the place of the unit's own. */
    const runs = (argv: readonly string[], writable = '/var/lib/strongroom'): void => {
      const settings = Object.entries(ON_FREE_PORTS).map(([name, value]) => `Environment=${name}=${value}`);
      const words = argv.map((word) => `"${word}"`).join(' ');
      const lines = ['[Unit]', 'ConditionPathExists=', '[Service]', 'ExecStart=', ...settings];
      const text = [...lines, `ExecStart=/usr/bin/strongroom ${words}`, `ReadWritePaths=${writable}`].join('\n');
      const folder = `/run/systemd/system/${UNIT}.d`;
      inDebian(`mkdir -p ${folder} && cat > ${folder}/tool.conf && systemctl daemon-reload`, text);
    };
    const logOf = (): Record<string, unknown>[] => {
      const invocation = inDebian(`systemctl show --property=InvocationID --value ${UNIT}`);
      const text = inDebian(`journalctl --output=cat _SYSTEMD_INVOCATION_ID=${invocation}`);
      return text.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));
    };
    /** @returns where it listens, once its keys are loaded */
    const started = async (): Promise<{ readonly url: string }> => {
      inDebian(`systemctl start ${UNIT}`);
      for (;;) {
        const log = logOf();
        if (log.some(({ msg }) => msg === 'ready')) {
          const { port } = log.find(({ msg, listener }) => msg === 'listening' && listener === 'http') ?? {};
          return { url: `http://127.0.0.1:${port}` };
        }
        if (debian.run(`systemctl is-failed ${UNIT}`).code === 0 || restarts() > 0)
          throw new Error(inDebian(`journalctl --output=cat --lines=50 --unit=${UNIT}`));
        await pause(100);
      }
    };
    const restarts = (): number => Number(inDebian(`systemctl show --property=NRestarts --value ${UNIT}`));

    it('makes a user and its folders, and starts nothing without a configuration', () => {
      expect(inDebian('dpkg --verify strongroom; strongroom --version')).toBe(
        `strongroom ${VERSION}, commit ${COMMIT}`,
      );
      const owners = inDebian("stat -c '%U:%G %a' /etc/strongroom /etc/strongroom/strongroom.env /var/lib/strongroom");
      expect(owners.split('\n')).toEqual(['root:strongroom 750', 'root:strongroom 640', 'strongroom:strongroom 700']);
      expect(debian.run(`systemctl is-enabled ${UNIT}`).out.trim()).toBe('disabled');
      inDebian(`systemctl start ${UNIT}`);
      expect(debian.run(`systemctl is-active ${UNIT}`).out.trim()).toBe('inactive');
    });

    it('ends for good on a configuration that cannot be used', async () => {
      inDebian('cat > /etc/strongroom/strongroom.yaml', JSON.stringify({ network: 'nowhere' }));
      inDebian(`systemctl start ${UNIT}`);
      while (debian.run(`systemctl is-failed ${UNIT}`).code !== 0 && restarts() === 0) await pause(50);
      const status = inDebian(`systemctl show --property=ExecMainStatus --value ${UNIT}`);
      expect({ status, restarts: restarts() }).toEqual({ status: '78', restarts: 0 });
      inDebian(`systemctl reset-failed ${UNIT}`);
    });

    it('signs with its own filter and locked memory inside what the unit allows, and is upgraded', async () => {
      putIn(['/etc/strongroom/keys'], (root) => writeToolKeystore(join(root, 'etc/strongroom/keys')));
      inDebian('cat > /etc/strongroom/strongroom.yaml', JSON.stringify(CONFIGURATION));
      inDebian(`echo CLIENT_TOKEN=${TEST_TOKEN} >> /etc/strongroom/strongroom.env`);
      const { url } = await started();
      const vote = (base: string, head: number) => signCall(base, TOOL_KEY, attestation({ head: rootOf(head) }));
      expect([(await vote(url, 1)).status, (await vote(url, 2)).status]).toEqual([200, 412]);
      const said = logOf().map(({ msg }) => msg);
      expect(said).toContain('system calls are filtered');
      expect(said).toContain('secret keys will be in locked memory and core dumps are off');
      // proc(5): the name of a thread stands in brackets, and its nice value seventeen fields behind that
      const threads = inDebian(`cat /proc/$(systemctl show --property=MainPID --value ${UNIT})/task/*/stat`);
      const niceOf = (thread: string): number => Number(thread.split(') ')[1]?.split(' ')[16]);
      const niceOfAll = (name: string): number[] =>
        threads.split('\n').flatMap((thread) => (thread.includes(`(${name})`) ? [niceOf(thread)] : []));
      const [ofSingles, ofGroups] = [niceOfAll('bls signing'), niceOfAll('bls groups')];
      expect(Math.min(ofSingles.length, ofGroups.length)).toBeGreaterThan(0);
      expect(Math.min(...ofGroups)).toBeGreaterThan(Math.max(...ofSingles));

      inDebian(`systemctl reload ${UNIT}`);
      while (!logOf().some(({ msg, kept }) => msg === 'the key files are loaded' && kept === 1)) await pause(50);
      const before = inDebian(`systemctl show --property=InvocationID --value ${UNIT}`);
      inDebian('dpkg --install /package.deb');
      expect(inDebian(`systemctl show --property=InvocationID --value ${UNIT}`)).not.toBe(before);
      // The administrator's file stays.
      expect(inDebian('tail -1 /etc/strongroom/strongroom.env')).toContain('CLIENT_TOKEN=');
      expect((await vote((await started()).url, 2)).status).toBe(412);
    });

    it('runs ethereum-package’s arguments', async () => {
      putIn(['/network-configs', '/keystores'], (root) => writeDevnet(root, true));
      runs(ethereumPackage(''), '/keystores');
      // The unit starts in the folder with the record of the other keys, beside which no record is begun.
      inDebian('cd /var/lib/strongroom && mkdir -p kept && mv slashing_protection.sqlite* kept');
      await expectVotes(await started(), DEVNET_ROOT);
      inDebian('cd /var/lib/strongroom && mv kept/* . && rmdir kept');
      expect(logOf().map(({ option }) => option)).toContain('--slashing-protection-enabled');
    });

    it('runs eth-docker’s arguments, once their database is waived', async () => {
      const folder = '/var/lib/web3signer';
      putIn([`${folder}/keys`], (root) => writeToolKeystore(join(root, folder, 'keys')));
      const argv = ethDocker(folder);
      waive(argv, 'postgres:5432/web3signer');
      runs(argv, folder);
      await expectVotes(await started());
      expect(inDebian(`ls ${folder}/keys`)).toContain('slashing_protection.sqlite');
    });

    it('runs DAppNode’s arguments, once their database is waived', async () => {
      putIn(['/data/keyfiles'], (root) => writeToolKeystore(join(root, 'data/keyfiles')));
      const argv = dappnode('');
      waive(argv, 'postgres.web3signer-hoodi.dappnode:5432/web3signer');
      runs(argv, '/data');
      const sign = `${(await started()).url}/api/v1/eth2/sign/${TOOL_KEY}`;
      expect((await askAs(DAPPNODE_HOST, sign, attestation({ target: 12 }))).statusCode).toBe(200);
      expect((await askAs(DAPPNODE_HOST, sign, attestation({ target: 12, head: rootOf(2) }))).statusCode).toBe(412);
    });

    it('leaves the record when it is removed and purged', () => {
      inDebian('dpkg --purge strongroom');
      expect(inDebian('ls /var/lib/strongroom')).toContain('slashing_protection.sqlite');
      expect(debian.run('ls /opt/strongroom /usr/lib/systemd/system/strongroom.service').code).not.toBe(0);
    });

    /** The database of these arguments is gone: the record begins above what its keys may have signed. */
    function waive(argv: readonly string[], database: string): void {
      const words = [...argv, '--print-config'].map((word) => `'${word}'`).join(' ');
      const jump = `slashing jump --slot=352 --epoch=11 --waive-web3signer=${database} -c /etc/strongroom/waived.yaml`;
      inDebian(`strongroom ${words} > /etc/strongroom/waived.yaml`);
      inDebian(`setpriv --reuid=strongroom --regid=strongroom --clear-groups strongroom ${jump}`);
    }
  });
}
