// Options of a Nitro Enclave and of its parent.

import { acceptedImagesSchema } from '../../../common/attestation/contract.ts';
import { egressEndpointsSchema } from '../../api/egress.ts';
import { parentProxySchema } from '../../api/parent-proxy.ts';
import { type Option, unflagged } from '../option.ts';
import { booleanValue, ciphertextBytes, keyArnValue, object, oneOf } from '../values/values.ts';

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
  'tee.nitro.accepted_images': unflagged(
    object('a list of images of PCR0, PCR1 and PCR2', acceptedImagesSchema),
    [],
    'Other images whose master key record is opened, besides this one and those signed with the same certificate',
  ),
  'tee.nitro.table_credentials.ciphertext': unflagged(
    ciphertextBytes,
    undefined,
    'Credentials for the tables, for a slashing database in PostgreSQL and for the encryption of shares, which this image alone opens: a KMS ciphertext in base64 (docs/guides/custody.md)',
  ),
  'tee.nitro.table_credentials.key_arn': unflagged(
    keyArnValue,
    undefined,
    'The custody key that the ciphertext was made with; all of its replicas are tried',
  ),
  'tee.nitro.unsafe_parent_writes_tables': unflagged(
    booleanValue,
    false,
    'Instead of table_credentials: the tables are called with the parent’s credentials, and a database with a password that it reads; the warning says what it can do',
  ),
  parent_proxy: unflagged(
    object('an object as `strongroom parent-proxy` takes it', parentProxySchema),
    undefined,
    'What `strongroom parent-proxy` listens on, read from the same file; the server checks it and acts on none of it',
  ),
} as const satisfies Record<string, Option>;
