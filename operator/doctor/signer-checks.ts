// What the signer says: the connection (TLS or attestation), its probes, its clock, what the token may do, its status
// and its version. Requests are GETs that everybody may send, or that a monitoring token may.

import { z } from 'zod';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { plural } from '../../common/command-line/printable.ts';
import { tokenRecordSchema } from '../../signer/api/auth.ts';
import { type ChamberStatus, chamberStatusSchema } from '../../signer/api/chamber.ts';
import { healthSchema } from '../../signer/api/health.ts';
import { VERSION } from '../../signer/api/version.ts';
import { type Client, HEALTH, STATUS } from '../client.ts';
import { connect, type Peer, resolveHost } from '../connect.ts';
import { connectionFailure } from '../connection-failure.ts';
import { createDeadline } from '../deadline.ts';
import { CommandFailure, orFailure, SignerRefusal } from '../exit.ts';
import { RECOVER_ADVICE } from '../refusal.ts';
import type { Settings } from '../settings.ts';
import { type DoctorFinding, fail, ok, skipped, warn } from './finding.ts';

const DAY_MS = 86_400_000;
const CERTIFICATE_WARNING_DAYS = 14;
/** The Date of HTTP has whole seconds, and the answer took a while. */
const CLOCK_WARNING_SECONDS = 3;
const CLOCK_FAILURE_SECONDS = 30;
const TOKEN_WARNING_DAYS = 7;

type Way = Pick<Settings, 'peer' | 'timeoutSeconds'>;

export async function checkName(way: Way): Promise<DoctorFinding> {
  const { url } = way.peer;
  const addresses = await onTheWay(way, () => resolveHost(url));
  if (addresses instanceof CommandFailure) return fail('name', addresses);
  return addresses === undefined
    ? skipped('name', 'the URL has an address')
    : ok('name', `${url.hostname} is ${addresses.join(', ')}`);
}

/** The way in: TCP, then TLS or attestation, as every command goes it. Nothing is sent. */
export async function checkConnection(way: Way): Promise<DoctorFinding> {
  const finding = await onTheWay(way, async (signal) => {
    const socket = await connect(way.peer, signal);
    const described = describeConnection(way.peer, socket as Described);
    socket.destroy();
    return described;
  });
  return finding instanceof CommandFailure ? fail('connection', finding) : finding;
}

async function onTheWay<Value>(
  { peer, timeoutSeconds }: Way,
  go: (signal: AbortSignal) => Promise<Value>,
): Promise<Value | CommandFailure> {
  const deadline = createDeadline(timeoutSeconds);
  deadline.set();
  try {
    return await go(deadline.signal);
  } catch (error) {
    if (error instanceof CommandFailure) return error;
    return connectionFailure(error, { peer, timeoutSeconds, timedOut: deadline.expired, maybeDone: false });
  } finally {
    deadline.end();
  }
}

interface Described {
  getProtocol?(): string | null;
  getPeerCertificate?(): { readonly valid_to?: string };
}

function describeConnection({ url, attestation }: Peer, socket: Described): DoctorFinding {
  if (url.protocol === 'http:') return ok('connection', 'open, without TLS');
  const protocol = socket.getProtocol?.() ?? 'TLS';
  if (attestation !== undefined) return ok('connection', `${protocol}; the enclave is authentic and the expected one`);
  const until = socket.getPeerCertificate?.().valid_to;
  const expires = until === undefined ? Number.NaN : Date.parse(until);
  if (Number.isNaN(expires)) return ok('connection', `${protocol}; its certificate is trusted`);
  const days = Math.floor((expires - Date.now()) / DAY_MS);
  const detail = `${protocol}; its certificate is trusted, until ${new Date(expires).toISOString()}`;
  return days < CERTIFICATE_WARNING_DAYS
    ? warn('connection', `${detail} (${days} days)`, 'renew the certificate; the signer reads it again by itself')
    : ok('connection', detail);
}

interface Answered {
  readonly finding: DoctorFinding;
  readonly date?: Date | undefined;
  readonly startedAtMs: number;
}

