// `strongroom operator status`: what one replica says about itself: chamber, custody, keys, slashing protection.

import { EXIT } from '../../common/command-line/exit-codes.ts';
import { type Paint, paintResults } from '../../common/command-line/paint.ts';
import { renderFields, renderTable } from '../../common/command-line/table.ts';
import { printable } from '../../common/command-line/text.ts';
import { wrap } from '../../common/command-line/wrap.ts';
import { type ChamberStatus, chamberStatusSchema } from '../../signer/api/chamber.ts';
import { type Health, healthSchema } from '../../signer/api/health.ts';
import { type Client, HEALTH, STATUS } from '../client.ts';
import { remoteCommand } from '../command.ts';
import { AUTH_TOKEN } from '../common-flags.ts';
import { CommandFailure } from '../exit.ts';
import { loadingText } from '../loading-text.ts';
import type { AnswerOutput } from '../output.ts';
import { RECOVER_ADVICE } from '../refusal.ts';

const DAY_SECONDS = 86_400;

export const signerStatus = remoteCommand(
  {
    summary: 'Show the seal state, loaded keys and health of the replica at the URL',
    flags: { ...AUTH_TOKEN },
    examples: ['status --auth-token env:MONITORING_TOKEN', 'status --json --signer-url https://signer-1.example:9443'],
  },

  async ({ client, output }) => {
    try {
      output.answer(await client.request(STATUS, chamberStatusSchema), render);
    } catch (error) {
      if (!(error instanceof CommandFailure && error.exitCode === EXIT.sealed)) throw error;
      await showSealed(client, output);
      throw new CommandFailure(
        EXIT.sealed,
        'the signer is sealed: it signs nothing and knows no token',
        RECOVER_ADVICE,
      );
    }
  },
);

const STATES = { Unsealed: 'good', Sealed: 'bad', UP: 'good', DOWN: 'bad', fresh: 'good', STALE: 'bad' } as const;

/** What may be known without a credential says when and why (specification/signing.md#probes). */
async function showSealed(client: Client, output: AnswerOutput): Promise<void> {
  const answer = await client.request(HEALTH, healthSchema).catch(() => undefined);
  if (answer === undefined) return;
  const value = sealedStatus(answer.value);
  output.answer({ value, text: JSON.stringify(value) }, renderSealed);
}

function sealedStatus({ checks }: Health) {
  const { sealed_at = null } = checks.find(({ id }) => id === 'chamber') ?? {};
  return { state: 'Sealed', latch: { sealed_at }, checks } as const;
}

function renderSealed(
  { state, latch, checks }: ReturnType<typeof sealedStatus>,
  columns: number,
  paint: Paint,
): string {
  const fields: (readonly [string, string])[] = [
    ['state', state],
    ['sealed at', latch.sealed_at ?? 'a time not recorded'],
    ['sealed by', 'see the latch (operator recover), or the log of the signer that was asked'],
    ...checks
      .filter(({ id }) => id !== 'chamber')
      .map(({ id, status, detail }): [string, string] => [id, detail === undefined ? status : `${status}: ${detail}`]),
  ];
  const shown = paintResults(renderFields(fields, columns), STATES, paint);
  return `${shown}\n${renderVerdict([`it is ${state}`], columns, paint)}`;
}

function render(status: ChamberStatus, columns: number, paint: Paint): string {
  const fields = [...parentFields(status), ...chamberFields(status), ...serviceFields(status)];
  const parts = [paintResults(renderFields(fields, columns), STATES, paint), renderKeys(status)];
  if (status.custody !== null) parts.push(renderCustodyKeys(status.custody, columns));
  parts.push(...renderOrigin(status.custody?.master_key ?? null, columns));
  if (Object.keys(status.tee.measurements).length > 0) parts.push(renderMeasurements(status.tee, columns));
  parts.push(renderVerdict(hindrancesOf(status), columns, paint, status.keys_loading !== null));
  return parts.join('\n');
}

/** First of all: what else it says, an enclave believes of its parent then. */
function parentFields({ tee }: ChamberStatus): [string, string][] {
  return tee.parent_writes_tables ? [['UNSAFE', PARENT_WRITES_TABLES]] : [];
}

