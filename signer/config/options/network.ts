// Options of the network that requests must carry.

import { z } from 'zod';
import { FORK_NAMES, type ForkName } from '../../api/forks.ts';
import { SLOT_DURATION_MS_LIMITS } from '../../sign/networks.ts';
import { flagged, type Option, unflagged } from '../option.ts';
import { hex, integer, object, oneOf, text } from '../values/values.ts';

const VERSION = 'must be 4 bytes of hex, 0x and 8 digits';
const forkVersion = z
  .string(VERSION)
  .regex(/^0x[0-9a-fA-F]{8}$/, VERSION)
  .optional();

const EPOCH = 'must be an integer from 0 to 2^53 - 1';
const forkEpoch = z.int(EPOCH).min(0, EPOCH).optional();

const forkVersionsSchema = z.strictObject(shapeOf(FORK_NAMES, forkVersion));

/** Phase0 begins with the chain. */
const forkEpochsSchema = z.strictObject(
  shapeOf(
    FORK_NAMES.filter((name) => name !== 'phase0'),
    forkEpoch,
  ),
);

function shapeOf<Name extends ForkName, Schema>(names: readonly Name[], schema: Schema): Record<Name, Schema> {
  return Object.fromEntries(names.map((name) => [name, schema])) as Record<Name, Schema>;
}

export const NETWORK_OPTIONS = {
  network: flagged(
    oneOf('mainnet', 'hoodi', 'sepolia', 'gnosis', 'chiado', 'plataberget', 'ephemery', 'custom'),
    'mainnet',
    'The network whose genesis_validators_root requests must carry; custom and ephemery need custom_network. As a section, network.name',
  ),
  'network.fork_schedule': unflagged(
    object('an object of first epochs, altair to gloas', forkEpochsSchema),
    {},
    'First epochs of forks that were announced after this release (docs/guides/networks.md)',
  ),
  'custom_network.genesis_validators_root': unflagged(
    hex(32),
    undefined,
    'Genesis validators root of a devnet, or of the present period of ephemery',
  ),
  'custom_network.config_file': unflagged(
    text,
    undefined,
    'The consensus config.yaml of a devnet, in place of the members that it states; not in an enclave',
  ),
  'custom_network.preset': unflagged(
    oneOf('mainnet', 'gnosis', 'minimal'),
    undefined,
    'Its preset (PRESET_BASE): 32, 16 or 8 slots an epoch. mainnet unless given',
  ),
  'custom_network.slot_duration_ms': unflagged(
    integer(SLOT_DURATION_MS_LIMITS.min, SLOT_DURATION_MS_LIMITS.max),
    undefined,
    'Length of a slot (SLOT_DURATION_MS); 12,000 unless given, and needed with another preset than mainnet',
  ),
  'custom_network.fork_versions': unflagged(
    object('an object of fork versions, phase0 to gloas', forkVersionsSchema),
    undefined,
    'Its fork versions; their epochs are in network.fork_schedule. phase0 and capella are needed',
  ),
  'custom_network.genesis_fork_version': unflagged(
    hex(4),
    undefined,
    'Genesis fork version of a devnet, where fork_versions does not say it',
  ),
  'custom_network.capella_fork_version': unflagged(
    hex(4),
    undefined,
    'Capella fork version of a devnet, for voluntary exits (EIP-7044), where fork_versions does not say it',
  ),
  'custom_network.genesis_time': unflagged(
    integer(0, 253_402_300_799),
    undefined,
    'Genesis time of a devnet, or of the present period of ephemery, seconds since 1970; a jump of the slashing store needs it',
  ),
} as const satisfies Record<string, Option>;
