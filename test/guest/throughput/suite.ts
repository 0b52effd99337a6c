// Suite "throughput": the parent proxy over vsock beside plain TCP, in one guest and one run, as ratios (issue 6;
// docs/performance.md).

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CpioEntry, writeCpio } from '../../../eif/format/cpio.ts';
import { baseEntries } from '../base-ramdisk.ts';
import { programEntries } from '../bundle.ts';
import type { GuestSuite } from '../suite.ts';
import { CONFIGURATION, CONFIGURATION_PATH } from './settings.ts';

export const throughputSuite: GuestSuite = {
  name: 'throughput',
  async prepare(packages) {
    const programs = await programEntries({
      measure: 'test/guest/throughput/measure.ts',
      'parent-proxy': 'test/guest/appliance/programs/parent-proxy.ts',
    });
    const init = readFileSync(join(import.meta.dirname, 'init.sh'));
    const added: CpioEntry[] = [
      { type: 'file', path: 'init', data: init, mode: 0o755 },
      { type: 'file', path: CONFIGURATION_PATH.slice(1), data: Buffer.from(CONFIGURATION) },
      { type: 'file', path: 'etc/hosts', data: Buffer.from('127.0.0.1 localhost\n') },
    ];
    return [{ ramdisks: [writeCpio(baseEntries(packages)), writeCpio([...added, ...programs])] }];
  },
};
