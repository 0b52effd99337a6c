// `strongroom setup iam`: what a role or a user may do, and what a table itself refuses.

import { ceremonyArns } from '../../ceremony/definition.ts';
import { command } from '../../common/command-line/program.ts';
import type { Piped } from '../../common/command-line/terminal.ts';
import { parseTableArn } from '../../signer/aws/table-name.ts';
import type { Config } from '../../signer/config/options.ts';
import { CONFIG } from '../arguments.ts';
import { hasTableCredentials, InputRefused, readCeremony, readConfig } from '../inputs.ts';
import { PHASES, type Phase, type PolicyDocument, renderPolicy } from '../policy-document.ts';
import { parsePrincipal } from '../principal.ts';
import {
  type GrantedTable,
  type GrantedTables,
  parentPolicy,
  recoveryPolicy,
  setupPolicy,
  signerPolicy,
  tableResourcePolicy,
  tablesPolicy,
} from '../role-policy.ts';
import { TABLES, type TableKind } from '../table-permissions.ts';

/** IAM and AWS STS quotas: all policies within one role; a user's have 2,048. */
const MAX_ROLE_POLICY_CHARACTERS = 10_240;

const SUBJECTS = ['signer', 'tables', 'recovery', 'setup', 'table'] as const;

export const iam = command(
  {
    summary: 'Print the IAM policy of a role or user, or the policy of a table',
    usage: ['-c CONFIG --for SUBJECT [OPTIONS]'],
    notes: ['Prints a policy as JSON and calls nothing. Tables and keys come from CONFIG.'],
    flags: {
      ...CONFIG,
      for: { placeholder: 'SUBJECT', choices: SUBJECTS, required: true, meaning: 'Whose policy: see below' },
      phase: {
        placeholder: 'PHASE',
        choices: PHASES,
        meaning: 'Default: running; the first boot and rotations need more',
      },
      ceremony: { placeholder: 'FILE', meaning: 'The ceremony, for the configuration of an enclave, which has none' },
      account: { placeholder: 'ID', meaning: 'Where the tables are that CONFIG names without an ARN' },
      region: { placeholder: 'REGION', meaning: 'The same' },
      table: { placeholder: 'TABLE', choices: TABLES, meaning: 'Which table, for --for table' },
      'keep-out': { placeholder: 'ARN', repeatable: true, meaning: "A parent's role, for --for table" },
    },
    sections: [
      {
        heading: 'Subjects',
        entries: [
          [
            '--for signer',
            "The role of the service: custody keys and tables. That of an enclave's parent: to decrypt, and no table, in " +
              'every phase (unless tee.nitro.unsafe_parent_writes_tables)',
          ],
          [
            '--for tables',
            'The user whose credentials are sealed for the enclaves: the tables, and kms:Encrypt in the phases that make ' +
              'shares; needs --ceremony',
          ],
          ['--for recovery', 'Whoever deletes the latch of a seal, or the row of a lost root token'],
          ['--for setup', 'Whoever runs strongroom setup tables'],
          [
            '--for table',
            'The policy of a table itself: nobody deletes slashing records, and the roles given with --keep-out do nothing ' +
              'with it',
          ],
        ],
      },
    ],
    examples: [
      'strongroom setup iam -c strongroom.yaml --for signer --phase first-boot',
      'strongroom setup iam -c enclave.yaml --for table --table state \\\n' +
        '  --keep-out arn:aws:iam::111122223333:role/strongroom-parent',
    ],
  },

  async ({ values }, { env, stdout }: Omit<Piped, 'stdin'>) => {
    const config = readConfig(values.config, env);
    const home = { account: values.account, region: values.region };
    const document = documentFor({
      subject: values.for,
      config,
      home,
      phase: PHASES.find((phase) => phase === values.phase) ?? 'running',
      ceremonyFile: values.ceremony,
      table: TABLES.find((kind) => kind === values.table),
      keptOut: values['keep-out'] ?? [],
    });
    const characters = JSON.stringify(document).length;
    if (characters > MAX_ROLE_POLICY_CHARACTERS) {
      throw new InputRefused(
        `the policy has ${characters} characters, and a role takes ${MAX_ROLE_POLICY_CHARACTERS}: write it for fewer keys, and several roles`,
      );
    }
    stdout.write(renderPolicy(document));
  },
);

