// `strongroom operator doctor` (docs/guides/doctor.md): the steps of a command, one by one. Each is taken as every
// command takes it, and fails in its words; the first one that the others need is the last. Only GETs are sent.

import { z } from 'zod';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { type Paint, paintResults } from '../../common/command-line/paint.ts';
import { plural } from '../../common/command-line/printable.ts';
import { renderTable } from '../../common/command-line/table.ts';
import type { Terminal } from '../../common/command-line/terminal.ts';
import { type TokenRecord, tokenRecordSchema } from '../../signer/api/auth.ts';
import { type ChamberStatus, chamberStatusSchema } from '../../signer/api/chamber.ts';
import type { ErrorReason } from '../../signer/api/errors.ts';
import { type Health, healthSchema } from '../../signer/api/health.ts';
import { VERSION } from '../../signer/api/version.ts';
import { type Client, createClient, HEALTH, type SignerAnswer, STATUS } from '../client.ts';
import { localCommand } from '../command.ts';
import { AUTH_TOKEN, COMMON_FLAGS } from '../common-flags.ts';
import { connect } from '../connect.ts';
import { connectionFailure } from '../connection-failure.ts';
import { createDeadline } from '../deadline.ts';
import { CommandFailure, type OperatorExitCode, orFailure, SignerRefusal } from '../exit.ts';
import { createOutput } from '../output.ts';
import { RECOVER_ADVICE } from '../refusal.ts';
import { resolveSettings, type Settings } from '../settings.ts';
import { locateToken, type TokenSource } from '../token.ts';

interface Finding {
  readonly check: string;
  readonly status: 'ok' | 'warn' | 'fail' | 'skipped';
  readonly detail: string;
  readonly todo: string | null;
  readonly exitCode?: OperatorExitCode;
}

/** What a check says: that all is well, what to do about a warning, or that nothing could be asked. */
type CheckAnswer = string | { readonly detail: string; readonly todo: string } | { readonly skipped: string };

export const doctor = localCommand(
  {
    summary: 'Find out why commands do not work from here, and what to do',
    flags: { ...COMMON_FLAGS, ...AUTH_TOKEN },
    notes: [
      'It sends GETs only: the probes, the holder of the token, its status and the list of public keys. A token that ' +
        'may not do one of these leaves a refusal in the audit log of the signer.',
    ],
    examples: ['doctor --profile mainnet', 'doctor --signer-url https://signer-1.example:9443 --json'],
  },

  async ({ values, terminal, provider }) => {
    const findings: Finding[] = [];
    const ask = asker(findings);
    const settings = await ask('settings', () => resolveSettings(values, terminal.env, provider), settingsSaid);
    if (settings !== undefined) await askSigner(settings, terminal, ask);
    const failed = findings.filter(({ status }) => status === 'fail');
    const checks = findings.map(({ check, status, detail, todo }) => ({ check, status, detail, todo }));
    const text = JSON.stringify({ verdict: verdictOf(findings), checks });
    const format = settings?.output ?? (values.json === true ? 'json' : 'table');
    createOutput(format, terminal).answer({ value: findings, text }, renderFindings);
    const [first] = failed;
    if (first === undefined) return;
    const names = failed.map(({ check }) => check).join(', ');
    throw new CommandFailure(first.exitCode ?? EXIT.failed, `failed: ${names}`, first.todo ?? undefined);
  },
);

/** What the step got, or undefined; a failure of either is among the findings. */
type Ask = <Value>(
  check: string,
  step: () => Value | Promise<Value>,
  describe: (value: Value) => CheckAnswer,
) => Promise<Value | undefined>;

function asker(findings: Finding[]): Ask {
  return async <Value>(check: string, step: () => Value | Promise<Value>, describe: (value: Value) => CheckAnswer) => {
    let value: Value | undefined;
    try {
      value = await step();
      findings.push({ check, ...findingOf(describe(value)) });
    } catch (error) {
      if (!(error instanceof CommandFailure)) throw error;
      const { exitCode, message, advice } = error;
      findings.push({ check, status: 'fail', detail: message, todo: advice ?? 'see docs/guides/doctor.md', exitCode });
    }
    return value;
  };
}

