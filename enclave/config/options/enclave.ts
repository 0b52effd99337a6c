// Options of a Nitro Enclave and of its parent: the hosts that it may reach, the credentials that its image alone
// opens.

import { egressEndpointsSchema } from '../../api/egress.ts';
import { parentProxySchema } from '../../api/parent-proxy.ts';
import { type Option, unflagged } from '../option.ts';
import { keyArn, object, oneOf, sealedBytes } from '../values/values.ts';

export const ENCLAVE_OPTIONS = {
  'tee.platform': unflagged(
    oneOf('off', 'nitro'),
    'off',
    'nitro runs in an AWS Nitro Enclave and needs a tee.nitro section',
  ),
  'tee.nitro.egress.endpoints': unflagged(
    object('a list of endpoints of hostname, loopback, vsock_port and port', egressEndpointsSchema),
    [],
    'Hosts the enclave may reach through its parent',
  ),
  'tee.nitro.table_credentials.ciphertext': unflagged(
    sealedBytes,
    undefined,
    'Credentials for the tables that this image alone opens, in place of the parent’s: a KMS ciphertext in base64 (docs/guides/custody.md)',
  ),
  'tee.nitro.table_credentials.key_arn': unflagged(
    keyArn,
    undefined,
    'The custody key that the ciphertext was made with; all of its replicas are tried',
  ),
  parent_proxy: unflagged(
    object('an object as `strongroom parent-proxy` takes it', parentProxySchema),
    undefined,
    'What `strongroom parent-proxy` listens on, read from the same file; the server checks it and acts on none of it',
  ),
} as const satisfies Record<string, Option>;
