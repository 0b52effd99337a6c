// `strongroom slashing status|jump|retire|reinstate|prune`: what is done with a store as a whole, or with keys in it.

import { EXIT } from '../../command-line/exit-codes.ts';
import { sayFailure } from '../../command-line/failure.ts';
import { note } from '../../command-line/terminal.ts';
import { floorAt, isClockBehind, jumpToPresent } from '../slashing/jump.ts';
import { PRUNE_STEP_ENTRIES } from '../slashing/pruning.ts';
import type { HighWaterMarks, StoreFloor } from '../slashing/types.ts';
import type { OpenStore } from './slashing-parts.ts';

export async function status({ backend, terminal }: OpenStore): Promise<number> {
  const { validators, blocks, attestations, genesisValidatorsRoot } = await backend.status();
  const { id, revision, floor } = await backend.identity();
  const retired = await backend.retiredKeys();
  terminal.stdout.write(
    `backend: ${backend.name}\ngenesis validators root: ${genesisValidatorsRoot}\n` +
      `store: ${id}\nrevision: ${revision}\nfloor: ${floor === null ? 'none' : floorText(floor)}\n` +
      `keys: ${validators}\nblocks: ${blocks}\nattestations: ${attestations}\nretired keys: ${retired.length}\n`,
  );
  for (const publicKey of retired) terminal.stdout.write(`retired: ${publicKey}\n`);
  return EXIT.ok;
}

export async function prune({ backend, terminal }: OpenStore): Promise<number> {
  let total = 0;
  for (let deleted = -1; deleted !== 0; total += deleted) deleted = await backend.pruneStep(PRUNE_STEP_ENTRIES);
  terminal.stdout.write(`pruned entries: ${total}\n`);
  return EXIT.ok;
}

/** Durable before it says so; what other signers of the store have under way ends in the store first. */
export async function retire({ backend, terminal, args }: OpenStore): Promise<number> {
  const publicKeys = args.publicKeys ?? [];
  await backend.retire(publicKeys);
  for (const publicKey of publicKeys) terminal.stdout.write(`retired: ${publicKey}\n`);
  return EXIT.ok;
}

export async function reinstate({ backend, terminal, args }: OpenStore): Promise<number> {
  const changed = new Set(await backend.reinstate(args.publicKeys ?? []));
  for (const publicKey of args.publicKeys ?? []) {
    terminal.stdout.write(`${changed.has(publicKey) ? 'reinstated' : 'was not retired'}: ${publicKey}\n`);
  }
  return EXIT.ok;
}

export async function jump(open: OpenStore): Promise<number> {
  const { backend, terminal, args } = open;
  const highest = await backend.highestMarks();
  const target = floorByHand(open) ?? floorByClock(open, highest);
  if (typeof target === 'string') {
    sayFailure(terminal, 'strongroom', target);
    return EXIT.failed;
  }
  if (!args.dryRun) await jumpToPresent(backend, () => target);
  const { validators } = await backend.status();
  terminal.stdout.write(
    `${args.dryRun ? 'would refuse' : 'refused from now on'}: ${floorText(target)}\n` +
      `keys with records: ${validators}; keys without records are covered too\n` +
      `highest signed: block slot ${highest.blockSlot ?? 'none'}, target epoch ${highest.targetEpoch ?? 'none'}\n` +
      `cost: a validator that has not voted for epoch ${target.targetEpoch} yet misses that vote, and a block at slot ` +
      `${target.slot} or before is not signed\n`,
  );
  if (args.dryRun) note(terminal, 'Nothing was changed. Without --dry-run the store is raised, for good.');
  return EXIT.ok;
}

function floorByHand({ args: { slot, epoch } }: OpenStore): StoreFloor | undefined {
  if (slot === undefined || epoch === undefined) return undefined;
  return { slot, targetEpoch: epoch, sourceEpoch: Math.max(0, epoch - 1) };
}

/** Or why the clock does not say. */
function floorByClock({ network, clock }: OpenStore, highest: HighWaterMarks): StoreFloor | string {
  if (network.time === undefined) {
    return 'the genesis time of this network is not known: set custom_network.genesis_time, or give --slot and --epoch';
  }
  const now = clock.now();
  if (isClockBehind(now, network.time, highest)) {
    return (
      `a key has signed slot ${highest.blockSlot ?? 'none'} or target epoch ${highest.targetEpoch ?? 'none'}, which by the ` +
      'clock of this machine is still to come: set the clock, or give --slot and --epoch'
    );
  }
  return floorAt(now, network.time);
}

function floorText({ slot, sourceEpoch, targetEpoch }: StoreFloor): string {
  return `blocks up to slot ${slot}, votes with a target up to epoch ${targetEpoch} or a source before epoch ${sourceEpoch}`;
}
