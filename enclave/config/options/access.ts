// Options that stand in no section: static authorization, canary keys, the ceremony.

import { ceremonySchema } from '../../../ceremony/definition.ts';
import { type Option, unflagged } from '../option.ts';
import { type StaticAuth, staticAuthSchema } from '../values/static-auth.ts';
import { object, publicKeys } from '../values/values.ts';

const NO_STATIC_AUTH: StaticAuth = { policies: [], anonymous: { policies: [] }, tokens: [] };

export const ACCESS_OPTIONS = {
  static_auth: unflagged(
    object('an object of policies, anonymous and tokens', staticAuthSchema),
    NO_STATIC_AUTH,
    'Policies and tokens of stateless authorization; not with signer_state',
  ),
  canary_keys: unflagged(
    publicKeys,
    [],
    'Validator public keys whose every signature is logged as a warning and counted',
  ),
  ceremony: unflagged(
    object(
      'an object of generation, kms_threshold, kms_keys, retired_kms_keys and root_token_recipients',
      ceremonySchema,
    ),
    undefined,
    'Custody ceremony; compiled in on enclave builds, where it is refused here',
  ),
} as const satisfies Record<string, Option>;
