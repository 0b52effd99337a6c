// What the console has to say about the image's first process. Judged outside: in the guest it is the first process and
// there is no other.

import assert from 'node:assert/strict';
import type { GuestEnd } from '../boot-guest.ts';
import { NotApplicable, type OutsideCheck } from '../suite.ts';

/** eif/init/signer.c; part of what is measured, so that a change of it has to be meant. */
const ARGUMENTS = [
  '/usr/bin/node',
  '--disable-sigusr1',
  '--disable-warning=ExperimentalWarning',
  '--max-semi-space-size=16',
  '--v8-pool-size=0',
  '--use-openssl-ca',
  '/app/main.mjs',
];
const MOUNTS = [
  /^proc \/proc proc rw,nosuid,nodev,noexec,relatime 0 0$/,
  /^sysfs \/sys sysfs rw,nosuid,nodev,noexec,relatime 0 0$/,
  /^devtmpfs \/dev devtmpfs rw,nosuid,noexec,\S*mode=755\S* 0 0$/,
  /^tmpfs \/tmp tmpfs rw,nosuid,nodev,noexec,\S*size=16384k\S* 0 0$/,
  /^tmpfs \/run tmpfs rw,nosuid,nodev,noexec,\S*size=16384k,\S*mode=755\S* 0 0$/,
];
const ENDED = 'the signer ended with exit status 7';
const STARTED = 'the signer has started';

/** Started by the kernel, in an image without a signer, with no parent. */
export const ALONE: readonly OutsideCheck[] = [
  {
    name: 'without an answer to its heartbeat it gives up, and restarts; the parent is CID 3 when nothing else is said',
    check(lines, end) {
      assert.deepEqual(said(lines), ['no heartbeat with the parent (CID 3, port 9000): No such device']);
      restarted(lines, end);
    },
  },
];

export const WITH_A_PARENT: readonly OutsideCheck[] = [
  {
    name: 'the signer gets exactly its arguments',
    check: (lines) => assert.deepEqual(told(lines, 'argument '), ARGUMENTS),
  },
  {
    name: 'the signer gets exactly its environment, and nothing of the kernel’s command line',
    check(lines) {
      assert.deepEqual(told(lines, 'variable '), [
        'PATH=/usr/bin:/bin',
        'SSL_CERT_FILE=/etc/ssl/certs/ca-bundle.pem',
        'MALLOC_ARENA_MAX=2',
        'STRONGROOM_PARENT_CID=1',
      ]);
    },
  },
  {
    name: 'the signer can leave no core dump, may open 65536 files, and has no input',
    check(lines) {
      assert.deepEqual(told(lines, 'limit '), ['core 0 0', 'files 65536 65536']);
      assert.deepEqual(told(lines, 'input '), ['/dev/null']);
    },
  },
  {
    name: 'the kernel’s file systems and memory for files are mounted, bounded, and nothing is executed there',
    check(lines) {
      const mounted = told(lines, '/proc/mounts: ').filter((line) => !line.startsWith('rootfs / '));
      assert.equal(mounted.length, MOUNTS.length, mounted.join(' | '));
      for (const [at, pattern] of MOUNTS.entries()) assert.match(mounted[at] ?? '', pattern);
    },
  },
  {
    name: 'modules that are there already are left alone, the others of the list are loaded, and then no more',
    check(lines) {
      const loaded = told(lines, '/proc/modules: ').map((line) => line.split(' ')[0]);
      assert(loaded.includes('cuse') && loaded.includes('vsock_loopback'), loaded.join());
      assert.deepEqual(told(lines, '/proc/sys/kernel/modules_disabled: '), ['1']);
    },
  },
  {
    name: 'accept queues may be as long as the listeners ask for, and the loopback interface is up',
    check(lines) {
      assert.deepEqual(told(lines, '/proc/sys/net/core/somaxconn: '), ['4096']);
      assert.deepEqual(told(lines, 'lo is '), ['up']);
    },
  },
  {
    name: 'no program can make an io_uring ring, where the kernel can be told so',
    check(lines) {
      const [setting] = told(lines, '/proc/sys/kernel/io_uring_disabled: ');
      const [release = ''] = told(lines, '/proc/sys/kernel/osrelease: ');
      if (setting === 'none' && isBefore66(release))
        throw new NotApplicable(`Linux ${release} has no such setting, 6.6 has`);
      assert.equal(setting, '2');
    },
  },
  {
    name: 'a heartbeat that is answered with another byte is sent again',
    check(lines) {
      assert.deepEqual(
        lines.filter((line) => line.startsWith('heartbeat ')),
        ['heartbeat 1: b7', 'heartbeat 2: b7'],
      );
    },
  },
  {
    name: 'what the signer leaves behind is reaped',
    check: (lines) => assert.deepEqual(told(lines, 'the orphan '), ['was reaped']),
  },
  {
    name: 'the signer’s end is told, and restarts the enclave',
    check(lines, end) {
      assert.deepEqual(said(lines), [STARTED, ENDED]);
      restarted(lines, end);
    },
  },
];

