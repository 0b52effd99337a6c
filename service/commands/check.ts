// `server --check`: everything that would stop a start, found without starting, and what the start says of a
// configuration that is good and unwise. What the configuration says by itself was checked when it was loaded; the
// parts look at the machine and, unless `--offline`, at what the configuration names elsewhere. Of a configuration for
// an enclave nothing is looked at: its machine is another. Exit code 0 for one that can be used, 78 for another, and
// with `--decrypt` when a key cannot be used.

import type { CustodyKey } from '../../ceremony/definition.ts';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { painter } from '../../common/command-line/paint.ts';
import { plural } from '../../common/command-line/printable.ts';
import { NO_PROGRESS, type Progress, showProgress } from '../../common/command-line/progress.ts';
import { note, type Piped, type Printed } from '../../common/command-line/terminal.ts';
import { renderPath } from '../../common/command-line/violations.ts';
import { writeViolations } from '../../common/command-line/violations-report.ts';
import { systemClock } from '../../common/observe/clock.ts';
import type { Logger } from '../../common/observe/logger.ts';
import { DEFAULT_AWS_ACCESS } from '../../signer/aws/access.ts';
import { awsFault, LACKING_CREDENTIALS, lackingSetting } from '../../signer/aws/errors.ts';
import type { Kms } from '../../signer/aws/kms.ts';
import { openSecretMemory } from '../../signer/boot/secret-key-memory.ts';
import { filterSystemCalls } from '../../signer/boot/system-call-filter.ts';
import { StateTableFailure } from '../../signer/chamber/startup-failures.ts';
import { networkOf, readNetwork } from '../../signer/config/network.ts';
import type { Config, OptionPath } from '../../signer/config/options.ts';
import { warningText } from '../../signer/config/warnings.ts';
import { createMetrics } from '../../signer/metrics/metrics.ts';
import { openBlsCore } from '../../signer/signing/bls/open-either.ts';
import type { Network } from '../../signer/signing/networks.ts';
import { readConfigFile } from '../config/consensus-config.ts';
import type { Loaded } from '../config/load.ts';
import { lookAtKeyFiles } from '../key-files.ts';
import { lookAtKnownClients } from '../known-clients.ts';
import { lookAtCertificate, lookAtListeners } from '../listeners.ts';
import { type Found, NOTHING, onThisMachine, SILENT_LOG, together, whatAnswers } from '../look.ts';
import { ignoredText, type Said } from '../said.ts';
import { lookAtStore, lookAtStoreFiles } from '../stores.ts';

type CheckTerminal = Printed & Pick<Piped, 'env'>;

/** Looks at the machine, and says what it found. @returns the exit code */
export async function check(loaded: Extract<Loaded, { ok: true }>, terminal: CheckTerminal): Promise<number> {
  return reportCheck(loaded, await lookAtMachine(loaded, terminal), terminal);
}

async function lookAtMachine(loaded: Extract<Loaded, { ok: true }>, terminal: CheckTerminal): Promise<Found> {
  using progress = showProgress(terminal, { doing: 'checking the files' });
  return await lookAtStart(loaded.config, loaded, progress);
}

/** @param found what the machine adds to what the configuration says by itself @returns the exit code */
export function reportCheck(said: Said, found: Found, { stdout, stderr, env }: CheckTerminal): number {
  for (const warning of [...said.warnings, ...found.warnings]) note({ stderr }, `warning: ${warningText(warning)}`);
  if (said.ignoredVariables.length > 0) note({ stderr }, `note: ${ignoredText(said.ignoredVariables)}`);
  const { violations, unusableKeys = 0 } = found;
  if (violations.length > 0) writeViolations(violations, { stderr, env });
  if (unusableKeys > 0) {
    const text = `strongroom: ${plural(unusableKeys, 'key')} cannot be used: a signer starts without, and is DOWN\n`;
    stderr.write(painter(stderr, env)(text, 'bad'));
  }
  if (violations.length + unusableKeys > 0) return EXIT.configuration;
  stdout.write(painter(stdout, env)('strongroom: the configuration is valid\n', 'good'));
  return EXIT.ok;
}