function findingOf(said: CheckAnswer): Pick<Finding, 'status' | 'detail' | 'todo'> {
  if (typeof said === 'string') return { status: 'ok', detail: said, todo: null };
  if ('skipped' in said) return { status: 'skipped', detail: said.skipped, todo: null };
  return { status: 'warn', ...said };
}

async function askSigner(settings: Settings, terminal: Terminal, ask: Ask): Promise<void> {
  const { token: source } = settings;
  const found = await ask('token', async () => source && (await locateToken(source, terminal)), tokenSaid(source));
  if (source !== undefined && found === undefined) return;
  if ((await ask('connection', () => reach(settings), asIs)) === undefined) return;
  const client = createClient({ ...settings, token: found?.token });
  const startedAtMs = Date.now();
  const up = await ask(
    'upcheck',
    () => client.probe('/upcheck'),
    ({ date }) => clockSaid(date, startedAtMs),
  );
  if (up === undefined) return;
  const health = await ask('health', () => client.request(HEALTH, healthSchema), healthSaid);
  const isSealed = health?.value.checks.some(({ sealed_at }) => sealed_at !== undefined);
  if (found === undefined || isSealed === true) return;
  const holder = await ask(
    'token holder',
    () => unlessReason('not_found', client.request(SELF, tokenRecordSchema)),
    holderSaid,
  );
  if (holder === undefined) return;
  const status = await ask(
    'status',
    () => unlessReason('denied', client.request(STATUS, chamberStatusSchema)),
    statusSaid,
  );
  await ask('public keys', () => askKeys(client), keysSaid);
  await ask('versions', () => status?.value.version, versionSaid);
}

const asIs = (said: CheckAnswer): CheckAnswer => said;

const SELF = { method: 'GET', path: '/api/v1/auth/tokens/lookup-self' } as const;
const HIGH_WATERMARK = { method: 'GET', path: '/api/v1/eth2/highWatermark' } as const;
const PUBLIC_KEYS = { method: 'GET', path: '/api/v1/eth2/publicKeys' } as const;

/** The scope first, by a route that answers a refusal: the list itself comes whole, or not at all. */
async function askKeys(client: Client): Promise<SignerAnswer<string[]> | CommandFailure | null> {
  const allowed = await unlessReason('denied', client.request(HIGH_WATERMARK, z.object({})));
  return allowed && (await orFailure(client.request(PUBLIC_KEYS, z.array(z.string()))));
}

/** Null for a refusal that is no fault. */
async function unlessReason<Value>(reason: ErrorReason, asked: Promise<Value>): Promise<Value | null> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof SignerRefusal && error.reason === reason) return null;
    throw error;
  }
}

function settingsSaid({ peer: { url, attestation } }: Settings): CheckAnswer {
  if (url.protocol === 'http:') {
    const detail = `${url.origin}, without TLS: the token is readable on the way`;
    return { detail, todo: 'use an https: URL unless nobody else can listen' };
  }
  return `${url.origin}, known by ${attestation === undefined ? 'its certificate' : 'reference values'}`;
}

/** Without repeating a token that was written out. */
function tokenSaid(source: TokenSource | undefined): (found: { readonly warning?: string } | undefined) => CheckAnswer {
  return (found) => {
    if (source === undefined || found === undefined) {
      const todo = 'name one with --token, SVC_OPERATOR_TOKEN or a profile; probes need none';
      return { detail: 'none is given: most commands need one', todo };
    }
    const { warning: detail } = found;
    if (detail !== undefined) return { detail, todo: 'keep it in a file of mode 0600 and name that as @FILE' };
    const isNamed = /^(?:-$|env:|@|file:)/.test(source.text);
    return `read from ${isNamed ? source.text : 'a profile or a variable'}`;
  };
}