export const CASES: readonly OutsideCheck[] = [
  endsTheBoot('a module that is not there', 'missing-module', [
    'opening the kernel module /lib/modules/strongroom/nowhere.ko: No such file or directory',
  ]),
  endsTheBoot('a module that is none', 'bad-module', ['loading the kernel module /tmp/bad.ko: Exec format error']),
  endsTheBoot('a list of modules that is too long', 'long-list', [
    'reading /etc/strongroom/modules: Argument list too long',
  ]),
  {
    name: 'where a module ends the boot, modules were not forbidden yet; where they are in order, they are',
    check(lines) {
      const after = lines.flatMap((line) => /^case ended, modules_disabled (\d)$/.exec(line)?.[1] ?? []);
      assert.match(after.join(''), /^0001{11}$/);
    },
  },
  endsTheBoot('a CID that is no decimal number', 'odd-cid', ['strongroom.parent_cid=0x1: Invalid argument']),
  endsTheBoot('a CID that is empty', 'empty-cid', ['strongroom.parent_cid=: Invalid argument']),
  endsTheBoot('the CID that means any', 'any-cid', ['strongroom.parent_cid=4294967295: Numerical result out of range']),
  endsTheBoot('a CID that is there twice', 'two-cids', ['strongroom.parent_cid= is there 2 times: Invalid argument']),
  endsTheBoot('another word for the evidence', 'odd-evidence', ['strongroom.evidence=signed: Invalid argument']),
  {
    name: 'an image that states unsigned evidence tells the signer so, and no other does',
    check(lines) {
      const variable = 'STRONGROOM_EVIDENCE=unsigned';
      assert(told(inCase(lines, 'unsigned-evidence'), 'variable ').includes(variable));
      assert.equal(told(lines, 'variable ').filter((line) => line.startsWith('STRONGROOM_EVIDENCE')).length, 1);
    },
  },
  {
    name: 'io_uring is disabled for every process before the signer starts',
    check: (lines) => assert.deepEqual(told(inCase(lines, 'io-uring'), '/proc/sys/kernel/io_uring_disabled: '), ['2']),
  },
  endsTheBoot('a kernel that refuses to disable io_uring', 'io-uring-refused', [
    'disabling io_uring: Read-only file system',
  ]),
  {
    name: 'a kernel that refuses longer accept queues is told of, and the signer starts',
    check(lines) {
      const [refused, ...rest] = said(inCase(lines, 'accept-queue-refused'));
      assert.equal(refused, 'accept queues keep their limit: /proc/sys/net/core/somaxconn: Read-only file system');
      assert.deepEqual(rest, [STARTED, ENDED]);
    },
  },
  endsTheBoot('a signer that is killed', 'killed', [STARTED, 'the signer was killed by signal 9']),
  {
    name: 'an image without Node ends the boot: its status is told',
    check(lines) {
      const found = said(inCase(lines, 'missing-node')).toSorted();
      const executing = 'executing /usr/bin/node failed (errno 2)';
      assert.deepEqual(found, [executing, 'the signer ended with exit status 127', STARTED].toSorted());
    },
  },
  {
    name: 'run by hand it refuses, and restarts nothing',
    check(lines) {
      assert.deepEqual(inCase(lines, 'not-first'), ['strongroom init: not the first process: refused']);
      assert(lines.includes('case ended, status 1'));
    },
  },
];

/** kernel.io_uring_disabled came with Linux 6.6. */
function isBefore66(release: string): boolean {
  const [, major, minor] = /^(\d+)\.(\d+)\./.exec(release)?.map(Number) ?? [];
  return major !== undefined && minor !== undefined && (major < 6 || (major === 6 && minor < 6));
}

function endsTheBoot(what: string, name: string, expected: readonly string[]): OutsideCheck {
  return { name: `${what} ends the boot`, check: (lines) => assert.deepEqual(said(inCase(lines, name)), expected) };
}

/** Init's own lines. */
function said(lines: readonly string[]): readonly string[] {
  return linesWith(lines, 'strongroom init: ');
}

/** Lines of the program in place of Node. */
function told(lines: readonly string[], about: string): readonly string[] {
  return linesWith(lines, `node: ${about}`);
}

function linesWith(lines: readonly string[], start: string): readonly string[] {
  return lines.filter((line) => line.startsWith(start)).map((line) => line.slice(start.length));
}

function inCase(lines: readonly string[], name: string): readonly string[] {
  const begin = lines.indexOf(`case ${name}`);
  assert(begin !== -1, `no case ${name}`);
  const end = lines.findIndex((line, at) => at > begin && line.startsWith('case ended'));
  assert(end !== -1, `the case ${name} did not end`);
  return lines.slice(begin + 1, end);
}

/** By itself: a panic ends the guest as well. */
function restarted(lines: readonly string[], { exitCode }: GuestEnd): void {
  assert.equal(exitCode, 0);
  assert(!lines.some((line) => line.includes('Kernel panic')), 'the kernel panicked');
}
