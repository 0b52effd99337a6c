// A Debian with systemd as its first process, beside the one the tests run on: the host's own files under an overlay in
// memory, with a package installed by dpkg. Nothing that happens in it is seen outside or stays. Its services run as
// they would, with everything that their units forbid. Only root can, and not in every sandbox.

import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { kill, tracked } from '../../rehearsal/signer.ts';
import { lacking, skipped } from '../support/needs.ts';

const SYSTEMD = '/lib/systemd/systemd';

/** Arguments: a folder to mount on, the package. */
const BOOT = `set -eu
folder=$1 package=$2
mount --make-rprivate /
mount -t tmpfs tmpfs "$folder"
cd "$folder"
mkdir upper work root
# xino: a file and its folder are of one device, as on a disk; the signer refuses a file that is mounted by itself.
mount -t overlay overlay -o "xino=on,lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" root
mount -t proc proc root/proc
mount -t sysfs -o ro sysfs root/sys
mount -t cgroup2 none root/sys/fs/cgroup
mount -t tmpfs tmpfs root/dev
for device in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 "root/dev/\${device%:*}" c 1 "\${device#*:}"; done
mkdir root/dev/shm root/dev/pts
mount -t devpts -o newinstance,ptmxmode=0666 devpts root/dev/pts
ln -s pts/ptmx root/dev/ptmx
ln -s /proc/self/fd root/dev/fd
touch root/dev/console
mount --bind /dev/null root/dev/console
mount -t tmpfs tmpfs root/run
mount -t tmpfs tmpfs root/tmp
rm -rf root/var/lib/strongroom root/etc/strongroom
cp "$package" root/package.deb
chroot root dpkg --install /package.deb
printf '[Unit]\\n' > root/etc/systemd/system/strongroom-test.target
cd root
mkdir tmp/old
pivot_root . tmp/old
umount -l /tmp/old
exec ${SYSTEMD} --unit=strongroom-test.target --log-target=null --show-status=no
`;

/** Before it has a root of its own, another systemd would answer: the host's. */
const IS_RUNNING = '[ -e /etc/systemd/system/strongroom-test.target ] && systemctl is-system-running';

export interface Debian {
  /** Runs a shell script in it, as root; `out` is what it wrote. */
  run(script: string, input?: string | Buffer): { readonly code: number | null; readonly out: string };
  end(): Promise<void>;
}

/** Why there is none here; undefined when there is. */
export function noDebian(): string | undefined {
  const lacks = lacking('Linux', 'root', 'unshare', 'dpkg-deb', 'systemd-analyze');
  if (lacks !== undefined) return lacks;
  const mounts =
    'mount --make-rprivate / && mount -t cgroup2 none /mnt && mount -t tmpfs none /mnt && mkdir /mnt/a /mnt/b /mnt/c';
  const overlay = 'mount -t overlay none -o lowerdir=/,upperdir=/mnt/a,workdir=/mnt/b /mnt/c';
  const probe = spawnSync('unshare', ['--mount', '--cgroup', '--pid', '--fork', 'sh', '-c', `${mounts} && ${overlay}`]);
  return probe.status === 0 && cgroups() !== undefined
    ? undefined
    : skipped('a kernel that lets root mount an overlay and cgroup2');
}

/** Where version 2 of control groups is mounted. */
function cgroups(): string | undefined {
  return /^\S+ (\S+) cgroup2 /m.exec(readFileSync('/proc/mounts', 'utf8'))?.[1];
}

/** @param folder of its own, empty @param packageFile to install */
export async function bootDebian(folder: string, packageFile: string): Promise<Debian> {
  const cgroup = join(cgroups() ?? '', `strongroom-test-${process.pid}`);
  mkdirSync(cgroup);
  const own = ['--mount', '--pid', '--ipc', '--uts', '--cgroup', '--fork', '--kill-child'];
  const begin = 'echo $$ > "$0/cgroup.procs"; exec unshare "$@"';
  const child = tracked(
    spawn('sh', ['-c', begin, cgroup, ...own, 'sh', '-c', BOOT, 'sh', folder, packageFile], {
      env: { PATH: process.env['PATH'], container: 'strongroom-test', LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  );
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (said += chunk));
  const run: Debian['run'] = (script, input = '') => {
    const target = firstProcess(child);
    if (target === undefined) return { code: null, out: '' };
    const into = ['--target', target, '--mount', '--pid', '--root', '--wdns=/', '--'];
    const { status, stdout, stderr } = spawnSync('nsenter', [...into, 'sh', '-c', script], { encoding: 'utf8', input });
    return { code: status, out: stdout + stderr };
  };
  while (child.exitCode === null && !/^(?:running|degraded)/.test(run(IS_RUNNING).out)) await pause(100);
  if (child.exitCode !== null) throw new Error(`it does not boot: ${said}`);
  const end = async (): Promise<void> => {
    await kill(child);
    await removed(cgroup);
  };
  return { run, end };
}

/** The only child of unshare is the first process inside; undefined before it is there, and after. */
function firstProcess({ pid = 0, exitCode }: ChildProcess): string | undefined {
  const file = `/proc/${pid}/task/${pid}/children`;
  if (exitCode !== null || !existsSync(file)) return undefined;
  return readFileSync(file, 'utf8').trim().split(' ')[0] || undefined;
}

/** Groups go when the last process in them is gone. */
async function removed(cgroup: string): Promise<void> {
  while (readFileSync(join(cgroup, 'cgroup.events'), 'utf8').includes('populated 1')) await pause(20);
  const groups = execFileSync('find', [cgroup, '-depth', '-type', 'd'], { encoding: 'utf8' }).trim().split('\n');
  for (const group of groups) rmdirSync(group);
}