/** As every command connects; nothing is sent. @throws CommandFailure */
async function reach({ peer, timeoutSeconds }: Settings): Promise<CheckAnswer> {
  const deadline = createDeadline(timeoutSeconds);
  deadline.set();
  try {
    const socket = await connect(peer, deadline.signal);
    const said = connectionSaid(peer, socket as SocketFacts);
    socket.destroy();
    return said;
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    throw connectionFailure(error, { peer, timeoutSeconds, timedOut: deadline.expired, maybeDone: false });
  } finally {
    deadline.end();
  }
}

const DAY_MS = 86_400_000;
const CERTIFICATE_WARNING_DAYS = 14;
const TOKEN_WARNING_DAYS = 7;
/** The Date of HTTP has whole seconds, and the answer took a while. */
const CLOCK_WARNING_SECONDS = 3;
const CLOCK_FAILURE_SECONDS = 30;

/** What a socket of TLS says, and one of TCP does not. */
interface SocketFacts {
  getProtocol?(): string | null;
  getPeerCertificate?(): { readonly valid_to?: string };
}

function connectionSaid({ url, attestation }: Settings['peer'], socket: SocketFacts): CheckAnswer {
  if (url.protocol === 'http:') return 'open, without TLS';
  const protocol = socket.getProtocol?.() ?? 'TLS';
  if (attestation !== undefined) return `${protocol}; the enclave is authentic and the expected one`;
  const until = socket.getPeerCertificate?.().valid_to ?? '';
  const expires = Date.parse(until);
  if (Number.isNaN(expires)) return `${protocol}; its certificate is trusted`;
  const detail = `${protocol}; its certificate is trusted, until ${new Date(expires).toISOString()}`;
  const days = Math.floor((expires - Date.now()) / DAY_MS);
  if (days >= CERTIFICATE_WARNING_DAYS) return detail;
  return { detail: `${detail} (${days} days)`, todo: 'renew the certificate; the signer reads it again by itself' };
}

/** @throws CommandFailure for clocks that are far apart */
function clockSaid(date: Date | undefined, startedAtMs: number): CheckAnswer {
  if (date === undefined) return { skipped: 'the answer has no date: the clocks cannot be compared' };
  const [first, last] = [startedAtMs - date.getTime(), Date.now() - date.getTime()];
  // Its second began somewhere between the request and the answer.
  const seconds = Math.max(0, Math.floor((first > 0 ? first : last < 0 ? -last : 0) / 1000));
  if (seconds < CLOCK_WARNING_SECONDS) return `OK; the clocks are less than ${CLOCK_WARNING_SECONDS} s apart`;
  const detail = `the signer's clock and this one are ${seconds} s apart`;
  const todo = 'set both clocks by NTP: lifetimes of tokens and evidence, and slots, are judged by them';
  if (seconds < CLOCK_FAILURE_SECONDS) return { detail, todo };
  throw new CommandFailure(EXIT.failed, detail, todo);
}

/** @throws CommandFailure for a signer that is sealed, or down */
function healthSaid({ value: { checks } }: SignerAnswer<Health>): CheckAnswer {
  const chamber = checks.find(({ sealed_at }) => sealed_at !== undefined);
  if (chamber !== undefined)
    throw new CommandFailure(EXIT.sealed, `sealed at ${chamber.sealed_at ?? 'a time not recorded'}`, RECOVER_ADVICE);
  const down = checks.filter(({ status }) => status !== 'UP');
  if (down.length === 0) return `UP: ${checks.map(({ id }) => id).join(', ')}`;
  const detail = down.map(({ id, detail }) => `${id}: ${detail ?? 'DOWN'}`).join('; ');
  throw new CommandFailure(EXIT.refused, detail, RECOVER_ADVICE);
}

