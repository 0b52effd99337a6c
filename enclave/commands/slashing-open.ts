// Opens the configured slashing store for a command, and closes it. Whether it holds anything is asked before a start
// that would otherwise begin with an empty record.

import { existsSync } from 'node:fs';
import { systemClock } from '../../observe/clock.ts';
import { createLogger } from '../../observe/logger.ts';
import { commandIntegrityKey } from '../boot/custody.ts';
import { networkOf } from '../boot/network.ts';
import { openSlashingBackend } from '../boot/slashing-protection/store.ts';
import type { Config } from '../config/options.ts';
import type { OpenStore } from './slashing-parts.ts';

export interface StoreUse {
  readonly stderr: NodeJS.WritableStream;
  readonly isForJump: boolean;
}

export type OpenedStore = Pick<OpenStore, 'backend' | 'network' | 'logger'>;

export async function withStore<Result>(
  config: Config,
  { stderr, isForJump }: StoreUse,
  use: (store: OpenedStore) => Promise<Result>,
): Promise<Result> {
  const network = networkOf(config);
  const logger = createLogger({ level: 'warn', format: 'text', color: false }, stderr);
  const integrityKey = await commandIntegrityKey(config, { network }, { logger });
  const parts = { network, integrityKey, isForJump };
  const backend = await openSlashingBackend(config.anti_slashing, parts, { logger, clock: systemClock }).finally(() =>
    integrityKey?.fill(0),
  );
  try {
    return await use({ backend, network, logger });
  } finally {
    await backend.close();
  }
}

/** Entries, or a floor that a jump set. A SQLite database that is not there is not made. */
export async function hasSlashingRecords(config: Config, stderr: NodeJS.WritableStream): Promise<boolean> {
  const { backend, path } = config.anti_slashing;
  if (backend === 'sqlite' && !existsSync(path)) return false;
  return withStore(config, { stderr, isForJump: false }, async ({ backend: store }) => {
    const { blocks, attestations } = await store.status();
    const { floor } = await store.identity();
    return blocks > 0 || attestations > 0 || floor !== null;
  });
}
