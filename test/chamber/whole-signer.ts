// A whole signer of the stateful mode in the test's own process, with one key: on a clock that the test moves and
// behind a proxy that makes DynamoDB fail. Each test has a folder and a table of its own.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, vi } from 'vitest';
import { stringify } from 'yaml';
import { systemClock, type Witness } from '../../common/observe/clock.ts';
import type { Logger } from '../../common/observe/logger.ts';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { loadConfig } from '../../service/config/load.ts';
import { SERVICE_PARTS } from '../../service/parts.ts';
import { type BootedSigner, boot } from '../../signer/boot/boot.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { testKey } from '../support/requests.ts';

export interface SignerSite {
  world: CustodyWorld;
  proxy: FaultProxy;
  folder: string;
  table: string;
  /** In seconds: how far all clocks, those of the kernel and of DynamoDB included, have gone on by themselves. */
  ahead: number;
  /** @param sections over those of a signer of this table; the caller shuts it down */
  boot(logger: Logger, sections?: Record<string, unknown>, ceremony?: unknown): Promise<BootedSigner>;
}

export function signerSite(): SignerSite {
  const site = { folder: '', table: '', ahead: 0, boot: bootHere } as SignerSite;

  function bootHere(logger: Logger, sections = {}, ceremony = site.world.createCeremony()): Promise<BootedSigner> {
    const yaml = stringify(
      {
        ...site.world.configuration(site.table, ceremony),
        server: { listen_address: '127.0.0.1', listen_port: 0 },
        metrics: { listen_address: '127.0.0.1', listen_port: 0 },
        key_sources: { filesystem: { paths: [join(site.folder, 'keys')] } },
        anti_slashing: { path: join(site.folder, 'slashing.sqlite') },
        ...sections,
      },
      { aliasDuplicateObjects: false },
    );
    const loaded = loadConfig(
      { argv: ['-c', 'x'], env: {}, readFile: () => Buffer.from(yaml) },
      { compiledCeremony: false },
    );
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.violations));
    const ahead = (time: number) => time + site.ahead * 1000;
    const clock = { now: () => ahead(systemClock.now()), monotonic: () => ahead(systemClock.monotonic()) };
    const kernel: Witness = { name: 'the kernel', ask: async () => ({ time: clock.now(), confirms: true }) };
    const openTime = async () => ({ ...clock, witnesses: [kernel] });
    return boot(loaded.config, { ...SERVICE_PARTS, openTime }, { logger, clock });
  }

  beforeAll(async () => {
    site.world = await startCustody();
    const now = () => systemClock.now() + site.ahead * 1000;
    site.proxy = await startFaultProxy(site.world.dynamodb.endpoint, now);
    const environment = site.world.environment({ dynamodb: site.proxy.endpoint });
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await site.proxy.close();
    await site.world.close();
  });
  beforeEach(async () => {
    site.ahead = 0;
    site.folder = mkdtempSync(join(tmpdir(), 'strongroom-chamber-'));
    mkdirSync(join(site.folder, 'keys'));
    writeFileSync(join(site.folder, 'keys/key.yaml'), `type: file-raw\nprivateKey: "${testKey(0).secret}"\n`);
    site.table = await site.world.createTable();
  });
  afterEach(() => {
    site.proxy.setRule(undefined);
    rmSync(site.folder, { recursive: true, force: true });
  });
  return site;
}
