// The chain of `make test-clients`: one Lodestar beacon node on loopback, and what its API says of the chain. The
// validators have the interop keys, which are public: they hold nothing anywhere.

import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SecretKey } from '@chainsafe/blst';
import { freePort } from '../support/free-port.ts';
import type { TestKey } from '../support/requests.ts';
import { startBuilder, startEngine } from './execution.ts';
import type { LodestarProgram } from './lodestar.ts';

export const VALIDATORS = 16;
/** The minimal preset, which the node takes for a chain of its own. */
export const SLOTS_PER_EPOCH = 8;
export const SECONDS_PER_SLOT = 4;
/** Of Capella: the judged epochs are on both sides of it. */
export const CAPELLA_EPOCH = 2;
/** consensus-specs, presets/minimal. */
export const SYNC_COMMITTEE_SIZE = 32;

/** As clients and ethereum-package write it; Deneb has the name that this client still gives it. */
const CONFIG = `CONFIG_NAME: strongroom-test-clients
PRESET_BASE: minimal
MIN_GENESIS_ACTIVE_VALIDATOR_COUNT: ${VALIDATORS}
MIN_GENESIS_TIME: 0
GENESIS_DELAY: 0
GENESIS_FORK_VERSION: 0x10000077
ALTAIR_FORK_VERSION: 0x20000077
ALTAIR_FORK_EPOCH: 0
BELLATRIX_FORK_VERSION: 0x30000077
BELLATRIX_FORK_EPOCH: 0
CAPELLA_FORK_VERSION: 0x40000077
CAPELLA_FORK_EPOCH: ${CAPELLA_EPOCH}
EIP4844_FORK_VERSION: 0x50000077
EIP4844_FORK_EPOCH: 18446744073709551615
TERMINAL_TOTAL_DIFFICULTY: 0
SECONDS_PER_SLOT: ${SECONDS_PER_SLOT}
SHARD_COMMITTEE_PERIOD: 0
DEPOSIT_CHAIN_ID: 1337
DEPOSIT_NETWORK_ID: 1337
`;

export interface ChainBlock {
  readonly slot: number;
  readonly votes: readonly { readonly slot: number; readonly index: string; readonly bits: string }[];
  readonly syncBits: string;
  readonly exits: readonly string[];
}

export interface Devnet {
  readonly configFile: string;
  readonly beaconUrl: string;
  readonly logFile: string;
  readonly genesisTime: number;
  readonly genesisValidatorsRoot: string;
  registrations(): number;
  block(slot: number): Promise<ChainBlock | undefined>;
  headSlot(): Promise<number>;
}

/** The node has to be up before its genesis, which is this far ahead. */
const GENESIS_IN_SECONDS = 40;

export async function startDevnet(lodestar: LodestarProgram, folder: string): Promise<Devnet> {
  const [apiPort, peerPort] = [await freePort(), await freePort()];
  const configFile = join(folder, 'config.yaml');
  writeFileSync(configFile, CONFIG);
  const builder = await startBuilder();
  const genesisTime = Math.floor(Date.now() / 1000) + GENESIS_IN_SECONDS;
  const beaconUrl = `http://127.0.0.1:${apiPort}`;
  const node = lodestar.start('beacon node', folder, [
    ...['dev', '--network', 'dev', '--paramsFile', configFile, '--dataDir', join(folder, 'beacon')],
    ...['--genesisValidators', `${VALIDATORS}`, '--genesisTime', `${genesisTime}`],
    ...['--eth1', 'false', '--execution.urls', await startEngine(), '--builder', '--builder.urls', builder.url],
    ...['--rest.address', '127.0.0.1', '--rest.port', `${apiPort}`, '--rest.namespace', '*'],
    ...['--listenAddress', '127.0.0.1', '--port', `${peerPort}`, '--discv5', 'false'],
  ]);
  const genesis = await node.until('its API', () => read(`${beaconUrl}/eth/v1/beacon/genesis`));
  return {
    configFile,
    beaconUrl,
    logFile: node.logFile,
    genesisTime,
    genesisValidatorsRoot: String((genesis as { genesis_validators_root: string }).genesis_validators_root),
    registrations: builder.registrations,
    block: (slot) => blockOf(beaconUrl, slot),
    headSlot: async () => {
      const head = (await read(`${beaconUrl}/eth/v1/beacon/headers/head`)) as
        | { header: { message: { slot: string } } }
        | undefined;
      return Number(head?.header.message.slot ?? 0);
    },
  };
}

/** consensus-specs, "interop" keys: the hash of the index, little endian, modulo the order of the group. */
export function interopKey(index: number): TestKey {
  const ORDER = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001n;
  const seed = Buffer.alloc(32);
  seed.writeUInt32LE(index);
  const hash = createHash('sha256').update(seed).digest().toReversed();
  const secret = (BigInt(`0x${Buffer.from(hash).toString('hex')}`) % ORDER).toString(16).padStart(64, '0');
  return { secret: `0x${secret}`, publicKey: SecretKey.fromHex(`0x${secret}`).toPublicKey().toHex() };
}

/** @returns `data` of the answer; undefined when there is none yet */
export async function read(url: string): Promise<unknown> {
  try {
    const answer = await fetch(url);
    return answer.ok ? ((await answer.json()) as { data: unknown }).data : undefined;
  } catch {
    return undefined; // the node does not listen yet, or is busy
  }
}

async function blockOf(beaconUrl: string, slot: number): Promise<ChainBlock | undefined> {
  const found = (await read(`${beaconUrl}/eth/v2/beacon/blocks/${slot}`)) as
    | {
        message: {
          body: {
            attestations: readonly { aggregation_bits: string; data: { slot: string; index: string } }[];
            sync_aggregate: { sync_committee_bits: string };
            voluntary_exits: readonly { message: { validator_index: string } }[];
          };
        };
      }
    | undefined;
  if (found === undefined) return undefined;
  const { attestations, sync_aggregate, voluntary_exits } = found.message.body;
  return {
    slot,
    votes: attestations.map(({ aggregation_bits: bits, data }) => ({
      slot: Number(data.slot),
      index: data.index,
      bits,
    })),
    syncBits: sync_aggregate.sync_committee_bits,
    exits: voluntary_exits.map(({ message }) => message.validator_index),
  };
}
