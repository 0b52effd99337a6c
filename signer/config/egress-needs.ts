// The hosts that AWS clients call, as an enclave has to declare them (AWS General Reference, service endpoints).

import { keyArn } from '../../ceremony/key-arn.ts';
import type { EgressEndpoint } from '../api/egress.ts';
import { type PostgresAddress, parsePostgresUrl } from '../slashing/postgres/connection/address.ts';
import type { Config } from './options.ts';

export interface Destination {
  readonly hostname: string;
  readonly port: number;
}

const HTTPS_PORT = 443;
const DEFAULT_SUFFIX = 'amazonaws.com';
const SUFFIXES: ReadonlyMap<string, string> = new Map([
  ['aws-cn', 'amazonaws.com.cn'],
  ['aws-eusc', 'amazonaws.eu'],
  ['aws-iso', 'c2s.ic.gov'],
  ['aws-iso-b', 'sc2s.sgov.gov'],
  ['aws-iso-e', 'cloud.adc-e.uk'],
  ['aws-iso-f', 'csp.hci.ic.gov'],
]);
const DYNAMODB_HOST = /^dynamodb\.([a-z]{2,}(?:-[a-z]+)+-\d{1,2})\.(.+)$/;

export function usesDynamoDB({
  signer_state,
  key_sources,
  anti_slashing,
}: Pick<Config, 'anti_slashing' | 'key_sources' | 'signer_state'>): boolean {
  const tables = [signer_state.table, key_sources.dynamodb.table];
  return anti_slashing.backend === 'dynamodb' || tables.some((table) => table !== undefined);
}

/** Who writes these decides what an enclave believes (docs/security.md#against-the-parent). */
export function usesTables(config: Pick<Config, 'anti_slashing' | 'key_sources' | 'signer_state'>): boolean {
  return usesDynamoDB(config) || config.anti_slashing.backend === 'postgres';
}

/** Of the slashing store, when that is PostgreSQL. */
export function databaseAddress({
  anti_slashing: { backend, url },
}: Pick<Config, 'anti_slashing'>): PostgresAddress | undefined {
  if (backend !== 'postgres' || url === undefined) return undefined;
  const reading = parsePostgresUrl(url.reveal().toString('utf8'));
  return reading.kind === 'address' ? reading : undefined;
}

export function dynamodbRegions(endpoints: readonly EgressEndpoint[]): readonly string[] {
  const suffixes = [DEFAULT_SUFFIX, ...SUFFIXES.values()];
  const regions = endpoints.flatMap(({ hostname, port }) => {
    const [, region, suffix = ''] = DYNAMODB_HOST.exec(hostname) ?? [];
    return region !== undefined && port === HTTPS_PORT && suffixes.includes(suffix) ? [region] : [];
  });
  return [...new Set(regions)];
}

export function kmsDestination(arn: string): Destination {
  const { partition, region } = keyArn(arn);
  return { hostname: `kms.${region}.${SUFFIXES.get(partition) ?? DEFAULT_SUFFIX}`, port: HTTPS_PORT };
}

export function isDeclared({ hostname, port }: Destination, endpoints: readonly EgressEndpoint[]): boolean {
  return endpoints.some((endpoint) => endpoint.hostname === hostname && endpoint.port === port);
}
