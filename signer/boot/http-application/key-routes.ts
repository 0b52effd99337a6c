// The key routes as they are configured, and what they work on.

import { encodeHex } from '../../../common/formats/hex.ts';
import type { Config } from '../../config/options.ts';
import type { KeyRoutes } from '../../http/app.ts';
import { exportInterchangeText, mergeInterchangeText } from '../../http/bodies/interchange.ts';
import type { ItemLimits } from '../../http/work-limits.ts';
import type { GenerationOptions, KeyManagementParts } from '../../keys/management/management.ts';
import { assertMayRelease } from '../../sign/right.ts';
import { fillMixedRandom } from '../../tee/random.ts';
import type { World } from '../world.ts';
import type { Parts } from './parts.ts';

type KeyRoutesParts = Pick<Parts, 'loading' | 'network' | 'inFlight' | 'turns' | 'store'>;

type KeyRoutesWorld = Pick<World, 'logger' | 'enclave'>;

export async function keyRoutes(
  config: Pick<Config, 'chamber' | 'http' | 'server'>,
  parts: KeyRoutesParts,
  world: KeyRoutesWorld,
): Promise<KeyRoutes> {
  const { enclave } = world;
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
      options: {
        encryptBackup: await encrypterFor(backup.recipients),
        network: parts.network,
        // In an enclave the NSM's randomness is in every key; elsewhere the system's alone.
        fillRandom: enclave && ((buffer) => fillMixedRandom(enclave.nsm, buffer)),
      },
      generate: generate.enabled ? itemLimits(generate) : undefined,
      generateKeys: generate_keys.enabled ? itemLimits(generate_keys) : undefined,
      // A client that may make keys here may fetch the backups that were made with them.
      backups: generate_keys.enabled ? itemLimits(generate_keys) : generate.enabled ? itemLimits(generate) : undefined,
      depositData: deposit_data.enabled
        ? { ...itemLimits(deposit_data), allowRecompute: deposit_data.allow_recompute }
        : undefined,
    },
  };
}

function keyManagement(
  { loading, network, inFlight, turns, store }: KeyRoutesParts,
  { logger }: KeyRoutesWorld,
): KeyManagementParts {
  const records = { backend: store, genesisValidatorsRoot: encodeHex(network.genesisValidatorsRoot) };
  return {
    store: loading.keys,
    pool: loading.pool,
    table: loading.table,
    imported: loading.imported,
    slashing: {
      merge: (text, allows) => mergeInterchangeText(text, allows, records),
      export: (publicKeys) => exportInterchangeText(publicKeys, records),
      tenures: (publicKeys) => store.tenures(publicKeys),
      endTenures: (publicKeys) => store.endTenures(publicKeys),
      beginTenures: (from) => store.beginTenures(from),
      assertInForce: () => assertMayRelease(store),
    },
    drain: inFlight.drain,
    turns,
    log: logger.module('keys'),
  };
}

/** `age -d` gives a backup's words back; the signer itself can never open it. */
async function encrypterFor(recipients: readonly string[]): Promise<GenerationOptions['encryptBackup']> {
  if (recipients.length === 0) return undefined;
  const { encryptToRecipients } = await import('../../../ceremony/age.ts');
  return (words) => encryptToRecipients(words, recipients);
}

function itemLimits(options: Omit<Config['chamber']['keys']['lifecycle'], 'enabled'>): ItemLimits {
  return {
    maxItemsPerRequest: options.max_items_per_request,
    maxConcurrentRequests: options.max_concurrent_requests,
    requestTimeoutSeconds: options.request_timeout_seconds,
  };
}
