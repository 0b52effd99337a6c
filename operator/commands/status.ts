// `strongroom operator status`: what one replica says about itself: chamber, custody, keys, slashing protection.

import type { Paint } from '../../command-line/color.ts';
import { EXIT } from '../../command-line/exit-codes.ts';
import { renderFields, renderTable } from '../../command-line/table.ts';
import { printable } from '../../command-line/text.ts';
import { wrap } from '../../command-line/wrap.ts';
import { type ChamberStatus, chamberStatusSchema } from '../../enclave/api/chamber.ts';
import { type Health, healthSchema } from '../../enclave/api/health.ts';
import type { Client } from '../client.ts';
import type { RemoteCall } from '../command.ts';
import type { status } from '../descriptions/replicas.ts';
import { CommandFailure } from '../exit.ts';
import type { Output } from '../output.ts';

const DAY_SECONDS = 86_400;

export async function showStatus({ client, output }: RemoteCall<typeof status.flags>): Promise<void> {
  try {
    output.answer(await client.request(STATUS, chamberStatusSchema), render);
  } catch (error) {
    if (!(error instanceof CommandFailure && error.exitCode === EXIT.sealed)) throw error;
    await showSealed(client, output);
    throw new CommandFailure(EXIT.sealed, 'the signer is sealed: it signs nothing and knows no token', RECOVER);
  }
}

const STATUS = { method: 'GET', path: '/api/v1/chamber/status' } as const;
/** A sealed signer says it with 503. */
const HEALTH = { method: 'GET', path: '/healthcheck', alsoAnswers: 503 } as const;

/**
 * No credential can be checked any more, and what everybody may know says when and why
 * (specification/signing.md#probes).
 */
async function showSealed(client: Client, output: Output): Promise<void> {
  const answer = await client.request(HEALTH, healthSchema).catch(() => undefined);
  if (answer === undefined) return;
  const value = sealedStatus(answer.value);
  output.answer({ value, text: JSON.stringify(value) }, renderSealed);
}

/** In the members of a status, as far as a sealed signer tells them. */
function sealedStatus({ checks }: Health) {
  const { sealed_at = null, reason = null, accessor = null } = checks.find(({ id }) => id === 'chamber') ?? {};
  return { state: 'Sealed', latch: { sealed_at, reason, accessor }, checks } as const;
}

const RECOVER = '`strongroom operator recover` says what recovery takes';

function renderSealed(
  { state, latch, checks }: ReturnType<typeof sealedStatus>,
  columns: number,
  paint: Paint,
): string {
  const fields: (readonly [string, string])[] = [
    ['state', state],
    ['sealed at', latch.sealed_at ?? 'a time not recorded'],
    ['sealed by', latch.accessor ?? 'nobody named'],
    ['reason', latch.reason ?? 'no reason given'],
    ...checks
      .filter(({ id }) => id !== 'chamber')
      .map(({ id, status, detail }): [string, string] => [id, detail === undefined ? status : `${status}: ${detail}`]),
  ];
  return `${renderFields(fields, columns)}\n${renderVerdict([`it is ${state}`], columns, paint)}`;
}

function render(status: ChamberStatus, columns: number, paint: Paint): string {
  const fields = [...chamberFields(status), ...serviceFields(status)];
  const parts = [renderFields(fields, columns), renderKeys(status)];
  if (status.custody !== null) parts.push(renderCustodyKeys(status.custody, columns));
  if (Object.keys(status.tee.measurements).length > 0) parts.push(renderMeasurements(status.tee, columns));
  parts.push(renderVerdict(hindrancesOf(status), columns, paint));
  return parts.join('\n');
}

/** What keeps the replica from signing, as far as it says so itself. */
function hindrancesOf({ state, slashing, state_watcher: watcher, keys }: ChamberStatus): readonly string[] {
  return [
    ...(state === 'Unsealed' ? [] : [`it is ${state}`]),
    ...(slashing.status === 'up' ? [] : [`slashing protection is ${slashing.status}`]),
    ...(slashing.bound === false ? ['its slashing store is not bound'] : []),
    ...(watcher?.stale === true ? ['its view of the state table is stale'] : []),
    ...(keys.some(({ status, count }) => status === 'active' && count > 0) ? [] : ['no active key is loaded']),
  ];
}

/** Last, where the eye is. */
function renderVerdict(hindrances: readonly string[], columns: number, paint: Paint): string {
  const signs = hindrances.length === 0;
  const text = signs
    ? 'nothing here keeps this replica from signing'
    : `THIS REPLICA DOES NOT SIGN: ${hindrances.join('; ')}`;
  return paint(renderFields([['verdict', text]], columns), signs ? 'good' : 'bad');
}

function chamberFields({ state, latch, custody, state_watcher }: ChamberStatus): [string, string][] {
  return [
    ['state', state],
    ['latch', latch === null ? 'none' : latchText(latch)],
    ['custody generation', custody === null ? 'none: no signer state' : String(custody.generation)],
    ['threshold', custody === null ? 'none' : `${custody.threshold} of ${custody.keys.length}`],
    ['custody keys', custody === null ? 'none' : `${custody.keys_reachable} of ${custody.keys.length} reachable`],
    ['state watcher', watcher(state_watcher)],
  ];
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
  const { slashing, network, version, uptime_seconds, tee, keys } = status;
  return [
    ['slashing protection', `${slashing.backend}, ${slashing.status} since ${slashing.since}`],
    ['slashing store', storeText(slashing)],
    ['jumped at boot', jumpText(slashing.jumped_at_boot)],
    ...(slashing.warning === null ? [] : [['slashing warning', slashing.warning] as [string, string]]),
    ['keys', String(keys.reduce((sum, { count }) => sum + count, 0))],
    ['memory', memoryText(status.memory)],
    ['network', network],
    ['version', version],
    ['uptime', duration(uptime_seconds)],
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

/** Without headings beside them: a digest and its register fill the line. */
function renderMeasurements({ measurements, configuration_digest }: ChamberStatus['tee'], columns: number): string {
  const registers = `PCR measurements\n${renderFields(Object.entries(measurements), columns)}`;
  return configuration_digest === null
    ? registers
    : `${registers}\nconfiguration digest\n${wrap(printable(configuration_digest), columns).join('\n')}\n`;
}

/** The two largest units: `3 d 4 h`. */
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
