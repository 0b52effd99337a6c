// The image: what it says of itself is what it is, and the tools that start Web3Signer's image start it, in a file
// system that is only read.

import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { type RunningSigner, type SignerOptions, startSigner } from '../../rehearsal/signer.ts';
import { VERSION } from '../../signer/api/version.ts';
import { sha256 } from '../eif/image-program.ts';
import { noMounts } from '../support/needs.ts';
import { attestation, rootOf } from '../support/requests.ts';
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
import { enter, type Volume } from './chroot.ts';
import { COMMIT, filesIn, type MadeRelease, TIME_SECONDS } from './made-release.ts';

const NO_CHROOT = noMounts();
const IMAGE_USER = 10_000;

export function imageTests(made: () => MadeRelease): void {
  let signer: RunningSigner | undefined;
  afterEach(async () => {
    await signer?.stop();
    signer = undefined;
  });
  async function start(options: SignerOptions): Promise<RunningSigner> {
    signer = await startSigner(options);
    return signer;
  }

  it('says what it is, and its parts are what they are called', () => {
    const { configuration, manifest, layerFiles } = made().image;
    expect(configuration).toMatchObject({ architecture: 'amd64', os: 'linux', created: '2026-09-21T14:13:20Z' });
    expect(configuration.config).toMatchObject({ User: `${IMAGE_USER}:${IMAGE_USER}`, StopSignal: 'SIGTERM' });
    expect(configuration.config.Labels).toMatchObject({
      'org.opencontainers.image.version': VERSION,
      'org.opencontainers.image.revision': COMMIT,
    });
    const blobs = layerFiles.map((path) => readFileSync(path));
    expect(blobs.map((blob) => `sha256:${sha256(blob)}`)).toEqual(manifest.layers.map(({ digest }) => digest));
    expect(blobs.map(({ length }) => length)).toEqual(manifest.layers.map(({ size }) => size));
    const contents = blobs.map((blob) => `sha256:${sha256(gunzipSync(blob))}`);
    expect(contents).toEqual(configuration.rootfs.diff_ids);
  });

  it('has sorted names, one time, and owners by number', () => {
    for (const layer of made().image.layerFiles) {
      const listed = execFileSync('tar', ['-tvzf', layer, '--numeric-owner', '--full-time', '--utc'], {
        encoding: 'utf8',
      });
      const rows = [...listed.matchAll(/^\S+ (\d+\/\d+) +\d+ (\S+ \S+) (\S+)/gm)].map(([, ...row]) => row);
      expect(rows.length).toBeGreaterThan(5);
      const names = rows.map(([, , name = '']) => name.replace(/\/$/, ''));
      expect(names).toEqual(names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
      expect(new Set(rows.map(([, time]) => Date.parse(`${time}Z`)))).toEqual(new Set([TIME_SECONDS * 1000]));
      expect(rows.every(([owner = '']) => ['0/0', `${IMAGE_USER}/${IMAGE_USER}`].includes(owner))).toBe(true);
    }
  });

  it('has no shell, nothing that gives rights, and no sources', () => {
    const files = filesIn(made().image.root);
    const programs = execFileSync('find', [made().image.root, '-type', 'f', '-perm', '/111', '-printf', '%P\n'], {
      encoding: 'utf8',
    });
    const names = programs
      .trimEnd()
      .split('\n')
      .filter((name) => !/\.so(?:\.\d+)*$/.test(name));
    expect(names.sort()).toEqual(['opt/strongroom/bin/strongroom', 'opt/strongroom/runtime/node']);
    const privileged = execFileSync('find', [made().image.root, '-type', 'f', '-perm', '/6000']).toString();
    expect([privileged, files.filter((name) => /\.(?:ts|c|h)$|node_modules/.test(name))]).toEqual(['', []]);
  });

  describe.skipIf(NO_CHROOT)('in a file system that is only read, as its user', () => {
    /** @param name of a folder for the volumes */
    function inside(name: string, program: string, volumes: readonly string[]): [string, ...string[]] {
      const given = volumes.map((to): Volume => ({ from: folderAt(join(made().folder, name), to), to }));
      execFileSync('chown', ['-R', `${IMAGE_USER}:${IMAGE_USER}`, ...given.map(({ from }) => from)]);
      const ports = Object.entries(ON_FREE_PORTS).map(([key, value]) => `${key}=${value}`);
      const env = [...made().image.configuration.config.Env, ...ports];
      return [...enter({ root: made().image.root, volumes: given, user: IMAGE_USER, env }), program];
    }
    const entry = () => made().image.configuration.config.Entrypoint[0] ?? '';
    const run = ([command, ...args]: readonly [string, ...string[]], argv: readonly string[]) =>
      spawnSync(command, [...args, ...argv], { encoding: 'utf8' });
    /** Waives the database of the arguments, which is gone, as the refusal of a start says. `to` is a volume. */
    function waive(name: string, to: string, command: readonly string[], database: string): void {
      const program = inside(name, entry(), [to]);
      const printed = run(program, [...command, '--print-config']);
      const config = join(to, 'strongroom.yaml');
      writeFileSync(join(made().folder, name, config), printed.stdout);
      const jump = ['slashing', 'jump', '--slot=352', '--epoch=11', `--waive-web3signer=${database}`, '-c', config];
      expect(run(program, jump)).toMatchObject({ status: 0 });
    }

    it('can write nothing but its volumes', () => {
      const program = inside('written', '/opt/strongroom/runtime/ld-linux-x86-64.so.2', ['/data']);
      const probe = `const { writeFileSync } = require('node:fs');
const tried = ['/data/x', '/x', '/tmp/x', '/opt/strongroom/app/x'].map((path) => {
  try { writeFileSync(path, ''); return 'written'; } catch (error) { return error.code; }
});
console.log(process.getuid(), process.getgid(), process.getgroups().length, tried.join());`;
      const node = ['--library-path', '/opt/strongroom/runtime', '/opt/strongroom/runtime/node', '--eval', probe];
      expect(run(program, node)).toMatchObject({ status: 0, stdout: '10000 10000 1 written,EROFS,EROFS,EROFS\n' });
    });

    it('ethereum-package’s arguments start a signer that signs', async () => {
      writeDevnet(join(made().folder, 'ep'), true);
      const program = inside('ep', entry(), ['/network-configs', '/keystores']);
      await expectVotes(await start({ command: ethereumPackage(''), program }), DEVNET_ROOT);
    });

    it('eth-docker’s arguments start a signer that signs, once their database is waived', async () => {
      writeToolKeystore(folderAt(join(made().folder, 'ed'), 'var/lib/web3signer/keys'));
      const program = inside('ed', entry(), ['/var/lib/web3signer']);
      const command = ethDocker('/var/lib/web3signer');
      const refused = run(program, command);
      expect(refused).toMatchObject({ status: 78, stderr: expect.stringContaining('strongroom slashing import') });
      waive('ed', '/var/lib/web3signer', command, 'postgres:5432/web3signer');
      await expectVotes(await start({ command, program }));
    });

    it('DAppNode’s arguments, by the path of Web3Signer’s program, start a signer that signs', async () => {
      writeToolKeystore(folderAt(join(made().folder, 'dn'), 'data/keyfiles'));
      const program = inside('dn', '/opt/web3signer/bin/web3signer', ['/data']);
      const command = dappnode('');
      waive('dn', '/data', command, 'postgres.web3signer-hoodi.dappnode:5432/web3signer');
      const { url } = await start({ command, program });
      const sign = `${url}/api/v1/eth2/sign/${TOOL_KEY}`;
      expect((await askAs(DAPPNODE_HOST, sign, attestation({ target: 12 }))).statusCode).toBe(200);
      expect((await askAs(DAPPNODE_HOST, sign, attestation({ target: 12, head: rootOf(2) }))).statusCode).toBe(412);
    });

    it('listens on all addresses of its container, as Web3Signer’s image does', () => {
      const options = ['--key-store-path=/data', '--metrics-enabled', '--print-config', 'eth2', '--network=hoodi'];
      const [unshare, ...rest] = inside('all', entry(), ['/data']);
      const printed = run([unshare, ...rest.map((word) => word.replaceAll(/'SVC_[^']*'/g, ''))], options);
      expect(printed.status).toBe(0);
      expect(printed.stdout.match(/listen_address: "0\.0\.0\.0"/g)).toHaveLength(2);
    });
  });
}
