// A file system of its own for a program: a folder that is everything there is, that cannot be written but where a
// container would have a volume, and a user who is not root. As a container, made of the kernel's parts by hand: only
// root can, and not in every sandbox.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

export interface Volume {
  readonly from: string;
  readonly to: string;
}

export interface Inside {
  readonly root: string;
  readonly volumes: readonly Volume[];
  readonly user: number;
  readonly env: readonly string[];
}

/** Arguments: the root, the user, pairs of volumes, `--`, the command. */
const ENTER = `set -eu
root=$1 user=$2
shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc -o ro proc "$root/proc"
mount --rbind /dev "$root/dev"
while [ "$1" != -- ]; do
  mount --bind "$1" "$root$2"
  shift 2
done
shift
mount -o remount,bind,ro "$root"
chroot=$(command -v chroot)
exec setpriv --no-new-privs env -i "$chroot" --groups= --userspec="$user:$user" "$root" "$@"
`;

/** The first words of a command that runs there; the environment is set by a small program outside. */
export function enter({ root, volumes, user, env }: Inside): [string, ...string[]] {
  for (const { to } of volumes) mkdirSync(join(root, to), { recursive: true });
  const pairs = volumes.flatMap(({ from, to }) => [from, to]);
  const script = ENTER.replace('env -i', `env -i ${env.map((pair) => `'${pair}'`).join(' ')}`);
  return ['unshare', '--mount', 'sh', '-c', script, 'sh', root, String(user), ...pairs, '--'];
}
