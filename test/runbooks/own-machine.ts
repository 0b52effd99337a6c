// A machine of its own for pages that use fixed ports and folders of the system: namespaces of network, mounts and
// processes around the reader's shell. There /etc is a copy and /var/lib, /opt and /srv are empty; nothing that a page
// writes there is on the machine of the tests, and what it leaves running ends with its shell. Only root can make one.

import { spawnSync } from 'node:child_process';
import { writeScript } from './programs.ts';
import { type OpenWorld, openWorld, type WorldParts } from './world.ts';

const ENTER = `set -eu
ip link set lo up
mount --make-rprivate /
mount -t tmpfs none /mnt
cp -a /etc /mnt/etc
mount --bind /mnt/etc /etc
for folder in /var/lib /opt /srv; do mount -t tmpfs none "$folder"; done
exec /bin/bash "$@"
`;
const OWN = ['--net', '--mount', '--pid', '--fork', '--kill-child=KILL', '--mount-proc'];

const probe = spawnSync('unshare', [...OWN, 'sh', '-c', ENTER, 'sh', '-c', 'true']);
/** Why there is none here; undefined when there is. */
export const NO_OWN_MACHINE =
  process.platform === 'linux' && probe.status === 0 ? undefined : 'SKIPPED: needs root, ip, and a kernel that mounts';

/** The rehearsal starts `bash`: here it is one that enters the machine first. */
export async function openOwnMachine(parts: WorldParts): Promise<OpenWorld> {
  const world = await openWorld(parts);
  writeScript(world.bin, 'bash', `#!/bin/sh\nexec unshare ${OWN.join(' ')} sh -c '${ENTER}' sh "$@"\n`);
  return world;
}
