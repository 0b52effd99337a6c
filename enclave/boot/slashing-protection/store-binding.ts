// Part of the step "slashing protection": the store over which this signer's fleet signs, as the state table names it.
// Without a state table, nothing is bound, and nothing can detect a second signer.

import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { hostname } from 'node:os';
import { StoreBinding } from '../../chamber/store-binding.ts';
import { stalenessBoundSeconds } from '../../chamber/watcher.ts';
import type { Config } from '../../config/options.ts';
import { type JumpFloor, jumpToPresent } from '../../slashing/jump.ts';
import type { OnJump, SlashingBackend } from '../../slashing/types.ts';
import type { Custody } from '../custody.ts';
import type { World } from '../world.ts';

export interface BindStoreParts {
  /** Unsealed. */
  readonly custody: Custody;
  readonly backend: SlashingBackend;
  readonly jumpFloor: JumpFloor;
  readonly onJump: OnJump;
}

/** Undefined where there is nothing to bind; otherwise after the first look at the row. */
export async function bindStore(
  config: Pick<Config, 'anti_slashing' | 'signer_state'>,
  { custody, backend, jumpFloor, onJump }: BindStoreParts,
  { clock, logger }: Pick<World, 'clock' | 'logger'>,
  opened: AsyncDisposableStack,
): Promise<StoreBinding | undefined> {
  if (custody.binding === undefined || backend.name === 'noop') return undefined;
  const binding = new StoreBinding(
    {
      boundMs: stalenessBoundSeconds(config.signer_state.refresh_interval_seconds) * 1000,
      isFreshTable: custody.isNewTable,
      replica: `${hostname()}-${randomBytes(4).toString('hex')}`,
      seat: seatOf(config.anti_slashing),
    },
    {
      table: custody.binding,
      backend,
      jump: async (revision) => {
        await jumpToPresent(backend, jumpFloor, revision);
        onJump('other_store');
      },
      clock,
      log: logger.module('slashing'),
    },
  );
  custody.chamber.onSealed(() => binding.stop());
  opened.defer(() => binding.stop());
  await binding.start();
  return binding;
}

/**
 * A file and when it was made: a copy has another, and a lock keeps each to one process. Stores of many signers have
 * none.
 */
function seatOf({ backend, path }: Config['anti_slashing']): string {
  if (backend !== 'sqlite') return '';
  const { ino, birthtimeNs } = statSync(path, { bigint: true });
  return `${ino}/${birthtimeNs}`;
}