const PARENT_WRITES_TABLES =
  'the parent instance writes the tables of this enclave: master key, seal, tokens and slashing records are what it says ' +
  '(tee.nitro.unsafe_parent_writes_tables)';

function receiptsText({ uncovered_entries, uncovered_seconds, lost }: NonNullable<ChamberStatus['receipts']>): string {
  return `${uncovered_entries} decisions of ${duration(uncovered_seconds)} are in no kept head yet; ${lost} are lost`;
}

function noKeys(loading: ChamberStatus['keys_loading']): string {
  return loading === null ? 'no active key is loaded' : 'its keys are still being loaded';
}

function hindrancesOf(status: ChamberStatus): readonly string[] {
  const { hindrance, slashing, keys, keys_loading: loading } = status;
  return [
    ...(hindrance === null ? [] : [hindrance]),
    ...(slashing.status === 'up' ? [] : [`slashing protection is ${slashing.status}`]),
    ...(slashing.trouble === null ? [] : [slashing.trouble]),
    ...(keys.some(({ status, count }) => status === 'active' && count > 0) ? [] : [noKeys(loading)]),
  ];
}

/** Last, where the eye is. */
function renderVerdict(
  hindrances: readonly string[],
  columns: number,
  paint: Paint,
  isLoading: boolean = false,
): string {
  const signs = hindrances.length === 0;
  const signing = isLoading
    ? 'this replica signs with the keys that are loaded; others are on their way'
    : 'this replica signs';
  const text = signs ? signing : `THIS REPLICA DOES NOT SIGN: ${hindrances.join('; ')}`;
  return paint(renderFields([['verdict', text]], columns), signs ? (isLoading ? 'doubtful' : 'good') : 'bad');
}

function chamberFields({ state, latch, custody, state_watcher }: ChamberStatus): [string, string][] {
  return [
    ['state', state],
    ['latch', latch === null ? 'none' : latchText(latch)],
    ['custody generation', custody === null ? 'none: no signer state' : String(custody.generation)],
    ['threshold', custody === null ? 'none' : `${custody.threshold} of ${custody.keys.length}`],
    ['custody keys', custody === null ? 'none' : `${custody.keys_reachable} of ${custody.keys.length} reachable`],
    ['master key', custody === null ? 'none' : originText(custody.master_key, state)],
    ...(state === 'Sealed' ? [] : rowFields(custody)),
    ['state watcher', watcher(state_watcher)],
  ];
}

type Origin = NonNullable<ChamberStatus['custody']>['master_key'];

/** Participants of a first boot compare this line over an attested connection, before the first key exists. */
function originText(origin: Origin, state: ChamberStatus['state']): string {
  const [first] = origin?.links ?? [];
  if (state === 'Sealed') return 'none: it is sealed';
  if (origin === null || first === undefined) return 'NOTHING PROVES where it comes from: no enclave says so';
  const by = origin.made_by_this_start ? 'by this start' : `by an enclave (PCR0 ${first.measurements['0']})`;
  return `made ${by} at ${first.made_at}, in generation ${first.generation}`;
}

/** What an enclave wrote next to the master key: a person who can write the table cannot make it. */
function rowFields(custody: ChamberStatus['custody']): [string, string][] {
  if (custody === null) return [];
  const { root_token: token, seal_removal: removal } = custody;
  const by = ({ made_at, measurements, content }: NonNullable<typeof token>): string =>
    `${made_at}, by an enclave (PCR0 ${measurements['0']}); SHA-384 ${content}`;
  return [
    ...(token === null ? [] : [['root token', `encrypted at ${by(token)}`] as [string, string]]),
    ...(removal === null ? [] : [['seal removed', `${removal.seal}: found so at ${by(removal)}`] as [string, string]]),
  ];
}

function renderOrigin(origin: Origin, columns: number): readonly string[] {
  return (origin?.links ?? []).map((link) => {
    const what = link.purpose === 'made' ? 'the master key was made' : 'the master key was wrapped again';
    const fields: [string, string][] = [
      ['at', link.made_at],
      ['generation', String(link.generation)],
      ['module', link.module_id],
      ['ceremony digest', link.ceremony],
      ['record', link.record],
      ...Object.entries(link.measurements).map(([index, value]): [string, string] => [`PCR${index}`, value]),
    ];
    return `${link.counter}. ${what}\n${renderFields(fields, columns)}`;
  });
}

