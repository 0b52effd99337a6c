// What a person runs first, in each form that a release has: a try, and a configuration that passes the check, with
// nothing of a checkout beside the program.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lacking, noMounts } from '../support/needs.ts';
import { enter, type Volume } from './chroot.ts';
import { type MadeRelease, packageTree } from './made-release.ts';

const IMAGE_USER = 10_000;
const NO_DPKG = lacking('dpkg-deb');
const NO_CHROOT = noMounts();

interface Place {
  readonly program: readonly [string, ...string[]];
  readonly env: NodeJS.ProcessEnv;
  /** A folder that can be written, as the program and as the test see it. */
  readonly data: { readonly inside: string; readonly outside: string };
  readonly temporary: string;
}

export function firstStepsTests(made: () => MadeRelease): void {
  const folders = (): { readonly data: string; readonly temporary: string } => {
    const [data, temporary] = ['data-', 'tmp-'].map((name) => mkdtempSync(join(made().folder, name)));
    return { data: data ?? '', temporary: temporary ?? '' };
  };
  const unpacked = (program: string): Place => {
    const { data, temporary } = folders();
    return { program: [program], env: { TMPDIR: temporary }, data: { inside: data, outside: data }, temporary };
  };
  const packaged = (): Place => unpacked(join(packageTree(made()), 'opt/strongroom/bin/strongroom'));
  const contained = (): Place => {
    const { data, temporary } = folders();
    execFileSync('chown', [`${IMAGE_USER}:${IMAGE_USER}`, data, temporary]);
    const volumes: Volume[] = [
      { from: data, to: '/data' },
      { from: temporary, to: '/tmp' },
    ];
    const { root, configuration } = made().image;
    const { Env: env, Entrypoint: entry } = configuration.config;
    const program = [...enter({ root, volumes, user: IMAGE_USER, env }), ...entry] as [string, ...string[]];
    return { program, env: {}, data: { inside: '/data', outside: data }, temporary };
  };

  describe.each([
    ['the tarball', () => unpacked(join(made().tree, 'bin/strongroom')), undefined],
    ['the package', packaged, NO_DPKG],
    ['the container', contained, NO_CHROOT],
  ])('from %s', (name, open, lacks) => {
    const run = ({ program: [command, ...args], env }: Place, ...argv: readonly string[]) =>
      spawnSync(command, [...args, ...argv], {
        encoding: 'utf8',
        env: { PATH: process.env['PATH'], XDG_CONFIG_HOME: '/dev/null/none', ...env },
      });

    it.skipIf(lacks)('try signs, refuses, and leaves nothing', () => {
      const place = open();
      const { status, stdout, stderr } = run(place, 'try');
      expect({ name, status, stderr }).toEqual({ name, status: 0, stderr: '' });
      expect(stdout).toMatch(/\n +200 {2}the signature 0x[0-9a-f]{8}…/);
      expect(stdout).toMatch(/\n +412 {2}\{"code":412,"reason":"double_vote"/);
      expect([readdirSync(place.data.outside), readdirSync(place.temporary)]).toEqual([[], []]);
    });

    it.skipIf(lacks)('init writes a configuration that passes the check', () => {
      const place = open();
      const { inside, outside } = place.data;
      const { status, stderr } = run(place, 'init', `${inside}/signer`, '--network', 'hoodi', '--client', 'lighthouse');
      expect({ name, status, stderr }).toMatchObject({ name, status: 0 });
      expect(readdirSync(join(outside, 'signer')).sort()).toEqual(
        ['keys', 'passwords', 'records', 'strongroom.yaml', 'tokens'], //
      );
      const check = run(place, 'server', '--check', '--offline', '-c', `${inside}/signer/strongroom.yaml`);
      expect(check).toMatchObject({ status: 0, stdout: 'strongroom: the configuration is valid\n' });
    });
  });
}
