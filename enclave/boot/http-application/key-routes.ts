// The key routes as they are configured, and what they work on.

import { encodeHex } from '../../../formats/hex.ts';
import { SignerError } from '../../api/errors.ts';
import type { StoreBinding } from '../../chamber/store-binding.ts';
import type { Config } from '../../config/options.ts';
import type { KeyRoutes } from '../../http/app.ts';
import type { ItemLimits } from '../../http/work-limits.ts';
import type { GenerationOptions, KeyManagementParts } from '../../keys/management/management.ts';
import type { KeyTurns } from '../../keys/turns.ts';
import type { InFlightSigning } from '../../signing/in-flight.ts';
import type { Network } from '../../signing/networks.ts';
import { exportInterchangeText, mergeInterchangeText } from '../../slashing/interchange/text.ts';
import type { SlashingProtection } from '../../slashing/protection.ts';
import { fillMixedRandom } from '../../tee/nsm/random.ts';
import type { LoadingKeys } from '../keys.ts';
import type { World } from '../world.ts';

export interface KeyRoutesParts {
  readonly loading: LoadingKeys;
  readonly network: Network;
  readonly inFlight: InFlightSigning;
  readonly turns: KeyTurns;
  readonly slashing: Pick<SlashingProtection, 'backend'>;
  /** Undefined without a state table. */
  readonly binding: Pick<StoreBinding, 'hindrance'> | undefined;
}

type KeyRoutesWorld = Pick<World, 'logger' | 'enclave'>;

export function keyRoutes(
  config: Pick<Config, 'chamber' | 'http' | 'server'>,
  parts: KeyRoutesParts,
  world: KeyRoutesWorld,
): KeyRoutes {
  const { list, import: importing, lifecycle, generate, generate_keys, deposit_data, backup } = config.chamber.keys;
  const { key_manager_api: keyManager } = config.http;
  return {
    management: keyManagement(parts, world),
    keyManager: keyManager.enabled
      ? {
          maxConcurrentReads: keyManager.max_concurrent_reads,
          maxConcurrentWrites: keyManager.max_concurrent_writes,
          requestTimeoutSeconds: keyManager.request_timeout_seconds,
          maxItemsPerRequest: keyManager.max_items_per_request,
        }
      : undefined,
    chamber: {
      list: {
        maxConcurrentRequests: list.max_concurrent_requests,
        requestTimeoutSeconds: config.server.request_timeout_seconds,
      },
      import: importing.enabled ? itemLimits(importing) : undefined,
      lifecycle: lifecycle.enabled ? itemLimits(lifecycle) : undefined,
    },
    generate: {
      options: { backupRecipients: backup.recipients, network: parts.network, fillRandom: randomSource(world) },
      generate: generate.enabled ? itemLimits(generate) : undefined,
      generateKeys: generate_keys.enabled ? itemLimits(generate_keys) : undefined,
      depositData: deposit_data.enabled
        ? { ...itemLimits(deposit_data), allowRecompute: deposit_data.allow_recompute }
        : undefined,
    },
  };
}

function keyManagement(
  { loading, network, inFlight, turns, slashing, binding }: KeyRoutesParts,
  { logger }: KeyRoutesWorld,
): KeyManagementParts {
  /** What is said of another store than the one the fleet signs over would be no promise. */
  const assertInForce = (): void => {
    if (binding?.hindrance !== undefined) throw new SignerError(binding.hindrance);
  };
  const bound =
    <Given extends unknown[], Result>(run: (...given: Given) => Promise<Result>) =>
    async (...given: Given): Promise<Result> => {
      assertInForce();
      const result = await run(...given);
      assertInForce(); // a process that stood still meanwhile may have lost the fleet to another store
      return result;
    };
  const records = { backend: slashing.backend, genesisValidatorsRoot: encodeHex(network.genesisValidatorsRoot) };
  return {
    store: loading.keys,
    pool: loading.pool,
    table: loading.table,
    imported: loading.imported,
    slashing: {
      merge: bound((text, allows) => mergeInterchangeText(text, allows, records)),
      export: bound((publicKeys) => exportInterchangeText(publicKeys, records)),
      retire: bound((publicKeys) => slashing.backend.retire(publicKeys)),
      retired: bound((publicKeys) => slashing.backend.retiredKeys(publicKeys)),
      reinstate: bound((publicKeys) => slashing.backend.reinstate(publicKeys)),
      assertInForce,
    },
    drain: inFlight.drain,
    turns,
    log: logger.module('keys'),
  };
}

/** In an enclave the NSM's randomness is in every key; elsewhere the system's alone. */
function randomSource({ enclave }: KeyRoutesWorld): GenerationOptions['fillRandom'] {
  return enclave === undefined ? undefined : (buffer) => fillMixedRandom(enclave.nsm, buffer);
}

function itemLimits(options: {
  readonly max_items_per_request: number;
  readonly max_concurrent_requests: number;
  readonly request_timeout_seconds: number;
}): ItemLimits {
  return {
    maxItemsPerRequest: options.max_items_per_request,
    maxConcurrentRequests: options.max_concurrent_requests,
    requestTimeoutSeconds: options.request_timeout_seconds,
  };
}