/** A row made by hand may say nothing about itself. */
function latchText({ sealed_at, accessor, reason }: NonNullable<ChamberStatus['latch']>): string {
  return `sealed at ${sealed_at ?? 'a time not recorded'} by ${accessor ?? 'nobody named'}: ${reason ?? 'no reason given'}`;
}

function watcher(state: ChamberStatus['state_watcher']): string {
  if (state === null) return 'none';
  return `${state.stale ? 'STALE: signing is refused' : 'fresh'}, last read ${state.age_seconds.toFixed(1)} s ago`;
}

function serviceFields(status: ChamberStatus): [string, string][] {
  const { slashing, network, version, uptime_seconds, receipts, tee, keys, keys_loading: loading } = status;
  return [
    ['slashing protection', `${slashing.backend}, ${slashing.status} since ${slashing.since}`],
    ['slashing store', storeText(slashing)],
    ['jumped at boot', jumpText(slashing.jumped_at_boot)],
    ...slashing.keys_ahead.map(({ public_key: key, slot, target_epoch: epoch }): [string, string] => [
      'ahead of the clock',
      `${printable(key)}: block slot ${slot ?? 'none'}, target epoch ${epoch ?? 'none'}; none are signed until then`,
    ]),
    ...(slashing.warning === null ? [] : [['slashing warning', slashing.warning] as [string, string]]),
    ['keys', String(keys.reduce((sum, { count }) => sum + count, 0))],
    ...(loading === null ? [] : [['keys loading', loadingText(loading)] as [string, string]]),
    ['memory', memoryText(status.memory)],
    ['network', network],
    ['version', version],
    ['uptime', duration(uptime_seconds)],
    ...(receipts === null ? [] : [['receipts', receiptsText(receipts)] as [string, string]]),
    ['TEE platform', tee.platform],
  ];
}

function storeText({ store, bound }: ChamberStatus['slashing']): string {
  if (bound === null) return 'nothing binds a fleet to it';
  return `${store ?? 'none yet'}, ${bound ? 'bound' : 'NOT BOUND: nothing is signed'}`;
}

function jumpText(floor: ChamberStatus['slashing']['jumped_at_boot']): string {
  if (floor === null) return 'no';
  const { slot, source_epoch, target_epoch } = floor;
  return `everything is refused up to slot ${slot}, source epoch ${source_epoch}, target epoch ${target_epoch}`;
}

function memoryText({ mlock, unlocked_keys }: ChamberStatus['memory']): string {
  if (mlock === 'off') return 'not locked: server.mlock is off';
  return unlocked_keys === 0 ? 'every key is locked' : `${unlocked_keys} keys are NOT LOCKED (server.mlock: ${mlock})`;
}

function renderKeys({ keys }: ChamberStatus): string {
  if (keys.length === 0) return 'no keys are loaded\n';
  return renderTable(
    ['KEY SOURCE', 'STATUS', 'COUNT'],
    keys.map(({ source, status, count }) => [source, status, String(count)]),
  );
}

function renderCustodyKeys({ keys }: NonNullable<ChamberStatus['custody']>, columns: number): string {
  return renderTable(
    ['SHARE', 'CUSTODY KEY', 'ARNS'],
    keys.map(({ arns, status }, index) => [String(index + 1), status, arns.join(' ')]),
    columns,
  );
}

function renderMeasurements({ measurements, configuration_digest }: ChamberStatus['tee'], columns: number): string {
  const registers = `PCR measurements\n${renderFields(Object.entries(measurements), columns)}`;
  return configuration_digest === null
    ? registers
    : `${registers}\nconfiguration digest\n${wrap(printable(configuration_digest), columns).join('\n')}\n`;
}

function duration(seconds: number): string {
  const whole = Math.floor(seconds);
  const units: [string, number][] = [
    ['d', Math.floor(whole / DAY_SECONDS)],
    ['h', Math.floor((whole % DAY_SECONDS) / 3600)],
    ['min', Math.floor((whole % 3600) / 60)],
    ['s', whole % 60],
  ];
  const first = units.findIndex(([, count]) => count > 0);
  const shown = first === -1 ? units.slice(-1) : units.slice(first, first + 2);
  return shown.map(([unit, count]) => `${count} ${unit}`).join(' ');
}
