// A machine of its own for pages that use fixed ports and folders of the system: namespaces of network, mounts and
// processes around the reader's shell. There /etc is a copy and /var/lib, /opt and /srv are empty; nothing that a page
// writes there is on the machine of the tests, and what it leaves running ends with its shell. Only root can make one.

import { spawnSync } from 'node:child_process';
import { lacking, skipped } from '../support/needs.ts';
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

/** Why there is none here, which was said; undefined when there is. */
export function noOwnMachine(): string | undefined {
  const lacks = lacking('Linux', 'root', 'unshare', 'ip');
  if (lacks !== undefined) return lacks;
  const probe = spawnSync('unshare', [...OWN, 'sh', '-c', ENTER, 'sh', '-c', 'true']);
  return probe.status === 0 ? undefined : skipped('a kernel that gives root namespaces of its own');
}

/** The rehearsal starts `bash`: here it is one that enters the machine first. */
export async function openOwnMachine(parts: WorldParts): Promise<OpenWorld> {
  const world = await openWorld(parts);
  writeScript(world.bin, 'bash', `#!/bin/sh\nexec unshare ${OWN.join(' ')} sh -c '${ENTER}' sh "$@"\n`);
  return world;
}