export async function lookAtStart(
  config: Config,
  { offline, decrypt = false }: { readonly offline: boolean; readonly decrypt?: boolean },
  progress: Progress = NO_PROGRESS,
): Promise<Found> {
  if (config.tee.platform === 'nitro') return NOTHING;
  const keyFiles = await lookAtKeyFiles(config, { decrypt, progress });
  const files = together([
    lookAtNetwork(config),
    keyFiles,
    await lookAtCertificate(config, systemClock.now()),
    lookAtKnownClients(config),
    lookAtStoreFiles(config),
  ]);
  if (offline) return files;
  progress.begin({ doing: 'asking the machine: ports, locked memory' });
  const listeners = await lookAtListeners(config);
  const found: Found[] = [files, listeners, ...(await lookAtHardening(config))];
  const isStoreBroken = files.violations.some(({ path }) => path.startsWith('anti_slashing.'));
  // A config.yaml, or the schedule beside it, that does not hold: there is no network then.
  if (!files.violations.some(({ path }) => /^(custom_network|network)\b/.test(path))) {
    const network = networkOf(config, readConfigFile);
    const { signerRuns = false } = listeners;
    progress.begin({ doing: 'asking the stores and tables' });
    const aws = await lookAtAwsSettings(config);
    const hasAws = aws.violations.length === 0;
    found.push(aws);
    if (!isStoreBroken && (hasAws || config.anti_slashing.backend !== 'dynamodb'))
      found.push(await lookAtStore(config, { network, signerRuns, keyFiles, clock: systemClock }));
    if (hasAws) found.push(...(await lookAtTables(config, network)));
  }
  return together(found);
}

/** What is required and cannot be had; what is wished for and cannot be had the start says itself. */
async function lookAtHardening(config: Config): Promise<readonly Found[]> {
  const world = { logger: SILENT_LOGGER, clock: systemClock };
  const metrics = createMetrics();
  await using opened = new AsyncDisposableStack();
  opened.defer(() => metrics.close());
  const telemetry = { metrics };
  return [
    await refusal('server.seccomp', () => filterSystemCalls(config.server, { telemetry }, world)),
    await refusal('server.mlock', () => openSecretMemory(config, { openBlsCore, telemetry }, world, opened)),
  ];
}

async function refusal(path: OptionPath, step: () => unknown): Promise<Found> {
  try {
    await step();
    return NOTHING;
  } catch (error) {
    const problem = `cannot be had: ${error instanceof Error ? error.message : String(error)}`;
    const remedy = 'do as it says, or do not require it';
    return { violations: [onThisMachine(path, problem, remedy)], warnings: [] };
  }
}

const SILENT_LOGGER: Logger = {
  module: () => SILENT_LOG,
  droppedLines: () => 0,
  isLosing: () => false,
  confirmed: async () => false,
  flush: () => undefined,
  end: async () => undefined,
};

/** Schedules of other networks are a matter of the configuration alone, and are checked with it. */
function lookAtNetwork(config: Config): Found {
  const at: OptionPath = 'custom_network.config_file';
  if (config.custom_network.config_file === undefined) return NOTHING;
  const reading = readNetwork(config, readConfigFile);
  if ('network' in reading) {
    const says = ({ name, epoch }: { name: string; epoch: number }) =>
      `plans ${name} at epoch ${epoch}, a fork that this release does not know: install one that does before that epoch`;
    return { violations: [], warnings: reading.unknownForks.map((fork) => ({ at, says: says(fork) })) };
  }
  const violations = reading.findings.map(({ at, within = [], problem, remedy }) =>
    onThisMachine(renderPath([at, ...within]), problem, remedy),
  );
  return { violations, warnings: [] };
}

// What a start would find of its state table, its key table and its custody keys: `server --check` reads the tables and
// asks for the state of each key, and changes nothing. No share is opened: that the role may decrypt is seen by a start
// alone.

/** Before anything of AWS is asked, and once: without these every table and every key would have a cause of its own. */
async function lookAtAwsSettings({ anti_slashing, key_sources, signer_state }: Config): Promise<Found> {
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

async function lookAtTables(config: Config, network: Network): Promise<readonly Found[]> {
  return [await lookAtState(config, network), await lookAtKeyTable(config)];
}

async function lookAtState(config: Config, network: Network): Promise<Found> {
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
  return { violations: [whatAnswers('ceremony', problem, remedy)], warnings: [] };
}

async function lookAtKeyTable({ key_sources }: Config): Promise<Found> {
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
