// `web3signer.ports` in --data-path: the ports in use, as a Java properties file, for programs that start a
// Web3Signer on port 0 and look there. It is there from the moment that the signer listens until it ends.

import { rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { OpenListenersStep } from '../../signer/boot/parts.ts';
import { type GivenOptions, isOn } from './given.ts';

const PORTS_FILE = 'web3signer.ports';

/** Without --data-path there is none, as with Web3Signer. A file that cannot be written stops nothing. */
export function writingPorts(given: GivenOptions, openListeners: OpenListenersStep): OpenListenersStep {
  const folder = given.get('data-path')?.value;
  if (folder === undefined) return openListeners;
  const path = join(resolve(folder), PORTS_FILE);
  return async (config, parts, world, opened) => {
    const listeners = await openListeners(config, parts, world, opened);
    const metrics = isOn(given, 'metrics-enabled') ? `metrics-port=${listeners.metrics.port}\n` : '';
    opened.defer(() => rmSync(path, { force: true }));
    try {
      const head = '# The ports of this signer. The file goes when the signer ends.\n';
      writeFileSync(path, `${head}http-port=${listeners.http.port}\n${metrics}`);
    } catch (error) {
      world.logger.module('server').warn({ err: error, path }, 'the file of the ports cannot be written');
    }
    return listeners;
  };
}
