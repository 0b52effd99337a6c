// The kinds of value that describe a network, and what they accept.

import { z } from 'zod';
import { FORK_NAMES, type ForkName } from '../../api/forks.ts';
import { CONFIG_NAME_PATTERN } from '../../signing/config-limits.ts';
import type { Kind } from './values.ts';

const CONFIG_NAME = 'a name of up to 64 letters, digits, spaces and . _ -';

export const configName: Kind<string> = {
  expects: CONFIG_NAME,
  form: 'text',
  schema: z.string(`must be ${CONFIG_NAME}`).regex(CONFIG_NAME_PATTERN, `must be ${CONFIG_NAME}`),
};

const VERSION = 'must be 4 bytes of hex, 0x and 8 digits';
const forkVersion = z
  .string(VERSION)
  .regex(/^0x[0-9a-fA-F]{8}$/, VERSION)
  .optional();

const EPOCH = 'must be an integer from 0 to 2^53 - 1';
const forkEpoch = z.int(EPOCH).min(0, EPOCH).optional();

export const forkVersionsSchema = z.strictObject(shapeOf(FORK_NAMES, forkVersion));

/** Phase0 begins with the chain. */
export const forkEpochsSchema = z.strictObject(
  shapeOf(
    FORK_NAMES.filter((name) => name !== 'phase0'),
    forkEpoch,
  ),
);

function shapeOf<Name extends ForkName, Schema>(names: readonly Name[], schema: Schema): Record<Name, Schema> {
  return Object.fromEntries(names.map((name) => [name, schema])) as Record<Name, Schema>;
}