interface IamRequest {
  readonly subject: string;
  readonly config: Config;
  readonly home: Home;
  readonly phase: Phase;
  readonly ceremonyFile: string | undefined;
  readonly table: TableKind | undefined;
  readonly keptOut: readonly string[];
}

function documentFor(request: IamRequest): PolicyDocument {
  const { subject, config, home } = request;
  switch (subject) {
    case 'signer':
      return signerDocument(request);
    case 'tables':
      return tablesDocument(request);
    case 'recovery':
      return recoveryPolicy(named('state', tablesOf(config, home)).arn);
    case 'setup':
      return setupPolicy(someTables(config, home));
    default:
      return tableDocument(request);
  }
}

function signerDocument({ config, home, phase, ceremonyFile }: IamRequest): PolicyDocument {
  const keyArns = ceremonyArns(readCeremony(config, ceremonyFile));
  if (hasTableCredentials(config)) return parentPolicy(keyArns);
  return signerPolicy({ keyArns, tables: someTables(config, home), phase });
}

function tablesDocument({ config, home, phase, ceremonyFile }: IamRequest): PolicyDocument {
  if (!hasTableCredentials(config)) {
    throw new InputRefused('the tables have no user of their own here: the signer calls them (--for signer)');
  }
  const keyArns = ceremonyArns(readCeremony(config, ceremonyFile));
  return tablesPolicy({ keyArns, tables: someTables(config, home), phase });
}

function tableDocument({ config, home, table, keptOut }: IamRequest): PolicyDocument {
  if (table === undefined) throw new InputRefused(`--for table needs --table ${TABLES.join('|')}`);
  const stranger = keptOut.find((arn) => parsePrincipal(arn) === undefined);
  if (stranger !== undefined) {
    throw new InputRefused(`--keep-out ${stranger} is not the ARN of a role or a user, arn:aws:iam::ACCOUNT:role/NAME`);
  }
  if (hasTableCredentials(config) && keptOut.length === 0) {
    throw new InputRefused("--for table needs --keep-out ARN, the parents' role: nothing of it may reach a table");
  }
  const document = tableResourcePolicy(table, named(table, tablesOf(config, home)).arn, keptOut);
  if (document !== undefined) return document;
  throw new InputRefused(`the ${table} table needs no policy of its own, unless --keep-out names the parents’ roles`);
}

function someTables(config: Config, home: Home): GrantedTables {
  const tables = tablesOf(config, home);
  if (Object.keys(tables).length > 0) return tables;
  throw new InputRefused('the configuration names no DynamoDB table');
}

function named(kind: TableKind, tables: GrantedTables): GrantedTable {
  const table = tables[kind];
  if (table !== undefined) return table;
  throw new InputRefused(`the configuration names no ${kind} table in DynamoDB`);
}

// The ARNs of the tables that a configuration names: its own where it states them, and else made of account and region.

interface Home {
  readonly account: string | undefined;
  readonly region: string | undefined;
}

function tablesOf({ signer_state, key_sources, anti_slashing }: Config, home: Home): GrantedTables {
  const names: Readonly<Record<TableKind, string | undefined>> = {
    state: signer_state.table,
    keys: key_sources.dynamodb.table,
    slashing: anti_slashing.backend === 'dynamodb' ? anti_slashing.table : undefined,
  };
  return Object.fromEntries(
    TABLES.flatMap((kind) => {
      const table = names[kind];
      return table === undefined ? [] : [[kind, granted(table, home)]];
    }),
  );
}

function granted(table: string, { account, region }: Home): GrantedTable {
  if (parseTableArn(table) !== undefined) return { arn: table, isPinned: true };
  const arn = `arn:${partitionOf(region ?? '')}:dynamodb:${region}:${account}:table/${table}`;
  if (parseTableArn(arn) !== undefined) return { arn, isPinned: false };
  throw new InputRefused(
    `the table ${table} is named without an ARN: say where it is with --account 111122223333 --region eu-central-1`,
  );
}

function partitionOf(region: string): string {
  if (region.startsWith('cn-')) return 'aws-cn';
  return region.startsWith('us-gov-') ? 'aws-us-gov' : 'aws';
}
