// `strongroom setup iam`: what a role or a user may do, and what a table itself refuses.

import { ceremonyArns } from '../../ceremony/definition.ts';
import { readCommand } from '../../command-line/read-command.ts';
import type { Config } from '../../enclave/config/options.ts';
import { phaseOf, strings, text } from '../arguments.ts';
import { IAM } from '../description.ts';
import { InputRefused, readCeremony, readConfig } from '../inputs.ts';
import { type Phase, type PolicyDocument, renderPolicy } from '../policy-document.ts';
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

/** IAM and AWS STS quotas: all policies within one role; a user's have 2,048. */
const MAX_ROLE_POLICY_CHARACTERS = 10_240;

export const iam: SetupCommand = {
  run(argv, { env, stdout }) {
    const { values } = readCommand(IAM, argv);
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