export async function checkUpcheck(client: Client): Promise<Answered> {
  const startedAtMs = Date.now();
  const answer = await orFailure(client.probe('/upcheck'));
  if (answer instanceof CommandFailure) return { finding: fail('upcheck', answer), startedAtMs };
  return { finding: ok('upcheck', 'OK'), date: answer.date, startedAtMs };
}

export function checkClock({ date, startedAtMs }: Answered): DoctorFinding {
  if (date === undefined) return skipped('clock', 'the answer has no date');
  const [first, last] = [startedAtMs - date.getTime(), Date.now() - date.getTime()];
  // Its second began somewhere between the request and the answer.
  const apart = first > 0 ? first : last < 0 ? -last : 0;
  const seconds = Math.max(0, Math.floor(apart / 1000));
  const todo = 'set both clocks by NTP: lifetimes of tokens and evidence, and slots, are judged by them';
  if (seconds < CLOCK_WARNING_SECONDS) return ok('clock', `less than ${CLOCK_WARNING_SECONDS} s apart`);
  const detail = `the signer's clock and this one are ${seconds} s apart`;
  if (seconds < CLOCK_FAILURE_SECONDS) return warn('clock', detail, todo);
  return fail('clock', new CommandFailure(EXIT.failed, detail, todo));
}

export async function checkHealth(client: Client): Promise<DoctorFinding> {
  const health = await orFailure(client.request(HEALTH, healthSchema));
  if (health instanceof CommandFailure) return fail('health', health);
  const { checks } = health.value;
  const chamber = checks.find(({ id }) => id === 'chamber');
  if (chamber?.sealed_at !== undefined) {
    const detail = `sealed at ${chamber.sealed_at ?? 'a time not recorded'}`;
    return fail('health', new CommandFailure(EXIT.sealed, detail, RECOVER_ADVICE));
  }
  const down = checks.filter(({ status }) => status !== 'UP');
  if (down.length === 0) return ok('health', `UP: ${checks.map(({ id }) => id).join(', ')}`);
  const detail = down.map(({ id, detail }) => `${id}: ${detail ?? 'DOWN'}`).join('; ');
  return fail('health', new CommandFailure(EXIT.refused, detail, 'the log of the signer says why'));
}

/** Whose token it is, as far as the signer tells it to its holder; of static tokens it tells nothing. */
export async function checkOwnToken(client: Client): Promise<DoctorFinding> {
  const own = await orFailure(client.request({ method: 'GET', path: SELF }, tokenRecordSchema));
  if (own instanceof SignerRefusal && own.reason === 'not_found')
    return skipped('token holder', 'static tokens say nothing of it');
  if (own instanceof CommandFailure) return fail('token holder', own);
  const { accessor, kind, root, policies, bound_cidrs: from, expires_at: until } = own.value;
  const allowed = policies.length === 0 ? '' : `, policies ${policies.join(', ')}`;
  const where = from.length === 0 ? '' : `, from ${from.join(', ')}`;
  const detail = `${accessor}, ${kind}${root ? ' (root)' : ''}${allowed}${where}`;
  if (root) return warn('token holder', detail, 'make a management token of its own for daily work');
  if (until === null) return ok('token holder', `${detail}, without an end`);
  const days = Math.floor((Date.parse(until) - Date.now()) / DAY_MS);
  return days < TOKEN_WARNING_DAYS
    ? warn(
        'token holder',
        `${detail}, until ${until}`,
        'renew it (POST /api/v1/auth/tokens/renew-self), or make another',
      )
    : ok('token holder', `${detail}, until ${until}`);
}

const SELF = '/api/v1/auth/tokens/lookup-self';
const PUBLIC_KEYS = { method: 'GET', path: '/api/v1/eth2/publicKeys' } as const;
/** The same scope. It is answered where the list is not: while keys load, and when it is refused. */
const HIGH_WATERMARK = { method: 'GET', path: '/api/v1/eth2/highWatermark' } as const;
const publicKeysSchema = z.array(z.string());
/** The list has the keys that the token may sign with. */
const LISTS_NONE = 'public_keys (which lists none: it may sign with no key)';
const NO_LIST = 'public_keys (the signer gives no list now: see health)';

