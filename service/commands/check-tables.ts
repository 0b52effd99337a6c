// What a start would find of its state table, its key table and its custody keys: `server --check` reads the tables and
// asks for the state of each key, and changes nothing. No share is opened: that the role may decrypt is seen by a start
// alone.

import type { CustodyTerms } from '../../ceremony/key-record.ts';
import { DEFAULT_AWS_ACCESS } from '../../signer/aws/access.ts';
import { awsFault, LACKING_CREDENTIALS, lackingSetting } from '../../signer/aws/errors.ts';
import type { Kms } from '../../signer/aws/kms.ts';
import { StateTableFailure } from '../../signer/chamber/startup-failures.ts';
import type { Config } from '../../signer/config/options.ts';
import type { Network } from '../../signer/sign/networks.ts';
import { type CheckFinding, SILENT_LOGGER, whatAnswers } from '../look.ts';

/**
 * Before anything of AWS is asked, and once: without these every table and every key would have a cause of its own.
 * @returns whether they are there, or not needed
 */
export async function lookAtAwsSettings(config: Config, { violations }: CheckFinding): Promise<boolean> {
  const { anti_slashing, key_sources, signer_state } = config;
  if ((signer_state.table ?? key_sources.dynamodb.table) === undefined && anti_slashing.backend !== 'dynamodb')
    return true;
  const { createDynamoDBClient } = await import('../../signer/aws/dynamodb.ts');
  const client = createDynamoDBClient({});
  try {
    await client.config.region();
    await client.config.credentials();
    return true;
  } catch (error) {
    const { problem, remedy } = lackingSetting(error) ?? { ...LACKING_CREDENTIALS, problem: messageOf(error) };
    violations.push({ path: 'AWS:', problem, remedy, origin: 'the environment' });
    return false;
  } finally {
    client.destroy();
  }
}

export async function lookAtTables(config: Config, found: CheckFinding, network: Network): Promise<void> {
  await lookAtState(config, found, network);
  await lookAtKeyTable(config, found);
}

async function lookAtState(config: Config, found: CheckFinding, network: Network): Promise<void> {
  const { table: tableName } = config.signer_state;
  if (tableName === undefined) return;
  const { openCustodyParts } = await import('../../signer/boot/custody.ts');
  const { lookAtChamber } = await import('../store-looks/chamber.ts');
  await using opened = new AsyncDisposableStack();
  const parts = { aws: DEFAULT_AWS_ACCESS, network, tableName };
  const { table, terms, kms } = openCustodyParts(config, parts, { logger: SILENT_LOGGER }, opened);
  try {
    const latch = await lookAtChamber({ table, terms });
    const says =
      `names a sealed table: a start stays sealed (since ${latch?.sealedAt ?? 'an unknown time'}, reason: ` +
      `${latch?.reason ?? 'none given'}). \`strongroom operator recover\` says what recovery takes`;
    if (latch !== undefined) found.warnings.push({ at: 'signer_state.table', says });
  } catch (error) {
    const problem = error instanceof StateTableFailure ? error.problem : messageOf(error);
    found.violations.push(whatAnswers('signer_state.table', `names a table that cannot be used: ${problem}`, AS_SAID));
  }
  await lookAtCustodyKeys(terms.ceremony, found, kms);
}

const AS_SAID = 'do as it says; docs/guides/custody.md has the actions that the signer’s role needs';

/** A start needs the threshold of keys; the check names every key that does not serve. */
async function lookAtCustodyKeys(
  { kmsKeys: keys, kmsThreshold: threshold }: CustodyTerms['ceremony'],
  { violations, warnings }: CheckFinding,
  kms: Kms,
): Promise<void> {
  const states = await Promise.all(keys.map(async ({ arns }) => kms.reachable(arns)));
  const missing = states.flatMap((state, index) =>
    state.ok ? [] : [`kms_keys[${index}] ${state.attempts.at(-1)?.fault ?? 'failed'}`],
  );
  if (missing.length === 0) return;
  const said = missing.join(', ');
  const serving = keys.length - missing.length;
  if (serving >= threshold) {
    const says = `has custody keys that do not answer (${said}); ${serving} of ${keys.length} do, and ${threshold} suffice`;
    warnings.push({ at: 'ceremony', says });
  } else if (missing.every((one) => one.endsWith(' denied'))) {
    // DescribeKey is not what a start calls: a role that may only decrypt is fine.
    const says = `has custody keys that this role may not describe (${said}): whether they serve is not known`;
    warnings.push({ at: 'ceremony', says });
  } else {
    const problem = `has custody keys of which only ${serving} answer, and ${threshold} are needed: ${said}`;
    const remedy = 'check credentials, regions and key states (`aws kms describe-key`)';
    violations.push(whatAnswers('ceremony', problem, remedy));
  }
}

async function lookAtKeyTable({ key_sources }: Config, { violations }: CheckFinding): Promise<void> {
  const { table: tableName } = key_sources.dynamodb;
  if (tableName === undefined) return;
  const { createDynamoDBClient } = await import('../../signer/aws/dynamodb.ts');
  const { readRevisions } = await import('../../signer/keys/table/calls.ts');
  const client = createDynamoDBClient({});
  try {
    await readRevisions({ client, tableName });
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    const remedy =
      awsFault(cause) === 'not_found'
        ? 'create it with `strongroom setup tables -c CONFIG`, or correct the name and the region'
        : 'check credentials, the region (AWS_REGION) and the role (docs/guides/custody.md)';
    const problem = `names a key table that cannot be read (${messageOf(cause)})`;
    violations.push(whatAnswers('key_sources.dynamodb.table', problem, remedy));
  } finally {
    client.destroy();
  }
}

/** The name is that of the service's own error, which its manual has. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return '$metadata' in error ? `${error.name}: ${error.message}` : error.message;
}
