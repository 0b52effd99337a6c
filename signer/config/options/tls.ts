// Options of the HTTPS listener: its certificate, from files or attested, and the clients that are known by one.

import { ceremonySchema } from '../../../ceremony/definition.ts';
import { flagged, type Option, unflagged } from '../option.ts';
import { type KnownClient, knownClientsSchema } from '../values/known-clients.ts';
import { type StaticAuth, staticAuthSchema } from '../values/static-auth.ts';
import { integer, listenAddress, object, oneOf, port, publicKeys, text } from '../values/values.ts';
import { DAY, SECONDS_OR_OFF } from './ranges.ts';

const NO_CLIENTS: KnownClient[] = [];

export const TLS_OPTIONS = {
  'tls.mode': flagged(oneOf('disabled', 'file', 'ratls'), 'disabled', 'Second, HTTPS listener next to the HTTP one'),
  'tls.listen_port': flagged(port, 9443, 'TLS port; 0 takes any free port'),
  'tls.listen_address': flagged(listenAddress, '0.0.0.0', 'TLS bind address; ignored in enclave mode'),
  'tls.max_connections': unflagged(integer(1, 100_000), 512, 'Concurrent TLS connections'),
  'tls.file.cert_path': flagged(text, undefined, 'PEM file of the certificate and its chain'),
  'tls.file.key_path': flagged(text, undefined, 'PEM file of the private key'),
  'tls.file.reload_interval_seconds': flagged(SECONDS_OR_OFF, 60, 'How often to look for changed files; 0 disables'),
  'tls.known_clients': unflagged(
    object('a list of objects of name, policies and what the client is known by', knownClientsSchema),
    NO_CLIENTS,
    'Clients that are known by a certificate, and their policies of static_auth; with any, the TLS listener asks for certificates. Mode file only',
  ),
  'tls.client_ca': unflagged(
    text,
    undefined,
    'PEM file of the authorities of clients that are known by subject; read again with the other TLS files',
  ),
  'tls.client_auth': unflagged(
    oneOf('optional', 'required'),
    'optional',
    'required ends a TLS connection without the certificate of a known client before its first request; optional answers it',
  ),
  'tls.ratls.cert_validity_seconds': flagged(
    integer(60, 365 * DAY),
    DAY,
    'Validity of the self-signed, attested certificate',
  ),
  'tls.ratls.rotation_interval_seconds': flagged(integer(30, 30 * DAY), 3600, 'Rotation period; below the validity'),
} as const satisfies Record<string, Option>;

// Options that stand in no section: static authorization, canary keys, the ceremony.

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