/** The two scopes that are asked for without changing or exporting anything. */
export async function checkScopes(
  client: Client,
): Promise<{ readonly finding: DoctorFinding; readonly status?: ChamberStatus }> {
  const status = await orFailure(client.request(STATUS, chamberStatusSchema));
  const lists = await orFailure(client.request(HIGH_WATERMARK, z.object({})));
  const keys = lists instanceof CommandFailure ? lists : await orFailure(client.request(PUBLIC_KEYS, publicKeysSchema));
  const may: string[] = [];
  const denied: (readonly [scope: string, failure: CommandFailure])[] = [];
  if (status instanceof CommandFailure) denied.push(['chamber_status', status]);
  else may.push('chamber_status');
  if (lists instanceof CommandFailure) denied.push(['public_keys', lists]);
  else if (keys instanceof CommandFailure) may.push(NO_LIST);
  else may.push(keys.value.length === 0 ? LISTS_NONE : `public_keys (${plural(keys.value.length, 'key')})`);
  const found = status instanceof CommandFailure ? {} : { status: status.value };
  const broken = denied.find(([, { exitCode }]) => exitCode !== EXIT.authentication);
  if (broken !== undefined) return { finding: fail('scopes', broken[1]), ...found };
  // Who looks after a signer lists no public keys: its token is as it should be.
  if (!(status instanceof CommandFailure) && denied.length === 1)
    return { finding: ok('scopes', `may ${may.join(', ')} (not public_keys: right for an operator)`), ...found };
  if (may.length === 0 && denied[0] !== undefined) return { finding: fail('scopes', denied[0][1]), ...found };
  const said = `may ${may.join(', ')}`;
  if (denied.length === 0) return { finding: ok('scopes', said), ...found };
  const lacking = denied.map(([scope]) => scope).join(', ');
  const todo = `fine unless it is meant to: give its policy ${lacking} (docs/reference/authorization.md)`;
  return { finding: warn('scopes', `${said}; may not ${lacking}`, todo), ...found };
}

export function checkStatus(status: ChamberStatus | undefined): DoctorFinding {
  if (status === undefined) return skipped('status', 'needs the scope chamber_status');
  const { hindrance, slashing, custody, memory } = status;
  const concerns = [
    ...(hindrance === null ? [] : [`it signs nothing: ${hindrance}`]),
    ...(slashing.status === 'up' ? [] : [`slashing protection is ${slashing.status}`]),
    ...(slashing.trouble === null ? [] : [slashing.trouble]),
    ...(custody !== null && custody.keys_reachable < custody.threshold
      ? [`only ${custody.keys_reachable} custody keys are reachable, and a restart needs ${custody.threshold}`]
      : []),
    ...(memory.mlock !== 'off' && memory.unlocked_keys > 0
      ? [`${plural(memory.unlocked_keys, 'key')} not locked in memory`]
      : []),
  ];
  const generation = custody === null ? '' : `, ceremony generation ${custody.generation}`;
  const keys = status.keys.reduce((sum, { count }) => sum + count, 0);
  const detail = `${status.state}, ${status.network}, ${plural(keys, 'key')}, ${slashing.backend}${generation}`;
  return concerns.length === 0
    ? ok('status', detail)
    : warn('status', `${detail}; ${concerns.join('; ')}`, 'see `strongroom operator status` and the log of the signer');
}

/** The status alone says the signer's version: that of its OpenAPI description is the API's. */
export function checkVersions(status: ChamberStatus | undefined): DoctorFinding {
  if (status === undefined) return skipped('versions', 'the status says the version of the signer');
  if (status.version === VERSION) return ok('versions', `both ${VERSION}`);
  const todo = 'use the operator of the same version: an answer that it does not know is refused';
  return warn('versions', `the signer is ${status.version}, this program ${VERSION}`, todo);
}
