// Rules on a signer in an enclave: every host it will have to reach is declared, so that a start fails instead of the
// first call.

import { type Ceremony, ceremonyArns } from '../../../ceremony/definition.ts';
import {
  type Destination,
  databaseAddress,
  dynamodbRegions,
  isDeclared,
  kmsDestination,
  usesDynamoDB,
} from '../egress-needs.ts';
import type { Config } from '../options.ts';
import { type ConfigFinding, type ConfigRule, when } from './rule.ts';

/** Half of the descriptors that init allows (eif/init/settings.c): egress takes two for each connection. */
const MAX_ENCLAVE_CONNECTIONS = 32_768;

export const ENCLAVE_RULES: readonly ConfigRule[] = [
  {
    says: '`tee.platform: nitro` runs in an enclave image only, and an image runs nothing else. `server --check` accepts it everywhere.',
    broken: ({ tee }, { compiledCeremony, runs }) => [
      ...when(tee.platform === 'nitro' && runs && compiledCeremony === false, {
        at: 'tee.platform',
        problem: 'is nitro, and this is not an enclave image',
        remedy: 'build one with `strongroom eif build`; `strongroom server --check -c FILE` checks the file for it',
      }),
      ...when(tee.platform !== 'nitro' && compiledCeremony !== false, {
        at: 'tee.platform',
        problem: 'is not nitro, and this is an enclave image',
        remedy: 'set tee.platform: nitro',
      }),
    ],
  },
  {
    says: '`tee.platform: nitro` needs `tls.mode: ratls`: everything but probes and metrics goes over attested TLS.',
    broken: inEnclave(({ tls }) =>
      when(tls.mode !== 'ratls', {
        at: 'tls.mode',
        problem: 'is not ratls: nobody could tell the enclave from its parent',
        remedy: 'set tls.mode: ratls',
      }),
    ),
  },
  {
    says: 'In an enclave the ports of the listeners are stated: none is 0.',
    broken: inEnclave((config) =>
      (['server', 'metrics', 'tls'] as const).flatMap((section) =>
        when(config[section].listen_port === 0, {
          at: `${section}.listen_port`,
          problem: 'is 0, and the parent has to know the port',
          remedy: 'state a port',
        }),
      ),
    ),
  },
  {
    says: `In an enclave \`tls.max_connections\` is at most ${MAX_ENCLAVE_CONNECTIONS}: the image has 65,536 file descriptors for clients, for its own calls and for everything else.`,
    broken: inEnclave(({ tls }) =>
      when(tls.max_connections > MAX_ENCLAVE_CONNECTIONS, {
        at: 'tls.max_connections',
        problem: `is more than ${MAX_ENCLAVE_CONNECTIONS}: clients could take the descriptors that calls of KMS and of the tables need`,
        remedy: 'lower it',
      }),
    ),
  },
  {
    says: 'An enclave has no disk, and its listener asks for no client certificates: no `key_sources.filesystem` but its loaders, no `key_sources.memory.persist_dir`, no `custom_network.config_file`, no `receipts.path`, no `audit.required` (its log goes to its parent), no `tls.known_clients`, `tls.client_ca` and `tls.client_auth: required`, no `anti_slashing.backend: sqlite`, no `sslrootcert` in `anti_slashing.url`; and `noop` is refused there whatever the flags.',
    broken: inEnclave((config, { isSet }) => [
      ...FOR_HOSTS.filter(({ at, unless }) => isSet(at) && unless?.(config) !== true),
      ...when(config.anti_slashing.backend === 'sqlite', {
        at: 'anti_slashing.backend',
        problem: `${isSet('anti_slashing.backend') ? 'is sqlite' : 'is not set, which means sqlite'}, and an enclave has no disk: the records would be gone with it`,
        remedy: 'choose dynamodb or postgres',
      }),
      ...when(config.anti_slashing.backend === 'noop', {
        at: 'anti_slashing.backend',
        problem: 'is noop: an image without slashing protection is not for any network',
        remedy: 'choose dynamodb or postgres',
      }),
      ...postgresTrust(config),
    ]),
  },
  {
    startupFailure: 11,
    says: 'What an enclave has to reach is declared in `tee.nitro.egress`: DynamoDB of one region for its tables, KMS of the ceremony’s regions, the host of `anti_slashing.url`, the collector of `opentelemetry`. It declares no `localhost`.',
    broken: inEnclave((config, { compiledCeremony }) => [
      ...when(
        config.tee.nitro.egress.endpoints.some(({ hostname }) => LOCALHOST.test(hostname)),
        {
          at: 'tee.nitro.egress.endpoints',
          problem: 'declares localhost, which is the machine itself and leads to no parent',
          remedy: 'declare the host by the name that others know',
        },
      ),
      ...dynamodbUndeclared(config),
      ...undeclared(config, 'the ceremony’s keys', kmsDestinations(config, compiledCeremony)),
      ...undeclared(config, 'anti_slashing.url', postgresDestination(config)),
      ...undeclared(config, 'opentelemetry.endpoint', collectorDestination(config)),
    ]),
  },
];

