// Rules on how the tables are named and reached.

import { isCeremonyKey } from '../../aws/table-credentials.ts';
import { parseTableArn } from '../../aws/table-name.ts';
import { databaseAddress, dynamodbRegions, usesTables } from '../egress-needs.ts';
import type { Config, OptionPath } from '../options.ts';
import { type ConfigFinding, type ConfigRule, when } from './rule.ts';

const MEMBERS = ['ciphertext', 'key_arn'] as const;
const SECTION = 'tee.nitro.table_credentials';
const UNSAFE = 'tee.nitro.unsafe_parent_writes_tables';

export const TABLE_RULES: readonly ConfigRule[] = [
  {
    says: 'A table that is named by its ARN is, in an enclave, in the region of the declared DynamoDB endpoint.',
    broken: (config) => {
      const regions = dynamodbRegions(config.tee.nitro.egress.endpoints);
      const [region] = regions;
      if (config.tee.platform !== 'nitro' || region === undefined || regions.length > 1) return [];
      return tablesOf(config).flatMap(([at, table]) => otherRegion(at, table, region));
    },
  },
  {
    says:
      'An enclave that uses DynamoDB or PostgreSQL has `tee.nitro.table_credentials`, or says `tee.nitro.unsafe_parent_writes_tables: ' +
      'true`, and never both. Commands that only read the configuration do not ask for it.',
    broken: (config, { isSet, onlyRead }) => {
      const { platform, nitro } = config.tee;
      const isSealed = isSet(SECTION);
      const isMissing = platform === 'nitro' && usesTables(config) && !isSealed;
      return [
        ...when(isMissing && !nitro.unsafe_parent_writes_tables && !onlyRead, {
          at: SECTION,
          problem: 'is missing: the parent would write the tables that this enclave believes',
          remedy:
            'seal what opens the tables (docs/guides/custody.md, Sealed table credentials), or say ' +
            'tee.nitro.unsafe_parent_writes_tables: true',
        }),
        ...when(nitro.unsafe_parent_writes_tables && (platform !== 'nitro' || isSealed), {
          at: UNSAFE,
          problem: isSealed ? 'is true, and there are sealed credentials' : 'is true, and this is no enclave',
          remedy: 'remove it',
        }),
      ];
    },
  },
  {
    says: '`tee.nitro.table_credentials` needs `ciphertext` and `key_arn`, an enclave (`tee.platform: nitro`) and a table that they are for.',
    broken: (config, { isSet }) => {
      if (!isSet(SECTION)) return [];
      return [
        ...MEMBERS.flatMap((member) =>
          when(config.tee.nitro.table_credentials[member] === undefined, {
            at: SECTION,
            problem: `is set without ${member}`,
            remedy: `set ${SECTION}.${member}`,
          }),
        ),
        ...when(config.tee.platform !== 'nitro', {
          at: SECTION,
          problem: 'is set, and this is no enclave: nothing attested could open it',
          remedy: 'remove it; outside an enclave credentials come from the AWS environment',
        }),
        ...when(!usesTables(config), {
          at: SECTION,
          problem: 'is set, and no table is named',
          remedy: 'remove it',
        }),
      ];
    },
  },
  {
    says:
      'With `tee.nitro.table_credentials` the password of `anti_slashing.url` is sealed with them, and not in the URL; and ' +
      'the image names the authority that vouches for the host (`eif build --ca`).',
    broken: (config, { isSet, compiledAuthorities }) => {
      const address = isSet(SECTION) ? databaseAddress(config) : undefined;
      if (address === undefined) return [];
      return [
        ...when(address.password !== '', {
          at: 'anti_slashing.url',
          problem:
            'has a password, which the parent reads in this configuration, and the slashing records would be its own',
          remedy: 'seal it as database_password (docs/guides/custody.md, Sealed table credentials), and remove it here',
        }),
        ...when(compiledAuthorities !== undefined && compiledAuthorities(address.host) === undefined, {
          at: 'anti_slashing.url',
          problem: `leads to ${address.host}, for which this image names no authority`,
          remedy: `build it with --ca ${address.host}=FILE, with the certificate of the database’s authority`,
        }),
      ];
    },
  },
  {
    says: '`tee.nitro.table_credentials.key_arn` is a custody key of the ceremony.',
    broken: ({ tee }, { compiledCeremony }) => {
      const { key_arn: keyArn } = tee.nitro.table_credentials;
      return when(keyArn !== undefined && compiledCeremony !== false && !isCeremonyKey(keyArn, compiledCeremony), {
        at: `${SECTION}.key_arn`,
        problem: 'is not a custody key of the ceremony, and no other key is ever called',
        remedy: 'encrypt the credentials under one of kms_keys',
      });
    },
  },
];

type Named = readonly [OptionPath, string];

function tablesOf({ signer_state, key_sources, anti_slashing }: Config): readonly Named[] {
  const tables: readonly (readonly [OptionPath, string | undefined])[] = [
    ['signer_state.table', signer_state.table],
    ['key_sources.dynamodb.table', key_sources.dynamodb.table],
    ['anti_slashing.table', anti_slashing.table],
  ];
  return tables.filter((named): named is Named => named[1] !== undefined);
}

function otherRegion(at: OptionPath, table: string, region: string): readonly ConfigFinding[] {
  const arn = parseTableArn(table);
  return when(arn !== undefined && arn.region !== region, {
    at,
    problem: `is an ARN of ${arn?.region}, and tee.nitro.egress declares the DynamoDB of ${region}`,
    remedy: 'name a table of that region, or declare the endpoint of the region that the tables are in',
  });
}
