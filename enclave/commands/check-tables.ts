// What a start would find of its state table, its key table and its custody keys: `server --check` reads the tables and
// asks for the state of each key, and changes nothing. No share is opened: that the role may decrypt is seen by a start
// alone.

import type { CustodyKey } from '../../ceremony/definition.ts';
import type { Violation } from '../../command-line/violations.ts';
import type { Log } from '../../observe/log.ts';
import { createDynamoDBClient } from '../aws/dynamodb.ts';
import { awsFault } from '../aws/errors.ts';
import type { Kms } from '../aws/kms.ts';
import { DEFAULT_AWS_ACCESS } from '../boot/credentials.ts';
import { openCustodyParts } from '../boot/custody.ts';
import { lookAtChamber } from '../chamber/look-at-chamber.ts';
import type { Config, OptionPath } from '../config/options.ts';
import { readRevisions } from '../keys/table/calls.ts';
import type { Network } from '../signing/networks.ts';
import type { Found } from './check.ts';

const NOTHING: Found = { violations: [], warnings: [] };
const ORIGIN = 'what answers there';
const SILENT: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

export async function lookAtTables(config: Config, network: Network): Promise<readonly Found[]> {
  return [await lookAtState(config, network), await lookAtKeyTable(config)];
}

async function lookAtState(config: Config, network: Network): Promise<Found> {
  if (config.signer_state.table === undefined) return NOTHING;
  await using opened = new AsyncDisposableStack();
  const logger = { module: () => SILENT, droppedLines: () => 0, flush: () => undefined, end: async () => undefined };
  const tableName = config.signer_state.table;
  const parts = { aws: DEFAULT_AWS_ACCESS, network, tableName };
  const { table, terms, kms } = openCustodyParts(config, parts, { logger }, opened);
  const keys = await lookAtCustodyKeys(terms.ceremony.kmsKeys, terms.ceremony.kmsThreshold, kms);
  try {
    const { latch } = await lookAtChamber({ table, terms });
    const says =
      `names a sealed table: a start stays sealed (since ${latch?.sealedAt ?? 'an unknown time'}, reason: ` +
      `${latch?.reason ?? 'none given'}). \`strongroom operator recover\` says what recovery takes`;
    const warnings = latch === undefined ? [] : [{ at: 'signer_state.table', says } as const];
    return { violations: keys.violations, warnings: [...keys.warnings, ...warnings] };
  } catch (error) {
    const state = found('signer_state.table', `names a table that cannot be used: ${messageOf(error)}`, AS_SAID);
    return { violations: [state, ...keys.violations], warnings: keys.warnings };
  }
}

const AS_SAID = 'do as it says; docs/guides/custody.md has the actions that the signer’s role needs';

/** A start needs the threshold of keys; the check names every key that does not serve. */
async function lookAtCustodyKeys(keys: readonly CustodyKey[], threshold: number, kms: Kms): Promise<Found> {
  const states = await Promise.all(keys.map(async ({ arns }) => kms.reachable(arns)));
  const missing = states.flatMap((state, index) =>
    state.ok ? [] : [`kms_keys[${index}] ${state.attempts.at(-1)?.fault ?? 'failed'}`],
  );
  if (missing.length === 0) return NOTHING;
  const said = missing.join(', ');
  const serving = keys.length - missing.length;
  if (serving >= threshold) {
    const says = `has custody keys that do not answer (${said}); ${serving} of ${keys.length} do, and ${threshold} suffice`;
    return { violations: [], warnings: [{ at: 'ceremony', says }] };
  }
  // DescribeKey is not what a start calls: a role that may only decrypt is fine.
  if (missing.every((one) => one.endsWith(' denied'))) {
    const says = `has custody keys that this role may not describe (${said}): whether they serve is not known`;
    return { violations: [], warnings: [{ at: 'ceremony', says }] };
  }
  const problem = `has custody keys of which only ${serving} answer, and ${threshold} are needed: ${said}`;
  const remedy = 'check credentials, regions and key states (`aws kms describe-key`)';
  return { violations: [found('ceremony', problem, remedy)], warnings: [] };
}

async function lookAtKeyTable({ key_sources }: Config): Promise<Found> {
  const { table: tableName } = key_sources.dynamodb;
  if (tableName === undefined) return NOTHING;
  const client = createDynamoDBClient({});
  try {
    await readRevisions({ client, tableName });
    return NOTHING;
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    const remedy =
      awsFault(cause) === 'not_found'
        ? 'create it with `strongroom setup tables -c CONFIG`, or correct the name and the region'
        : 'check credentials, the region (AWS_REGION) and the role (docs/guides/custody.md)';
    const problem = `names a key table that cannot be read (${messageOf(cause)})`;
    return { violations: [found('key_sources.dynamodb.table', problem, remedy)], warnings: [] };
  } finally {
    client.destroy();
  }
}

function found(path: OptionPath, problem: string, remedy: string): Violation {
  return { path, problem, remedy, origin: ORIGIN };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? `${error.name === 'Error' ? '' : `${error.name}: `}${error.message}` : String(error);
}