const NO_DISK = 'is set, and an enclave has no disk';
const IN_THE_TABLE = 'keep the keys in key_sources.dynamodb';
const NO_CLIENT_CERTIFICATES = {
  problem: 'is set, and the RA-TLS listener asks for no client certificate: it proves the signer to the client',
  remedy: 'give clients tokens, and remove it',
};

/** Only an ordinary host acts on them. */
const FOR_HOSTS: readonly (ConfigFinding & { readonly unless?: (config: Config) => boolean })[] = [
  { at: 'key_sources.filesystem.paths', problem: NO_DISK, remedy: IN_THE_TABLE },
  { at: 'key_sources.filesystem.keystores', problem: NO_DISK, remedy: IN_THE_TABLE },
  { at: 'key_sources.filesystem.cache', problem: NO_DISK, remedy: 'remove it' },
  {
    at: 'key_sources.memory',
    problem: NO_DISK,
    remedy: 'import with storage.persist into key_sources.dynamodb',
  },
  {
    at: 'custom_network.config_file',
    problem: `${NO_DISK}: what is not in its configuration is not measured`,
    remedy:
      'write what the file says into the configuration: preset, slot_duration_ms and fork_versions under custom_network, ' +
      'the epochs under network.fork_schedule',
  },
  { at: 'receipts.path', problem: NO_DISK, remedy: 'set receipts.storage: state_table, and remove it' },
  {
    at: 'audit.required',
    problem: 'is true, and what the parent of an enclave keeps of its log cannot be known',
    remedy: 'set receipts.storage: state_table and receipts.required, and remove it',
    unless: ({ audit }) => !audit.required,
  },
  { at: 'tls.known_clients', ...NO_CLIENT_CERTIFICATES },
  { at: 'tls.client_ca', ...NO_CLIENT_CERTIFICATES },
  { at: 'tls.client_auth', ...NO_CLIENT_CERTIFICATES, unless: ({ tls }) => tls.client_auth === 'optional' },
];

function inEnclave(broken: ConfigRule['broken']): ConfigRule['broken'] {
  return (config, facts) => (config.tee.platform === 'nitro' ? broken(config, facts) : []);
}

/** The parent is on the way to the database, and could forget what was signed. */
function postgresTrust(config: Config): readonly ConfigFinding[] {
  const address = databaseAddress(config);
  if (address === undefined) return [];
  return [
    ...when(address.rootCertificateFile !== undefined, {
      at: 'anti_slashing.url',
      problem: 'names a file (sslrootcert), and an enclave has no disk',
      remedy: 'remove it, and build the image with --ca HOST=FILE, with that file',
    }),
    ...when(address.rootCertificateFile === undefined && address.tls !== 'verify-full', {
      at: 'anti_slashing.url',
      problem: `says sslmode=${address.tls}: the parent could put a database of its own in place`,
      remedy: 'remove sslmode, which means verify-full',
    }),
  ];
}

/** RFC 6761 §6.3. */
const LOCALHOST = /(?:^|\.)localhost$/;

function dynamodbUndeclared(config: Config): readonly ConfigFinding[] {
  if (!usesDynamoDB(config)) return [];
  const regions = dynamodbRegions(config.tee.nitro.egress.endpoints);
  return [
    ...when(regions.length === 0, {
      at: 'tee.nitro.egress.endpoints',
      problem: 'declares no dynamodb.REGION.amazonaws.com on port 443, which the tables need',
      remedy: 'declare the DynamoDB endpoint of the region that the tables are in',
    }),
    ...when(regions.length > 1, {
      at: 'tee.nitro.egress.endpoints',
      problem: `declares DynamoDB in several regions (${regions.join(', ')}): which one holds the tables is not known`,
      remedy: 'declare the one that does',
    }),
  ];
}

function undeclared(config: Config, who: string, destinations: readonly Destination[]): readonly ConfigFinding[] {
  return destinations
    .filter((destination) => !isDeclared(destination, config.tee.nitro.egress.endpoints))
    .map(({ hostname, port }) => ({
      at: 'tee.nitro.egress.endpoints',
      problem: `does not declare ${hostname} on port ${port}, which ${who} ${who.endsWith('s') ? 'need' : 'needs'}`,
      remedy: 'declare it, with a loopback address and a vsock_port of its own',
    }));
}

function kmsDestinations({ signer_state, tee }: Config, ceremony: Ceremony | false): readonly Destination[] {
  const isCalled = signer_state.table !== undefined || tee.nitro.table_credentials.key_arn !== undefined;
  if (ceremony === false || !isCalled) return [];
  const byName = new Map(ceremonyArns(ceremony).map((arn) => [kmsDestination(arn).hostname, kmsDestination(arn)]));
  return [...byName.values()];
}

function postgresDestination(config: Config): readonly Destination[] {
  const address = databaseAddress(config);
  return address === undefined ? [] : [{ hostname: address.host.toLowerCase(), port: address.port }];
}

function collectorDestination({ opentelemetry: { enabled, endpoint } }: Config): readonly Destination[] {
  if (!enabled) return [];
  const { hostname, port, protocol } = new URL(endpoint);
  return [{ hostname, port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port) }];
}