function holderSaid(answer: SignerAnswer<TokenRecord> | null): CheckAnswer {
  if (answer === null) return { skipped: 'static tokens say nothing of their holder' };
  const { accessor, kind, root, policies, bound_cidrs: from, expires_at: until } = answer.value;
  const allowed = policies.length === 0 ? '' : `, policies ${policies.join(', ')}`;
  const detail = [
    `${accessor}, ${kind}${root ? ' (root)' : ''}${allowed}`,
    ...(from.length === 0 ? [] : [`from ${from.join(', ')}`]),
    until === null ? 'without an end' : `until ${until}`,
  ].join(', ');
  if (root) return { detail, todo: 'make a management token of its own for daily work' };
  if (until === null || Date.parse(until) - Date.now() >= TOKEN_WARNING_DAYS * DAY_MS) return detail;
  return { detail, todo: 'renew it (POST /api/v1/auth/tokens/renew-self), or make another' };
}

function statusSaid(answer: SignerAnswer<ChamberStatus> | null): CheckAnswer {
  if (answer === null) return { skipped: 'this token has no scope chamber_status' };
  const { hindrance, slashing, custody, memory, state, network, keys } = answer.value;
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
  const count = keys.reduce((sum, { count }) => sum + count, 0);
  const detail = [`${state}, ${network}, ${plural(count, 'key')}, ${slashing.backend}`, ...concerns].join('; ');
  if (concerns.length === 0) return detail;
  return { detail, todo: 'see `strongroom operator status` and the log of the signer' };
}

/** The list has the keys that the token may sign with. */
function keysSaid(answer: SignerAnswer<string[]> | CommandFailure | null): CheckAnswer {
  if (answer instanceof CommandFailure) return { skipped: 'the signer gives no list of keys now: see health' };
  if (answer === null) return { skipped: 'this token has no scope public_keys, which is right for an operator' };
  return answer.value.length === 0
    ? 'none are listed: the token may sign with no key'
    : `it may sign with ${plural(answer.value.length, 'key')}`;
}

/** The status alone says the signer's version: that of its OpenAPI description is the API's. */
function versionSaid(version: string | undefined): CheckAnswer {
  if (version === undefined) return { skipped: 'the status says the version of the signer' };
  if (version === VERSION) return `both ${VERSION}`;
  const todo = 'use the operator of the same version: an answer that it does not know is refused';
  return { detail: `the signer is ${version}, this program ${VERSION}`, todo };
}

function verdictOf(findings: readonly Finding[]): 'ok' | 'warn' | 'fail' {
  const has = (status: Finding['status']): boolean => findings.some((finding) => finding.status === status);
  return has('fail') ? 'fail' : has('warn') ? 'warn' : 'ok';
}

const TONES = { ok: 'good', warn: 'doubtful', fail: 'bad' } as const;

/** What to do stands under its line, so that a line is a check; the verdict comes last. */
function renderFindings(findings: readonly Finding[], columns: number, paint: Paint): string {
  const rows = findings.flatMap(({ check, status, detail, todo }) => [
    [check, status.toUpperCase(), detail],
    ...(todo === null ? [] : [['', '', `→ ${todo}`]]),
  ]);
  const plain = renderTable(['CHECK', 'RESULT', 'WHAT WAS FOUND'], rows, columns);
  const table = paintResults(plain, { OK: 'good', WARN: 'doubtful', FAIL: 'bad' }, paint);
  const count = (status: Finding['status']): number => findings.filter((finding) => finding.status === status).length;
  const verdict = verdictOf(findings);
  const troubles = `${count('fail')} FAILED, ${count('warn')} with a warning`;
  const said = verdict === 'fail' ? `of ${plural(findings.length, 'check')}: ${troubles}` : 'commands work from here';
  const warned = verdict === 'warn' ? `; ${plural(count('warn'), 'warning')}` : '';
  return `${table}\n${paint(`verdict  ${said}${warned}\n`, TONES[verdict])}`;
}
