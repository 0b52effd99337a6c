// What a start would find of its state table, its key table and its custody keys: `server --check` reads the tables and
// asks for the state of each key, and changes nothing. No share is opened: that the role may decrypt is seen by a start
// alone.

import type { CustodyKey } from '../../ceremony/definition.ts';
import { DEFAULT_AWS_ACCESS } from '../../signer/aws/access.ts';
import { awsFault, LACKING_CREDENTIALS, lackingSetting } from '../../signer/aws/errors.ts';
import type { Kms } from '../../signer/aws/kms.ts';
import { StateTableFailure } from '../../signer/chamber/startup-failures.ts';
import type { Config } from '../../signer/config/options.ts';
import type { Network } from '../../signer/signing/networks.ts';
import { type CheckFinding, NOTHING, SILENT_LOGGER, whatAnswers } from '../look.ts';

/** Before anything of AWS is asked, and once: without these every table and every key would have a cause of its own. */
export async function lookAtAwsSettings({ anti_slashing, key_sources, signer_state }: Config): Promise<CheckFinding> {
  const isUsed =
    signer_state.table !== undefined ||
    key_sources.dynamodb.table !== undefined ||
    anti_slashing.backend === 'dynamodb';
  if (!isUsed) return NOTHING;
  const { createDynamoDBClient } = await import('../../signer/aws/dynamodb.ts');
  const client = createDynamoDBClient({});
  try {
    await client.config.region();
    await client.config.credentials();
    return NOTHING;
  } catch (error) {
    const { problem, remedy } = lackingSetting(error) ?? { ...LACKING_CREDENTIALS, problem: messageOf(error) };
    return { violations: [{ path: 'AWS:', problem, remedy, origin: 'the environment' }], warnings: [] };
  } finally {
    client.destroy();
  }
}

export async function lookAtTables(config: Config, network: Network): Promise<readonly CheckFinding[]> {
  return [await lookAtState(config, network), await lookAtKeyTable(config)];
}

async function lookAtState(config: Config, network: Network): Promise<CheckFinding> {
  if (config.signer_state.table === undefined) return NOTHING;
  const { openCustodyParts } = await import('../../signer/boot/custody.ts');
  const { lookAtChamber } = await import('../store-looks/chamber.ts');
  await using opened = new AsyncDisposableStack();
  const tableName = config.signer_state.table;
  const parts = { aws: DEFAULT_AWS_ACCESS, network, tableName };
  const { table, terms, kms } = openCustodyParts(config, parts, { logger: SILENT_LOGGER }, opened);
  const keys = await lookAtCustodyKeys(terms.ceremony.kmsKeys, terms.ceremony.kmsThreshold, kms);
  try {
    const { latch } = await lookAtChamber({ table, terms });
    const says =
      `names a sealed table: a start stays sealed (since ${latch?.sealedAt ?? 'an unknown time'}, reason: ` +
      `${latch?.reason ?? 'none given'}). \`strongroom operator recover\` says what recovery takes`;
    const warnings = latch === undefined ? [] : [{ at: 'signer_state.table', says } as const];
    return { violations: keys.violations, warnings: [...keys.warnings, ...warnings] };
  } catch (error) {
    const problem = error instanceof StateTableFailure ? error.problem : messageOf(error);
    const state = whatAnswers('signer_state.table', `names a table that cannot be used: ${problem}`, AS_SAID);
    return { violations: [state, ...keys.violations], warnings: keys.warnings };
  }
}

const AS_SAID = 'do as it says; docs/guides/custody.md has the actions that the signer’s role needs';

/** A start needs the threshold of keys; the check names every key that does not serve. */
async function lookAtCustodyKeys(keys: readonly CustodyKey[], threshold: number, kms: Kms): Promise<CheckFinding> {
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
  return { violations: [whatAnswers('ceremony', problem, remedy)], warnings: [] };
}

async function lookAtKeyTable({ key_sources }: Config): Promise<CheckFinding> {
  const { table: tableName } = key_sources.dynamodb;
  if (tableName === undefined) return NOTHING;
  const { createDynamoDBClient } = await import('../../signer/aws/dynamodb.ts');
  const { readRevisions } = await import('../../signer/keys/table/calls.ts');
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
    return { violations: [whatAnswers('key_sources.dynamodb.table', problem, remedy)], warnings: [] };
  } finally {
    client.destroy();
  }
}

/** The name is that of the service's own error, which its manual has. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return '$metadata' in error ? `${error.name}: ${error.message}` : error.message;
}
