// `strongroom setup iam`: what a role or a user may do, and what a table itself refuses.

import { ceremonyArns } from '../../ceremony/definition.ts';
import { readArguments } from '../../command-line/arguments.ts';
import type { Config } from '../../enclave/config/options.ts';
import { phaseOf, strings, text } from '../arguments.ts';
import { InputRefused, readCeremony, readConfig } from '../inputs.ts';
import { PHASES, type Phase, type PolicyDocument, renderPolicy } from '../policy-document.ts';
import { parsePrincipal } from '../principal.ts';
import {
  type GrantedTable,
  type GrantedTables,
  recoveryPolicy,
  setupPolicy,
  signerPolicy,
  tableResourcePolicy,
  tablesPolicy,
} from '../role-policy.ts';
import { type Home, tablesOf } from '../table-arns.ts';
import { TABLES, type TableKind } from '../table-permissions.ts';
import type { SetupCommand } from './command.ts';

const SUBJECTS = ['signer', 'tables', 'recovery', 'setup', 'table'] as const;

const HELP = `strongroom setup iam: the IAM policy of a role or user, or the policy of a table

Usage: strongroom setup iam -c CONFIG --for SUBJECT [OPTIONS]

Prints a policy as JSON and calls nothing. Tables and keys come from CONFIG.

  --for signer     The role of the service, or of an enclave's parent: custody keys, and the tables unless the
                   configuration has sealed credentials for them (tee.nitro.table_credentials)
  --for tables     The user whose credentials are sealed for the enclaves: the tables, and nothing else
  --for recovery   Whoever deletes the latch of a seal, or the row of a lost root token
  --for setup      Whoever runs strongroom setup tables
  --for table      The policy of a table itself: nobody deletes slashing records, and the roles given with --keep-out
                   do nothing with it

Options:
  -c, --config FILE   The signer's configuration
  --phase PHASE       ${PHASES.join(', ')} (default: running); the first boot and rotations need more
  --ceremony FILE     The ceremony, for the configuration of an enclave, which has none
  --account ID        Where the tables are that CONFIG names without an ARN
  --region REGION     The same
  --table TABLE       ${TABLES.join(', ')}: for --for table
  --keep-out ARN      A parent's role, for --for table; may be repeated

Examples:
  strongroom setup iam -c strongroom.yaml --for signer --phase first-boot
  strongroom setup iam -c enclave.yaml --for table --table state --keep-out arn:aws:iam::111122223333:role/strongroom-parent
`;

const FORMS = {
  config: { placeholder: 'FILE', short: 'c', required: true },
  for: { placeholder: 'SUBJECT', choices: SUBJECTS, required: true },
  phase: { placeholder: 'PHASE', choices: PHASES },
  ceremony: { placeholder: 'FILE' },
  account: { placeholder: 'ID' },
  region: { placeholder: 'REGION' },
  table: { placeholder: 'TABLE', choices: TABLES },
  'keep-out': { placeholder: 'ARN', repeatable: true },
} as const;

/** IAM and AWS STS quotas: all policies within one role; a user's have 2,048. */
const MAX_ROLE_POLICY_CHARACTERS = 10_240;

export const iam: SetupCommand = {
  help: HELP,
  run(argv, { env, stdout }) {
    const { values, words } = readArguments(FORMS, argv);
    if (words.length > 0) throw new InputRefused('it takes flags only');
    const config = readConfig(String(values['config']), env);
    const home = { account: text(values['account']), region: text(values['region']) };
    const document = documentFor({
      subject: String(values['for']),
      config,
      home,
      phase: phaseOf(values['phase']),
      ceremonyFile: text(values['ceremony']),
      table: TABLES.find((kind) => kind === values['table']),
      keptOut: strings(values['keep-out']),
    });
    const characters = JSON.stringify(document).length;
    if (characters > MAX_ROLE_POLICY_CHARACTERS) {
      throw new InputRefused(
        `the policy has ${characters} characters, and a role takes ${MAX_ROLE_POLICY_CHARACTERS}: write it for fewer keys, and several roles`,
      );
    }
    stdout.write(renderPolicy(document));
  },
};

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
  const { subject, config, home, phase } = request;
  switch (subject) {
    case 'signer':
      return signerDocument(request);
    case 'tables':
      return tablesPolicy(someTables(config, home), phase);
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
  const isSealed = config.tee.nitro.table_credentials.key_arn !== undefined;
  return signerPolicy({ keyArns, tables: isSealed ? {} : someTables(config, home), phase });
}

function tableDocument({ config, home, table, keptOut }: IamRequest): PolicyDocument {
  if (table === undefined) throw new InputRefused(`--for table needs --table ${TABLES.join('|')}`);
  const stranger = keptOut.find((arn) => parsePrincipal(arn) === undefined);
  if (stranger !== undefined) {
    throw new InputRefused(`--keep-out ${stranger} is not the ARN of a role or a user, arn:aws:iam::ACCOUNT:role/NAME`);
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
