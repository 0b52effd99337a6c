// What an image runs, in a process of its own on this machine: the same start, with Unix sockets for vsock and the
// test's NSM for /dev/nsm. Nothing but the platform, the image and the waiting differ from production.
// argv: a folder with `image.json`, the NSM's socket and the streams.

import dns from 'node:dns';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FETCH_LIMITS } from '../../enclave/parent/configuration-source.ts';
import { runEnclave } from '../../enclave/start.ts';
import type { ProgramImage } from './enclave-process.ts';
import { nsmOverSocket } from './nsm-socket.ts';
import { LONGEST_WAIT_MS } from './patience.ts';
import { unixTransport } from './unix-transport.ts';

const folder = process.argv[2] ?? '';
const { image, aliasPort, patienceMs, rootSha256 } = JSON.parse(
  readFileSync(join(folder, 'image.json'), 'utf8'),
) as ProgramImage;
resolveByHosts(join(folder, 'hosts'));
const quick = { patienceMs, firstPauseMs: 10, maxPauseMs: 100 };

await runEnclave(
  image,
  {
    nsmDevice: nsmOverSocket(join(folder, 'nsm')),
    documents: { name: 'the NSM of the tests', rootSha256 },
    parent: unixTransport(folder, 'enclave'),
    hostsPath: join(folder, 'hosts'),
    aliasPort: () => aliasPort,
  },
  {
    configurationPath: join(folder, 'baked.yaml'),
    patience: {
      configuration: { ...FETCH_LIMITS, ...quick, attemptMs: LONGEST_WAIT_MS },
      credentials: quick,
      readTimeEveryMs: 1000, // the test's clock jumps, which the enclave would see after a minute
    },
  },
);

/** In an enclave this file is /etc/hosts. A name that is not in it is the system's, as before. */
function resolveByHosts(path: string): void {
  const { lookup } = dns;
  const byHosts = (hostname: string, ...rest: unknown[]): void => {
    const line = (existsSync(path) ? readFileSync(path, 'utf8') : '')
      .split('\n')
      .find((each) => each.split(/\s+/).slice(1).includes(hostname));
    Reflect.apply(lookup, dns, [line?.split(/\s+/)[0] ?? hostname, ...rest]);
  };
  Object.assign(dns, { lookup: byHosts });
}
